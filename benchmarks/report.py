"""The page docs/benchmarks.md: for every data set that was measured the table, the plot, and how it came about."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import plot
import sections
from figures import LOW, POINTS, RATIO, Figure, disturbance, rows

SECTION = "side-by-side"
HEAD = "# Benchmarks\n\nEach section is written by a script in `benchmarks/`, from figures kept in this folder.\n"
PLOTTED = "nDCG@5"
HOW = f"""\
Every system gets the same documents and the same rows: scikit-learn's `TfidfVectorizer(sublinear_tf=True, min_df=2)` over
words. Labels of test documents that no training document has are dropped, and so are documents without a term or a label.
Every step is a process of its own that waits for idle cores, and the rounds of the systems are interleaved. Times, speeds and
memory are medians over the rounds; a round's batch speed and latency are the best of three
(batches that take long are not repeated). Accuracy is the mean over the
rounds with its range, computed by one piece of code for all (PSP with A = 0.55, B = 1.5); a round's number is the seed of
every system that takes one (omikuji takes none). Where a system can predict in several ways (PECOS: `BINARY_SEARCH_CHUNKED`
and `HASH_CHUNKED`; omikuji: sparse and densified weights), each figure is that of the better way.

- Text to features starts from a list of strings. xbert's training rows end in a file on disk, the others' in memory. PECOS has
  another tokenizer and finds other terms than scikit-learn and xbert do.
- Training starts from rows in memory (omikuji: from its data set, read) and ends before saving; napkinXC saves as it trains.
- Memory is the peak of the whole process, interpreter and libraries included; the line below it says what was there before.
- Models are what prediction from rows needs; no system's vocabulary is counted.
- Raw text to labels: xbert and PECOS with their own vectorizers and models trained on those, omikuji and napkinXC with
  scikit-learn's vectorizer.
- A time marked ~ is extrapolated from a sample of the labels.

{RATIO}"""


def write(folder: Path, page: Path) -> None:
    """Make the page's section, and the plots beside the figures."""
    paths = sorted(folder.glob("*.json"))
    results = [found for path in paths if "systems" in (found := json.loads(path.read_text("utf-8")))]
    if not results:
        sys.exit(f"{folder} holds no figures: python benchmarks/side_by_side.py DATA --out {folder}")
    parts = ["## Side by side with other systems", HOW]
    for result in results:
        image = folder / f"{result['dataset']}.svg"
        drawn = draw(result)
        if drawn:
            image.write_text(drawn, "utf-8")
        parts += part(result, os.path.relpath(image, page.parent) if drawn else None)
    sections.put(page, SECTION, "\n\n".join(parts), HEAD)


def part(result: dict[str, Any], image: str | None) -> list[str]:
    """One data set."""
    data, machine = result["data"], result["machine"]
    train, test = data["train"], data["test"]
    found = [f"### {result['dataset']}"]
    found.append(
        f"{train['documents']:,} training documents ({train['MB']:.1f} MB, {train['terms per document']:.0f} terms and "
        f"{train['labels per document']:.1f} labels each), {data['labels']:,} labels, {data['terms']:,} terms, "
        f"{test['documents']:,} test documents. Left out: {train['left out']:,} training and {test['left out']:,} test "
        f"documents, {test['unseen assignments dropped']:,} test labels not seen in training."
    )
    vectors = f" ({machine['vectors']})" if machine.get("vectors") else ""
    found.append(
        f"{machine['cores']} cores of {machine['cpu']}{vectors}, {machine['ram_gb']:g} GB, {machine['system']}; "
        f"{result['date']}, {result['rounds']} rounds, xbert at {result['commit'] or 'no known commit'}.{more_seeds(result)}"
    )
    found.append(table(result))
    if image:
        found.append(f"![{PLOTTED} against training time, {result['dataset']}]({image})")
    found.append(notes(result))
    return found


def more_seeds(result: dict[str, Any]) -> str:
    """Whether accuracy is over more seeds than the rounds have."""
    seeds = result.get("seeds", 0)
    return f" Accuracy of xbert and PECOS is over {seeds} seeds." if seeds > result["rounds"] else ""


def table(result: dict[str, Any]) -> str:
    """The figures in Markdown."""
    titles = [system["title"] for system in result["systems"].values()]
    lines = [f"| | {' | '.join(titles)} |", f"|---|{'---:|' * len(titles)}"]
    for title, cells in rows(result):
        bold = cells or [""] * len(titles)
        lines.append(f"| {title if cells else f'**{title}**'} | {' | '.join(bold)} |")
    return "\n".join(lines)


def notes(result: dict[str, Any]) -> str:
    """Settings and versions of every system, who was left out, and how quiet the machine was."""
    lines = []
    for system in result["systems"].values():
        steps = [step for each in system["rounds"] for step in each["steps"].values() if "versions" in step]
        versions = ", ".join(f"{name} {version}" for name, version in steps[0]["versions"].items()) if steps else "did not run"
        python = f", Python {steps[0]['python']}" if steps else ""
        fewer = len(system["rounds"]) < result["rounds"]
        rounds = f" Only {len(system['rounds'])} of the {result['rounds']} rounds." if fewer else ""
        if "measured" in system:
            when = system["measured"]
            rounds += f" Measured apart ({when['date']}, beside xbert at {when['commit']}): its ratios compare two occasions."
        lines.append(f"- {system['title']}: {system['settings']} ({versions}{python}).{rounds}{compiling(system)}")
    lines += [f"- {title} was not installed and is left out." for title in result["absent"]]
    lines += [f"- {sentence}" for sentence in disturbance(result)]
    lines += [f"- Warning: {each}." for each in result["warnings"] if "not installed" not in each]
    return "\n".join(lines)


def compiling(system: dict[str, Any]) -> str:
    """How long the first process took to compile, where something was compiled."""
    seconds = [step["warm_up_s"] for step in system["setup"].values() if step.get("warm_up_s", 0) > 0.1]
    each = [step["warm_up_s"] for one in system["rounds"] for step in one["steps"].values() if step.get("warm_up_s", 0) > 0.1]
    if not each:
        return ""
    first = f"{max(seconds):.1f} s in the first process and " if seconds else ""
    return f" Warm-up, on no clock: {first}{sum(each) / len(each):.1f} s in each of the rounds'."


def draw(result: dict[str, Any]) -> str | None:
    """The plot, of every system that has both a training time and an accuracy."""
    seconds = Figure("", ("train", "train_text"), "train_s", LOW)
    score = Figure("", ("predict", "train_text"), PLOTTED, POINTS)
    points = []
    for system in result["systems"].values():
        x, y = seconds.of(system["rounds"]), score.of(system["rounds"])
        if x and y:
            points.append(plot.Point(system["title"], x.middle, y.middle, y.low, y.high))
    title = f"{result['dataset']}: accuracy and training time, 2 threads"
    return plot.draw(title, "training, seconds (from features in memory)", f"{PLOTTED}, %", points) if points else None
