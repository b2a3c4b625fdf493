"""How xbert's linear path grows with the number of labels: time, memory, disk, speed of prediction, and what the beam misses.

python benchmarks/scale.py --work DIR --labels 10000,100000,1000000 --out docs/benchmarks/scale.json --report docs/benchmarks.md

For each size a corpus is made (benchmarks/power_law.py), then every stage runs in a process of its own by the command line,
which gives its wall time and its peak memory. Mapped files count as memory while they are resident. What is measured goes to
DIR/figures.json as it finishes: the same command goes on from there, and measures again only what xbert would run again.
"""

import argparse
import json
import math
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from importlib.metadata import version
from pathlib import Path
from typing import Any

import machine
import numpy as np
import power_law
import sections

Figures = dict[str, Any]

XBERT = (sys.executable, "-m", "xbert.cli")
STAGES = {
    "prepare": ("data",),
    "index": ("features", "index"),
    "match": ("match",),
    "rank": ("rank",),
    "evaluate": ("evaluate",),
}
TRAINING = ("prepare", "index", "match", "rank")
# What `linear-fast` stands for, in an xbert that has no recipe of that name.
FAST = (
    "rank.negatives=tfn", "match.train_scores=none", "features.word_ngrams=1", "match.threshold=0.1", "rank.threshold=0.1",
)  # fmt: skip
ALWAYS = ("data.valid_fraction=0",)  # every label keeps all its training documents; nothing is chosen by validation here
DEPTHS = (1, 5, 10)
BEYOND, FROM = 10**7, 10**5  # from fewer labels no line is drawn on: starting a process is most of their cost
SECTION = "scale"  # of the page, as `sections` marks it
DISTURBED = 0.1  # of all cores, taken by others: the report says so
GB = 1e9


# Measuring. This process stays small: a child's peak memory starts from that of the process which started it.


def timed(command: Sequence[str | Path]) -> tuple[Figures, str]:
    """Run a command to its end: wall and CPU seconds, peak memory, what others took of the machine; and what it printed."""
    begun, parts = time.perf_counter(), [str(part) for part in command]
    with machine.Noise() as noise, subprocess.Popen(parts, stdout=subprocess.PIPE, text=True) as child:
        printed = child.stdout.read() if child.stdout else ""
        _, status, usage = os.wait4(child.pid, 0)  # rather than child.wait(): it tells of this one child alone
        child.returncode = os.waitstatus_to_exitcode(status)
    figures: Figures = {"seconds": round(time.perf_counter() - begun, 3), "others": round(noise.share, 3)}
    figures["cpu_seconds"] = round(usage.ru_utime + usage.ru_stime, 3)
    figures["peak_bytes"] = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    if child.returncode:
        sys.exit(f"exit code {child.returncode} of {' '.join(map(str, command))}; the same command goes on from there")
    return figures, printed


@dataclass(frozen=True)
class Experiment:
    """One size: its corpus, experiment file and run folder."""

    path: Path
    overrides: tuple[str, ...]

    @classmethod
    def write(cls, folder: Path, recipe: str) -> "Experiment":
        """As `xbert init` does it."""
        known = {line.split()[0] for line in _output([*XBERT, "init", "--list"]).splitlines() if line}
        overrides = ALWAYS if recipe in known or recipe != "linear-fast" else (*ALWAYS, *FAST)
        name = recipe if overrides is ALWAYS else "linear"
        path = folder / f"{recipe}.toml"
        path.write_text(_output([*XBERT, "init", name, "--train", "train.jsonl", "--test", "test.jsonl"]), "utf-8")
        return cls(path, tuple(part for each in overrides for part in ("-o", each)))

    @property
    def run(self) -> Path:
        """The run folder, where xbert puts it by default."""
        return self.path.parent / "runs" / self.path.stem

    def stage(self, name: str, kept: Figures) -> tuple[Figures, str]:
        """Run one stage and measure it, unless it is up to date and its figures are kept; and what it printed, if it ran."""
        command: list[str | Path] = [*XBERT, name, self.path, *self.overrides]
        due = [line for line in _output([*command, "--dry-run"], stderr=True).splitlines() if ": would run (" in line]
        if not due and name in kept:
            return kept[name], ""
        figures, printed = timed([*command, "--json"] if name == "evaluate" else command)
        notes = [json.loads(line) for line in (self.run / "journal.jsonl").read_text("utf-8").splitlines()]
        last = {note["artifact"].split("/")[0]: note for note in notes}
        figures["journal"] = {stage: {key: last[stage][key] for key in ("seconds", "peak_mb")} for stage in STAGES[name]}
        if not due:  # it finished before this process could note it: the journal knows what it took
            figures["seconds"] = sum(note["seconds"] for note in figures["journal"].values())
            figures["peak_bytes"] = round(max(note["peak_mb"] for note in figures["journal"].values()) * 2**20)
        figures["resumed"] = any("finished pieces" in line for line in due)
        return figures, printed


