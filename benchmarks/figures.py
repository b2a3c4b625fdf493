"""From raw figures to what is shown: medians over the rounds (means for accuracy), and xbert's ratio to each peer."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import mean, median
from typing import Any

import accuracy
import roster

Steps = dict[str, dict[str, Any]]
NOISY = 0.10  # share of the cores that others used during a step
HIGH, LOW, POINTS, PLAIN = "high", "low", "points", "plain"  # which is better; points are subtracted, plain not compared


@dataclass(frozen=True)
class Figure:
    """A row of the table."""

    title: str
    steps: tuple[str, ...]  # the first of these that a system has
    key: str
    better: str

    def of(self, rounds: list[dict[str, Any]]) -> "Value | None":
        """Its values over the rounds; of several ways to predict the best. None where there is none."""
        found = [value for each in rounds if (value := self._once(each["steps"])) is not None]
        if not found:
            return None
        extrapolated = any(step.get("extrapolated") for each in rounds for step in self._chosen(each["steps"]))
        if extrapolated and self.key != "train_s":
            return None  # memory of a sample says nothing of the whole
        middle = mean(found) if self.better == POINTS else median(found)
        return Value(middle, min(found), max(found), extrapolated)

    def _chosen(self, steps: Steps) -> list[dict[str, Any]]:
        for name in self.steps:
            chosen = [step for key, step in steps.items() if key == name or key.startswith(f"{name}/")]
            if chosen:
                return chosen
        return []

    def _once(self, steps: Steps) -> float | None:
        chosen = self._chosen(steps)
        if self.better == POINTS:
            found = [step["accuracy"][self.key] for step in chosen if "accuracy" in step][:1]
        else:
            found = [step[self.key] for step in chosen if self.key in step]
        best: Callable[[list[float]], float] = max if self.better == HIGH else min
        return best(found) if found else None


@dataclass(frozen=True)
class Value:
    """A figure of one system."""

    middle: float
    low: float
    high: float
    extrapolated: bool


TABLE: dict[str, tuple[Figure, ...]] = {
    "Text to features": (
        Figure("fit and transform of train, 1 thread, MB/s", ("features-1",), "fit_mb_per_s", HIGH),
        Figure("the same, 2 threads", ("features-2",), "fit_mb_per_s", HIGH),
        Figure("transform of test, 1 thread, docs/s", ("features-1",), "transform_docs_per_s", HIGH),
        Figure("the same, 2 threads", ("features-2",), "transform_docs_per_s", HIGH),
    ),
    "Training from the same rows, 2 threads": (
        Figure("seconds", ("train", "train_text"), "train_s", LOW),
        Figure("peak memory, MB", ("train",), "peak_mb", LOW),
        Figure("of it before training, MB", ("train",), "rss_before_mb", PLAIN),
        Figure("model on disk, MB", ("train", "train_text"), "model_mb", LOW),
    ),
    "Prediction from the same rows, top 10": (
        Figure("batch, 1 thread, docs/s", ("predict",), "docs_per_s_1", HIGH),
        Figure("batch, 2 threads, docs/s", ("predict",), "docs_per_s_2", HIGH),
        Figure("peak memory, MB", ("predict",), "peak_mb", LOW),
        Figure("of it before loading, MB", ("predict",), "rss_before_load_mb", PLAIN),
        Figure("one document, p50, ms", ("predict",), "p50_ms", LOW),
        Figure("one document, p99, ms", ("predict",), "p99_ms", LOW),
    ),
    "From raw text, one document, 1 thread": (
        Figure("p50, ms", ("latency",), "p50_ms", LOW),
        Figure("p99, ms", ("latency",), "p99_ms", LOW),
    ),
    "Accuracy on test, percent": tuple(
        Figure(name, ("predict", "train_text"), name, POINTS) for name in accuracy.SHOWN
    ),
}  # fmt: skip


def compared(figure: Figure, ours: Value | None, theirs: Value | None) -> str:
    """`2.10x`: xbert : peer, turned so that above 1 xbert is ahead; for accuracy the difference in points."""
    if ours is None or theirs is None or figure.better == PLAIN:
        return ""
    if figure.better == POINTS:
        return f"{ours.middle - theirs.middle:+.2f}"
    upper, lower = (ours, theirs) if figure.better == HIGH else (theirs, ours)
    return f"{upper.middle / lower.middle:.2f}x" if lower.middle else ""


def number(value: float) -> str:
    """Three digits that count, thousands apart."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}" if abs(value) >= 1 else f"{value:.3f}"


def written(figure: Figure, value: Value | None) -> str:
    """A value as it stands in the table; accuracy with its range over the rounds."""
    if value is None:
        return "-"
    if figure.better == POINTS:
        spread = f" [{value.low:.2f}, {value.high:.2f}]" if value.high > value.low else ""
        return f"{value.middle:.2f}{spread}"
    return ("~" if value.extrapolated else "") + number(value.middle)


def rows(result: dict[str, Any]) -> Iterator[tuple[str, list[str]]]:
    """The table: (title, a cell for each system); a title without cells begins a group."""
    systems = result["systems"]
    for group, chosen in TABLE.items():
        yield group, []
        for figure in chosen:
            values = {key: figure.of(system["rounds"]) for key, system in systems.items()}
            cells = []
            for key, value in values.items():
                ratio = "" if key in (roster.OURS, roster.WITH_DEFAULT) else compared(figure, values.get(roster.OURS), value)
                cells.append(written(figure, value) + (f" ({ratio})" if ratio else ""))
            yield figure.title, cells


def disturbance(result: dict[str, Any]) -> list[str]:
    """How loaded the machine was, in sentences: over all, and which steps were noisy."""
    noise, noisy = [], []
    for system in result["systems"].values():
        steps = [
            (name, one["seed"], step) for one in system["rounds"] for name, step in one["steps"].items() if "noise" in step
        ]
        noise += [step["noise"] for _, _, step in steps]
        loud = [f"{name} {step['noise']:.0%} (round {seed})" for name, seed, step in steps if step["noise"] > NOISY]
        noisy += [f"{system['title']}: {', '.join(loud)}"] if loud else []
    if not noise:
        return ["Nothing was measured."]
    count = sum(share > NOISY for share in noise)
    overall = (
        f"Other processes used {100 * median(noise):.1f} % of the cores during the median step and {100 * max(noise):.0f} % "
        f"during the worst; {count} of {len(noise)} steps were noisy (above {NOISY:.0%})."
    )
    return [overall, *(f"Noisy steps of {each}." for each in noisy)]


RATIO = "In brackets: xbert : peer, turned so that above 1x xbert is ahead; for accuracy, points that xbert is ahead."


def terminal(result: dict[str, Any]) -> str:
    """The table for a terminal."""
    titles = [system["title"] for system in result["systems"].values()]
    found = list(rows(result))
    widths = [max(len(title), *(len(cells[i]) for _, cells in found if cells)) for i, title in enumerate(titles)]
    first = max(len(title) for title, _ in found) + 2
    lines = [f"\n{result['dataset']}: {result['rounds']} rounds, {result['date']}", ""]
    lines.append(" " * first + "  ".join(title.rjust(width) for title, width in zip(titles, widths, strict=True)))
    for title, cells in found:
        if cells:
            values = "  ".join(cell.rjust(width) for cell, width in zip(cells, widths, strict=True))
            lines.append(f"  {title}".ljust(first) + values)
        else:
            lines.append(title)
    return "\n".join([*lines, "", RATIO, *disturbance(result), *(f"warning: {each}" for each in result["warnings"])])
