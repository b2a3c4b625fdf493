"""xbert's linear path beside PECOS, omikuji, napkinXC and scikit-learn: same text, same rows, same machine, in turn.

python benchmarks/side_by_side.py DATA [--peers-home DIR] [--rounds 3] [--out docs/benchmarks]
python benchmarks/side_by_side.py --report docs/benchmarks --out docs/benchmarks.md

DATA holds train.jsonl and test.jsonl, a document a line: {"text": "...", "labels": ["...", ...]}. The peers live in
environments that benchmarks/install_peers.sh makes; one that is not there is left out. Every step of every system is a
process of its own; round 1 of all systems comes before round 2 of any, so that a slow hour strikes all alike. Before each
step the cores must be idle, and what other processes took of them meanwhile is kept beside every figure.
"""

import argparse
import datetime
import importlib.util
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import accuracy
import figures
import machine
import numpy as np
import report
import roster
from roster import Entrant, Step

from xbert.pipeline import template

HERE = Path(__file__).resolve().parent


class StepFailed(Exception):
    """A worker ended badly; the message is the end of what it said."""


class Bench:
    """The processes of one data set, and what came of them."""

    def __init__(self, given: argparse.Namespace, work: Path) -> None:
        self.given, self.work, self.data, self.warnings = given, work, work / "data", list[str]()
        self.data.mkdir(parents=True, exist_ok=True)

    def process(self, python: Path, module: str, request: dict[str, Any]) -> dict[str, Any]:
        """Run `python -m systems.MODULE` on a request, watching the machine; the figures it gave, with the noise."""
        asked, answer, log = (self.work / name for name in ("request.json", "answer.json", "log.txt"))
        answer.unlink(missing_ok=True)
        asked.write_text(json.dumps(request), "utf-8")
        idle = machine.wait_until_idle(self.given.wait, figures.NOISY)
        command = [str(python), "-m", f"systems.{module}", str(asked), str(answer)]
        start = time.perf_counter()
        with machine.Noise() as noise, log.open("w", encoding="utf-8") as out:
            try:
                code: int | str = subprocess.run(
                    command, cwd=HERE, stdout=out, stderr=subprocess.STDOUT, timeout=self.given.timeout, check=False
                ).returncode
            except subprocess.TimeoutExpired:
                code = f"none within {self.given.timeout:g} s"
        if code != 0 or not answer.exists():
            last = " ".join(log.read_text("utf-8", "replace").strip().splitlines()[-1:])
            raise StepFailed(f"exit code {code}: {last.replace(str(self.work), 'WORK')}")
        found: dict[str, Any] = json.loads(answer.read_text("utf-8"))
        return {**found, "process_s": time.perf_counter() - start, "noise": noise.share, "idle_before": idle}

    def step(self, entrant: Entrant, step: Step, seed: int) -> dict[str, Any]:
        """One step of one system; a failure is told and leaves a gap."""
        folder = self.work / entrant.key
        scratch, top = folder / "scratch", folder / "top.npy"
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir(parents=True)
        if step.name.startswith("train"):
            shutil.rmtree(folder / step.model, ignore_errors=True)
            (folder / step.model).mkdir()
        request = {
            "step": step.name, "data": str(self.data), "model": str(folder / step.model), "scratch": str(scratch),
            "threads": step.threads, "seed": seed, "variant": step.variant, "top": str(top) if step.top else None,
            "options": {**entrant.options, "borrow": roster.lenders(self.given.peers_home) if entrant.home else []},
        }  # fmt: skip
        where = f"round {seed}: {entrant.title}, {step.key}" if seed else f"{entrant.title}, {step.key}"
        try:
            found = self.process(entrant.python(self.given.peers_home), entrant.worker, request)
        except StepFailed as error:
            self.warn(f"{where}: {error}")
            return {"failed": str(error)}
        if step.top:
            found["accuracy"] = accuracy.measure(self.data, np.load(top))
        noisy = "; NOISY" if found["noise"] > figures.NOISY else ""
        say(f"{where}: {found['process_s']:.1f} s, others used {found['noise']:.0%} of the cores{noisy}")
        return found

    def steps(self, entrant: Entrant, steps: Iterable[Step], seed: int) -> dict[str, dict[str, Any]]:
        """Steps of one system in order; without a model there is nothing more to measure."""
        found: dict[str, dict[str, Any]] = {}
        for step in steps:
            found[step.key] = self.step(entrant, step, seed)
            if step.name.startswith("train") and "failed" in found[step.key]:
                break
        return found

    def warn(self, sentence: str) -> None:
        """Tell at once, and keep for the report."""
        self.warnings.append(sentence)
        say(f"warning: {sentence}")


def say(sentence: str) -> None:
    """Progress goes to stderr; results to stdout."""
    print(sentence, file=sys.stderr, flush=True)


def prepare(bench: Bench, peers: Path) -> dict[str, Any]:
    """The shared rows, by scikit-learn of its own environment, or of this one."""
    python = peers / "sklearn/venv/bin/python"
    if not python.exists():
        if importlib.util.find_spec("sklearn") is None:
            sys.exit(f"scikit-learn makes the shared rows and is not installed: PEERS_HOME={peers} benchmarks/install_peers.sh")
        python = Path(sys.executable)
    try:
        facts = bench.process(python, "prepare", {"source": str(bench.given.data.resolve()), "data": str(bench.data)})
    except StepFailed as error:
        sys.exit(f"{bench.given.data}: {error}")
    for split in ("train", "test"):
        left, unseen = facts[split]["left out"], facts[split]["unseen assignments dropped"]
        say(f"{split}: {facts[split]['documents']:,} documents; {left:,} without a term or a known label are left out")
        if unseen:
            say(f"{split}: {unseen:,} labels of documents are dropped, because no training document has them")
    return facts