def _output(command: Sequence[str | Path], stderr: bool = False) -> str:
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}: {done.stderr.strip()}")
    return done.stderr if stderr else done.stdout


def measure(folder: Path, settings: power_law.Settings, recipe: str, figures: Figures, save: Callable[[], None]) -> None:
    """Everything about one size, kept in `figures` as it is found."""
    made = ["--labels", settings.labels, "--docs-per-label", settings.docs_per_label, "--test-docs", settings.test_docs]
    whole = (folder / "corpus.json").exists()
    found, printed = timed([sys.executable, power_law.__file__, folder, *map(str, made), "--seed", str(settings.seed)])
    corpus = json.loads(printed)
    if not whole or figures.get("corpus", {}).get("settings") != corpus["settings"]:
        figures["corpus"] = {**corpus, "peak_bytes": found["peak_bytes"]}
    experiment = Experiment.write(folder, recipe)
    figures |= {"recipe": recipe, "overrides": experiment.overrides[1::2]}
    stages = figures.setdefault("stages", {})
    for name in STAGES:
        print(f"{settings.labels:,} labels: {name}", file=sys.stderr)
        stages[name], printed = experiment.stage(name, stages)
        if printed:
            models = json.loads(printed)
            figures["metrics"] = models.get("ensemble", next(iter(models.values())))["test"]
        save()
    model = json.loads((experiment.run / "model.json").read_text("utf-8"))
    if figures.get("measured_model") != model:
        for name, arguments in (("prediction", [folder / "test.jsonl"]), ("model", [])):
            print(f"{settings.labels:,} labels: {name}", file=sys.stderr)
            found, printed = timed([sys.executable, __file__, name, experiment.run, *arguments])
            figures[name] = {**json.loads(printed), **found}
        places = [model["data"], *(place for stages in model["models"].values() for place in stages.values())]
        figures["disk"] = {place: _size(experiment.run / place) for place in dict.fromkeys(places)}
        figures |= {"measured_model": model, "machine": about()}
        save()


def about() -> Figures:
    """Where and when the figures come from, and from which xbert."""
    from xbert import __version__

    versions = {name: version(name) for name in ("numpy", "numba")}
    return {**machine.about(), **versions, "xbert": __version__, "date": time.strftime("%Y-%m-%d")}


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


# What runs in a process of its own, started by `measure`.


def prediction(run: Path, test: Path) -> Figures:
    """Speed of a finished run on new text, all at once and one by one."""
    from xbert.pipeline.tagger import Tagger

    with test.open(encoding="utf-8") as stream:
        texts = [json.loads(line)["text"] for line in stream]
    begun = time.perf_counter()
    tagger = Tagger.load(run)
    loaded = time.perf_counter()
    tagger.predict(texts[:1])
    figures = {"load_seconds": loaded - begun, "first_seconds": time.perf_counter() - loaded}
    tagger.predict(texts)  # once unmeasured: a service has its pages in memory, too
    for threads in (1, 2):
        begun = time.perf_counter()
        tagger.predict(texts, threads=threads)
        figures[f"docs_per_second_{threads}"] = len(texts) / (time.perf_counter() - begun)
    single = []
    for text in texts[:500]:
        begun = time.perf_counter()
        tagger.predict([text])
        single.append(1000 * (time.perf_counter() - begun))
    figures |= {f"p{share}_ms": float(np.percentile(single, share)) for share in (50, 99)}
    return figures


