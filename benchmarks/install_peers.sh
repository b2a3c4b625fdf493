#!/usr/bin/env bash
# The systems that side_by_side.py compares xbert with, each in an environment of its own under $PEERS_HOME.
#   benchmarks/install_peers.sh [pecos omikuji napkinxc sklearn]
# Versions are those that were measured (Python 3.11). PECOS imports torch and transformers even for its linear models:
# where pip would fetch a CUDA build of torch, set PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu.
set -euo pipefail

home=${PEERS_HOME:-$HOME/.cache/xbert-peers}
python=${PYTHON:-python3}

install() { # name, then what pip takes
  local folder="$home/$1/venv"
  shift
  [ -x "$folder/bin/python" ] || "$python" -m venv "$folder"
  "$folder/bin/python" -m pip install --quiet "$@"
}

[ $# -gt 0 ] || set -- pecos omikuji napkinxc sklearn
mkdir -p "$home"
for peer in "$@"; do
  case $peer in
    pecos) install pecos libpecos==1.2.8 torch==2.13.0 transformers==4.49.0 numpy==1.26.4 scipy==1.13.1 scikit-learn==1.9.1 ;;
    # omikuji and napkinXC have no way from text to rows: they borrow scikit-learn's.
    omikuji) install omikuji omikuji==0.5.2 numpy==2.4.6 scipy==1.17.1 scikit-learn==1.9.1 ;;
    napkinxc) install napkinxc napkinxc==0.7.2 numpy==2.4.6 scipy==1.17.1 scikit-learn==1.9.1 ;;
    sklearn) install sklearn scikit-learn==1.9.1 numpy==2.4.6 scipy==1.17.1 ;;
    *) echo "unknown peer '$peer': one of pecos, omikuji, napkinxc, sklearn" >&2; exit 2 ;;
  esac
  echo "$peer: ready in $home/$peer/venv"
done