def measure(given: argparse.Namespace, work: Path, path: Path) -> dict[str, Any]:
    """All rounds of all systems: the raw figures, written to `path` after every round."""
    bench, recipe = Bench(given, work), given.recipe
    if recipe not in template.recipes():
        recipe = roster.FALLBACK
        bench.warn(f"there is no recipe {given.recipe!r}: xbert runs {recipe!r} instead")
    everyone, absent = roster.installed(roster.entrants(recipe, given.with_default, given.sklearn_labels), given.peers_home)
    if given.only:
        everyone = [each for each in everyone if each.key in given.only.split(",")]
    for title in absent:
        bench.warn(f"{title} is not installed under {given.peers_home.name}/ and left out")
    facts = prepare(bench, given.peers_home)
    systems: dict[str, dict[str, Any]] = {}
    kept = kept_figures(path, facts, everyone) if given.only else {}
    result = {
        "dataset": path.stem, "date": datetime.date.today().isoformat(), "commit": commit(), "machine": machine.about(),
        "data": facts, "rounds": 0, "recipe": recipe, "absent": absent, "warnings": bench.warnings, "systems": systems,
    }  # fmt: skip
    for each in everyone:
        setup = bench.steps(each, each.setup(), 0)
        systems[each.key] = {"title": each.title, "settings": each.settings, "setup": setup, "rounds": []}
    for seed in range(1, given.rounds + 1):
        for each in everyone:
            if seed > (given.slow_rounds or given.rounds) and each.key not in roster.FAST:
                continue
            systems[each.key]["rounds"].append({"seed": seed, "steps": bench.steps(each, each.round(), seed)})
        result["rounds"] = seed
        write(path, result, kept)
    for seed in range(given.rounds + 1, given.rounds + given.more_seeds + 1):
        for each in everyone:
            if each.key in roster.FAST:
                systems[each.key]["rounds"].append({"seed": seed, "steps": bench.steps(each, each.accuracy(), seed)})
        result["seeds"] = seed
        write(path, result, kept)
    return {**result, "systems": systems | kept}


def kept_figures(path: Path, facts: dict[str, Any], measured: list[Entrant]) -> dict[str, Any]:
    """What the file says of systems that are not measured now, on the same data; each with when it was measured."""
    old = json.loads(path.read_text("utf-8")) if path.exists() else {}
    if {key: old.get("data", {}).get(key) for key in ("labels", "terms")} != {key: facts[key] for key in ("labels", "terms")}:
        return {}
    now = {each.key for each in measured}
    when = {"date": old["date"], "commit": old["commit"]}
    return {key: {"measured": when, **system} for key, system in old["systems"].items() if key not in now}


def write(path: Path, result: dict[str, Any], kept: dict[str, Any]) -> None:
    """The figures so far, those of systems that were measured at another time last."""
    content = {**result, "systems": result["systems"] | kept}
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", "utf-8")


def commit() -> str:
    """Which xbert was measured: the commit, and whether files differ from it; "" outside of a checkout."""
    command = ["git", "-C", str(HERE), "describe", "--always", "--dirty"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:
        return ""


def options() -> argparse.ArgumentParser:
    """The command line."""
    found = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument("data", type=Path, nargs="?", help="folder with train.jsonl and test.jsonl")
    found.add_argument("--report", type=Path, help="measure nothing: make a page of the JSON files in this folder")
    found.add_argument("--out", type=Path, help="folder of the JSON file (docs/benchmarks), or the page (docs/benchmarks.md)")
    found.add_argument("--name", help="of the data set; by default that of its folder")
    found.add_argument("--peers-home", type=Path, default=roster.DEFAULT_HOME, help="where the peers' environments are")
    found.add_argument("--rounds", type=int, default=3)
    found.add_argument("--slow-rounds", type=int, help="rounds of all but xbert and PECOS; by default as many as --rounds")
    found.add_argument("--more-seeds", type=int, default=0, help="further seeds of xbert and PECOS, for their accuracy alone")
    found.add_argument("--recipe", default="linear-fast", help="xbert's settings")
    found.add_argument("--with-default", action="store_true", help=f"also xbert's recipe {roster.FALLBACK!r} from text")
    found.add_argument("--sklearn-labels", type=int, default=100, help="labels scikit-learn is trained on, at most")
    found.add_argument("--only", help="keys of systems, with commas; the file keeps the figures of the others")
    found.add_argument("--wait", type=float, default=120, help="most seconds to wait for idle cores before a step")
    found.add_argument("--timeout", type=float, default=3600, help="most seconds of one step")
    found.add_argument("--work", type=Path, help="folder for rows and models, kept; by default one that is removed")
    return found


def main() -> None:
    given = options().parse_args()
    given.peers_home = given.peers_home.expanduser().absolute()
    if given.report:
        out = given.out or given.report.with_suffix(".md")
        report.write(given.report, out)
        print(f"wrote {out}")
        return
    if given.data is None or not all((given.data / f"{split}.jsonl").is_file() for split in ("train", "test")):
        options().error("DATA must be a folder with train.jsonl and test.jsonl")
    out = given.out or Path("docs/benchmarks")
    out.mkdir(parents=True, exist_ok=True)
    path = out / f"{given.name or given.data.resolve().name}.json"
    with tempfile.TemporaryDirectory(prefix="xbert-bench-") as temporary:
        result = measure(given, (given.work or Path(temporary)).resolve(), path)
    print(figures.terminal(result))
    print(f"\nwrote {path}")


if __name__ == "__main__":
    main()