def model(run: Path) -> Figures:
    """Sizes of a finished run, and how much of the best labels of an exhaustive search its beam finds (first model)."""
    from xbert.artifacts.kinds.dataset import Dataset
    from xbert.artifacts.kinds.features import Features
    from xbert.artifacts.kinds.linear_matcher import LinearMatcher
    from xbert.artifacts.kinds.linear_ranker import LinearRanker
    from xbert.artifacts.store import open_artifact
    from xbert.pipeline import pointer
    from xbert.pipeline.tagger import Model

    found = pointer.read(run)
    kinds: dict[str, Any] = {"features": Features, "match": LinearMatcher, "rank": LinearRanker}
    opened = [Model(*(open_artifact(run / each[s], kind) for s, kind in kinds.items())) for each in found.models.values()]
    Y, one = open_artifact(run / found.data, Dataset).train.Y, opened[0]
    tables = [table for each in opened for table in (*each.matcher.levels, each.ranker.weights)]
    figures: Figures = {"docs": Y.n_rows, "labels": Y.n_cols, "pairs": Y.nnz, "terms": one.features.n_terms}
    figures |= {"clusters": one.matcher.n_clusters, "levels": len(one.matcher.levels), "beam": one.matcher.beam}
    figures["weight_bytes"] = sum(array.nbytes for table in tables for array in table.arrays())
    X = one.features.X["test"]
    n_docs = min(X.n_rows, max(100, min(500, 2 * 10**8 // Y.n_cols)))
    sample = X.take(np.sort(np.random.default_rng(0).choice(X.n_rows, n_docs, replace=False)))
    wide = one._replace(matcher=replace(one.matcher, beam=one.matcher.n_clusters))
    near = one.scores(sample, 1).top(max(DEPTHS))[0]
    batch, begun = max(1, 3 * 10**7 // Y.n_cols), time.perf_counter()  # every label of a document is a candidate
    parts = [wide.scores(sample.slice(at, min(at + batch, n_docs)), 1).top(max(DEPTHS))[0] for at in range(0, n_docs, batch)]
    figures["exhaustive_ms"] = 1000 * (time.perf_counter() - begun) / n_docs
    full = np.concatenate(parts)
    for depth in DEPTHS:
        hits = (full[:, :depth, None] == near[:, None, :depth]).any(axis=2)
        figures[f"recall_{depth}"] = float(100 * hits.mean())
    return {**figures, "sample_docs": n_docs}


# The report.


@dataclass(frozen=True)
class Row:
    """A line of the table: which figure, and whether it is one that grows."""

    key: str
    title: str
    grows: bool = True


ROWS = (
    Row("docs", "training documents"), Row("pairs", "label-document pairs"), Row("terms", "terms"),
    Row("clusters", "clusters"), Row("prepare_s", "prepare, s"), Row("features_s", "features, s"),
    Row("index_s", "index, s"), Row("match_s", "match, s"), Row("rank_s", "rank, s"),
    Row("train_s", "**text to model, s**"), Row("us_per_pair", "the same per pair, µs"),
    Row("prepare_gb", "memory of prepare, GB"), Row("index_gb", "of features and index, GB"), Row("match_gb", "of match, GB"),
    Row("rank_gb", "of rank, GB"), Row("train_gb", "**peak memory of training, GB**"), Row("corpus_gb", "corpus on disk, GB"),
    Row("disk_gb", "artifacts on disk, GB"), Row("weights_gb", "**weights, GB**"), Row("bytes_per_label", "per label, bytes"),
    Row("load_s", "loading the model, s"), Row("ms_1", "**prediction, ms a document, 1 thread**"),
    Row("ms_2", "the same, 2 threads"), Row("p50_ms", "one by one, median ms"), Row("p99_ms", "one by one, 99th percentile ms"),
    Row("predict_gb", "memory of prediction, GB"), Row("exhaustive_ms", "exhaustive search, ms a document"),
    *(Row(f"recall_{depth}", f"exhaustive top {depth} found by the beam, %", False) for depth in DEPTHS),
    *(Row(name, f"{name}, %", False) for name in ("P@1", "P@5", "PSP@5")),
)  # fmt: skip


def flat(figures: Figures) -> dict[str, float]:
    """One size's figures by the keys of the table."""
    stages, model, speed, corpus = (figures[key] for key in ("stages", "model", "prediction", "corpus"))
    row = {key: model[key] for key in ("labels", "docs", "pairs", "terms", "clusters", "exhaustive_ms")}
    row |= {f"{name}_s": stages[name]["seconds"] for name in TRAINING}
    # There is no command for the features alone: `xbert index` makes them, and the journal says how long it took.
    row["features_s"] = stages["index"]["journal"]["features"]["seconds"]
    row["index_s"] -= row["features_s"]
    row["train_s"] = sum(stages[name]["seconds"] for name in TRAINING)
    row |= {"us_per_pair": 1e6 * row["train_s"] / row["pairs"], "corpus_gb": corpus["train"]["bytes"] / GB}
    row |= {f"{name}_gb": stages[name]["peak_bytes"] / GB for name in TRAINING}
    row |= {"train_gb": max(row[f"{name}_gb"] for name in TRAINING), "predict_gb": speed["peak_bytes"] / GB}
    row |= {"disk_gb": sum(figures["disk"].values()) / GB, "weights_gb": model["weight_bytes"] / GB}
    row |= {"bytes_per_label": model["weight_bytes"] / model["labels"], "load_s": speed["load_seconds"]}
    row |= {f"ms_{threads}": 1000 / speed[f"docs_per_second_{threads}"] for threads in (1, 2)}
    row |= {key: speed[key] for key in ("p50_ms", "p99_ms")} | {f"recall_{k}": model[f"recall_{k}"] for k in DEPTHS}
    return row | {name: figures["metrics"][name] for name in ("P@1", "P@5", "PSP@5")}


def growth(rows: Sequence[Mapping[str, float]]) -> dict[str, dict[str, float]]:
    """From the smallest to the largest size: the factor, slopes in log-log, and the line's value at 10^7 labels.

    What a process costs before it does anything flattens the line at small sizes, so the line beyond the largest size rises
    with the fit's slope or that of the last step, whichever is steeper. Whole training is drawn on stage by stage.
    """
    if len(rows) < 2:
        return {}
    x, found = np.log([row["labels"] for row in rows]), {}
    for key in (row.key for row in ROWS if row.grows):
        values = np.array([max(row[key], 1e-12) for row in rows])
        y = np.log(values)
        slope, last = float(np.polyfit(x, y, 1)[0]), float((y[-1] - y[-2]) / (x[-1] - x[-2]))
        found[key] = {"factor": float(values[-1] / values[0]), "slope": slope, "last_slope": last}
        if rows[-1]["labels"] >= FROM:
            found[key]["extrapolated"] = float(values[-1] * (BEYOND / rows[-1]["labels"]) ** max(slope, last))
    if rows[-1]["labels"] >= FROM:
        far = {key: line["extrapolated"] for key, line in found.items()}
        found["train_s"]["extrapolated"] = sum(far[f"{name}_s"] for name in (*TRAINING, "features"))
        found["train_gb"]["extrapolated"] = max(far[f"{name}_gb"] for name in TRAINING)
        found["us_per_pair"]["extrapolated"] = 1e6 * found["train_s"]["extrapolated"] / far["pairs"]
    return found


def number(value: float) -> str:
    """Three digits, more where they stand before the point."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def rough(value: float) -> str:
    """Two digits, which is more than an extrapolation knows."""
    return number(float(f"{value:.2g}"))


def table(rows: Sequence[Mapping[str, float]], grown: Mapping[str, Mapping[str, float]]) -> str:
    """A column for each size, then how each figure grows."""
    columns: dict[str, Callable[[Mapping[str, float]], str]]
    columns = {"growth": lambda line: f"{number(line['factor'])} x", "slope": lambda line: f"{line['slope']:.2f}"}
    columns |= {"10^7, extrapolated": lambda line: rough(line["extrapolated"])} if rows[-1]["labels"] >= FROM else {}
    head = [*(f"{row['labels']:,} labels" for row in rows), *(columns if grown else ())]
    lines = ["| |" + "".join(f" {name} |" for name in head), "|---|" + "---:|" * len(head)]
    for row in ROWS:
        cells = [number(each[row.key]) for each in rows]
        cells += [show(grown[row.key]) for show in columns.values()] if row.key in grown else []
        cells += [""] * (len(head) - len(cells))
        lines.append(f"| {row.title} |" + "".join(f" {cell} |" for cell in cells))
    return "\n".join(lines)


def section(result: Figures, plot: str) -> str:
    """The part of the benchmarks page between the markers."""
    rows, where = result["rows"], result["machine"]
    stages = [
        (f"{size} labels, {name}", one)
        for size, each in result["sizes"].items()
        for name, one in {**each["stages"], "prediction": each["prediction"]}.items()
    ]
    resumed = [name for name, one in stages if one.get("resumed")]
    disturbed = [f"{name} ({100 * one['others']:.0f} %)" for name, one in stages if one["others"] > DISTURBED]
    said = [
        f"Corpora by a power law (`benchmarks/power_law.py`, seed {result['seed']}), recipe `{result['recipe']}`; every stage",
        f"in a process of its own. {where['cpu']}, {where['cores']} cores, {where['ram_gb']} GB, {where['date']}.",
        "Memory is the resident peak, mapped files included. Exhaustive search looks into every cluster.",
    ]
    if resumed:
        said.append(f"Interrupted and taken up again, so that their time is too short: {'; '.join(resumed)}.")
    if disturbed:
        said.append(
            f"While others used the machine (share of its cores), so that their time is too long: {'; '.join(disturbed)}."
        )
    parts = ["## Growth with the number of labels", "\n".join(said), table(rows, result["growth"])]
    parts += [beyond(rows, result["growth"])] if result["growth"] else []
    return "\n\n".join([*parts, f"![Time, memory and size over labels]({plot})"])


def beyond(rows: Sequence[Mapping[str, float]], grown: Mapping[str, Mapping[str, float]]) -> str:
    """What the growth means, in words."""
    factor = {key: rough(line["factor"]) for key, line in grown.items()}
    times = number(rows[-1]["labels"] / rows[0]["labels"])
    said = [
        f"With {times} times the labels, training takes {factor['train_s']} times as long and {factor['train_gb']} times the",
        f"memory, and a prediction {factor['ms_1']} times as long. The slope is that of a straight line through the",
        "logarithms: 1 grows in proportion to the labels, 0 not at all.",
    ]
    if rows[-1]["labels"] >= FROM:
        far = {key: rough(line["extrapolated"]) for key, line in grown.items()}
        hours = rough(grown["train_s"]["extrapolated"] / 3600)
        said += [
            "",
            "No corpus of 10^7 labels was run. Drawn on from the largest size by the fitted slope or that of the last step,",
            f"whichever is steeper, the lines reach {hours} hours of training, {far['train_gb']} GB of memory and",
            f"{far['disk_gb']} GB of artifacts there. That is an extrapolation, not a measurement.",
        ]
    return "\n".join(said)


STAGE_TIMES = tuple((f"{name}_s", name) for name in ("prepare", "features", "index", "match", "rank"))
PANELS = (
    ("Time", "seconds", (("train_s", "text to model"), *STAGE_TIMES)),
    ("Memory", "GB", (("train_gb", "training, largest stage"), ("predict_gb", "prediction"))),
    ("Size", "GB", (("disk_gb", "artifacts"), ("weights_gb", "weights"), ("corpus_gb", "corpus"))),
)
MARGIN, KEY = 20, 200  # around the charts, and for the names of the lines beside each


def draw(rows: Sequence[Mapping[str, float]]) -> str:
    """Time, memory and size over labels, all logarithmic, on paper of its own so that any page may show it."""
    from xbert.stages.evaluate.style import STYLE
    from xbert.stages.evaluate.svg import COLOURS, HEIGHT, WIDTH, Axis, Chart, colour, dash

    def decades(label: str, values: Sequence[float]) -> Axis:
        low = math.floor(math.log10(min(values)) + 1e-9)
        high = max(math.ceil(math.log10(max(values)) - 1e-9), low + 1)
        return Axis(label, 10.0**low, 10.0**high, [(10.0**i, f"{10.0**i:g}") for i in range(low, high + 1)], log=True)

    labels = [row["labels"] for row in rows]
    x = decades("labels", labels)
    powers = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")  # short enough for the edge of the chart
    x = replace(x, ticks=[(at, "10" + str(round(math.log10(at))).translate(powers)) for at, _ in x.ticks])
    parts = []
    for place, (title, unit, series) in enumerate(PANELS):
        lines = [[max(row[key], 1e-4) for row in rows] for key, _ in series]
        about = "; ".join(f"{name}: {' '.join(map(number, line))}" for (_, name), line in zip(series, lines, strict=True))
        y = decades(f"{title.lower()}, {unit}", [value for line in lines for value in line])
        chart, top = Chart(f"scale{place}", title, about, x, y), MARGIN + place * (HEIGHT + MARGIN)
        for at, ((_, name), line) in enumerate(zip(series, lines, strict=True)):
            notes = [f"{name}, {n:,} labels: {number(value)} {unit}" for n, value in zip(labels, line, strict=True)]
            chart.line(list(zip(labels, line, strict=True)), at, notes)
            left, down = MARGIN + WIDTH + 12, top + 50 + 22 * at
            sample = f'x1="{left}" x2="{left + 30}" y1="{down - 4}" y2="{down - 4}"'
            parts.append(f'<line class="line {colour(at)}"{dash(at)} {sample}/>')
            parts.append(f'<text class="start" x="{left + 38}" y="{down}">{escape(name)}</text>')
        parts.append(chart.svg().replace("<svg ", f'<svg x="{MARGIN}" y="{top}" width="{WIDTH}" height="{HEIGHT}" ', 1))
    light = dict(re.findall(r"--(\w+): (#\w+)", STYLE.split("@media")[0]))  # the report's own colours
    style = [
        f"text {{ font: 13px sans-serif; fill: {light['soft']}; text-anchor: middle }} .axis {{ fill: {light['ink']} }}",
        f".start {{ text-anchor: start }} .end {{ text-anchor: end }} .grid {{ stroke: {light['rule']} }}",
        ".line { fill: none; stroke-width: 2.25 }",
        *(f".line.c{i} {{ stroke: {light[f'c{i}']} }} .dot.c{i} {{ fill: {light[f'c{i}']} }}" for i in range(COLOURS)),
    ]
    width, height = 2 * MARGIN + WIDTH + KEY, MARGIN + len(PANELS) * (HEIGHT + MARGIN)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">'
    paper = f'<rect width="{width}" height="{height}" rx="8" fill="{light["paper"]}"/>'
    return "\n".join([head, "<style>", *style, "</style>", paper, *parts, "</svg>", ""])


def write_whole(path: Path, text: str) -> None:
    """Never half a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.part")
    part.write_text(text, "utf-8")
    part.replace(path)


def main() -> None:
    """The command line."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--work", type=Path, required=True, help="folder for corpora, runs and figures.json")
    options.add_argument("--labels", default="10000,100000,1000000", help="sizes, with commas")
    options.add_argument("--docs-per-label", type=float, default=2.0)
    options.add_argument("--test-docs", type=int, default=10_000)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--recipe", default="linear-fast", help="recipe of `xbert init`")
    options.add_argument("--out", type=Path, required=True, help="JSON file of all figures")
    options.add_argument("--report", type=Path, help="Markdown page to put the table and plot into")
    given = options.parse_args()
    kept_at = given.work / "figures.json"
    kept: Figures = json.loads(kept_at.read_text("utf-8")) if kept_at.exists() else {}
    # The compiler's cache is filled by a small run first, or the first size would pay for it.
    shutil.rmtree(given.work / "warm-up", ignore_errors=True)
    measure(given.work / "warm-up", power_law.Settings(300, test_docs=100), given.recipe, {}, lambda: None)
    sizes = sorted({int(size) for size in given.labels.split(",")})
    for size in sizes:
        settings = power_law.Settings(size, given.docs_per_label, given.test_docs, given.seed)
        name = f"{given.recipe}-{size}"
        here = kept.setdefault(name, {})
        measure(
            given.work / f"labels-{size}",
            settings,
            given.recipe,
            here,
            lambda: write_whole(kept_at, json.dumps(kept, indent=1)),
        )
    found = {str(size): kept[f"{given.recipe}-{size}"] for size in sizes}
    rows = [flat(each) for each in found.values()]
    result = {"machine": found[str(sizes[-1])]["machine"], "recipe": given.recipe, "seed": given.seed}
    result |= {"rows": rows, "growth": growth(rows), "sizes": found}
    write_whole(given.out, json.dumps(result, indent=1) + "\n")
    plot = given.out.with_suffix(".svg")
    page = section(result, os.path.relpath(plot, given.report.parent) if given.report else plot.name)
    print(page)
    if given.report:
        write_whole(plot, draw(rows))
        sections.put(given.report, SECTION, page, "# Benchmarks\n")


CHILDREN: dict[str, Callable[..., Figures]] = {"prediction": prediction, "model": model}

if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1] in CHILDREN:
        print(json.dumps(CHILDREN[sys.argv[1]](*map(Path, sys.argv[2:]))))
    else:
        main()
