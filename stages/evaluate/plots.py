"""The figures of the report: each takes metrics or counts and gives an HTML figure with a caption of what is seen.

A model keeps its number, and so its colour, in every figure.
"""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

from xbert.artifacts.arrays import Array
from xbert.stages.evaluate.comparison import SHOWN
from xbert.stages.evaluate.svg import COLOURS, Axis, Bars, Chart, legend

CLASSES = ("few", "medium", "many")
DEPTHS = ("P@1", "P@3", "P@5")
_CLUSTER_TICKS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000)


def figure(chart: Chart, key: str, caption: str) -> str:
    """A chart with its heading, the key to its series, and a caption."""
    heading = f"<h3>{escape(chart.title)}</h3>"
    return f"<figure>{heading}\n{chart.svg()}\n{key}<figcaption>{escape(caption)}</figcaption></figure>"


def _bar_figure(chart: Chart, rows: Sequence[Bars], caption: str) -> str:
    for slot, row in enumerate(rows):
        chart.bars(row, slot, len(rows))
    return figure(chart, legend([(row.series, row.name) for row in rows], solid=True), caption)


def _line_figure(chart: Chart, names: Sequence[str], caption: str) -> str:
    return figure(chart, legend(list(enumerate(names))), caption)


def label_frequency(counts: Array, few: int, medium: int) -> str:
    """Training documents of each label over its rank, both logarithmic: a straight line is Zipf's law."""
    ordered = np.sort(counts[counts > 0])[::-1]
    n_seen = len(ordered)
    top = int(ordered[0]) if n_seen else 1
    about = f"{n_seen:,} labels; the most frequent one has {top:,} training documents."
    x, y = Axis.powers("rank of the label", n_seen), Axis.powers("training documents", top)
    chart = Chart("zipf", "Label frequency", about, x, y)
    chart.line([(rank, float(ordered[rank - 1])) for rank in _log_ranks(n_seen)], 0)
    for bound, words in ((few, "few"), (medium, "medium")):
        if bound < y.high:
            chart.rule(bound, f"{words}: up to {bound:,}")
    caption = "Labels by number of training documents, most frequent first; both axes are logarithmic."
    if n_seen < len(counts):
        caption += f" Not drawn: {len(counts) - n_seen:,} labels without a training document."
    return figure(chart, "", caption)


def _log_ranks(n: int, points: int = 160) -> list[int]:
    """Ranks 1..n, evenly spaced on a logarithmic axis."""
    return sorted({int(rank) for rank in np.geomspace(1, n, points).round()}) if n else []


def cluster_sizes(sizes: Mapping[str, Array]) -> str:
    """Labels per cluster, the largest first, over the share of the clusters; a line per model."""
    largest = max((int(one.max(initial=0)) for one in sizes.values()), default=1)
    about = "; ".join(f"{name}: {len(one):,} clusters of {one.min():,} to {one.max():,} labels" for name, one in sizes.items())
    x = Axis.linear("percent of the clusters, largest first", 0, 100)
    chart = Chart("clusters", "Cluster sizes", about, x, Axis.linear("labels in the cluster", 0, largest))
    for series, one in enumerate(sizes.values()):
        ordered = np.sort(one)[::-1].astype(float)
        at = np.unique(np.linspace(0, len(ordered) - 1, 160).round().astype(int))
        share = 100 * at / max(len(ordered) - 1, 1)
        chart.line(list(zip(share.tolist(), ordered[at].tolist(), strict=True)), series)
    return _line_figure(chart, list(sizes), f"{about}.")


def macro_f(key: str, found: Mapping[str, Any], few: int, medium: int) -> str:
    """Macro F@5 of few-, medium- and many-shot labels, a bar per model."""
    labels = [f"few (1-{few})", f"medium ({few + 1}-{medium})", f"many (>{medium})"]
    rows = []
    for series, (name, one) in enumerate(found.items()):
        values = [one["by_frequency"][group]["F@5"] for group in CLASSES]
        notes = [f"{name}, {label}: {_shown(value)}" for label, value in zip(labels, values, strict=True)]
        rows.append(Bars(name, series, values, notes))
    # Bars start at 0, always: a cut axis makes small differences look large.
    highest = max((value for row in rows for value in row.values if value is not None), default=0.0)
    y = Axis.linear("percent", 0, min(100.0, max(highest * 1.05, 5.0)))
    about = "; ".join(note for row in rows for note in row.notes)
    chart = Chart(key, "Macro F@5 by label frequency", about, Axis.named("training documents of the label", labels), y)
    met = next(iter(found.values()))["by_frequency"]
    sizes = ", ".join(f"{met[group]['labels']:,} {group}" for group in CLASSES)
    caption = f"Mean over the labels that are true somewhere in this split ({sizes}), each counting the same."
    return _bar_figure(chart, rows, caption)


def recall_by_frequency(key: str, found: Mapping[str, Any]) -> str:
    """Micro recall@5 of labels binned by training documents, a line per model."""
    bins = next(iter(found.values()))["recall_bins"]
    ranges = ", ".join(one["documents"] for one in bins)
    about = f"Recall of {', '.join(found)} for labels of {ranges} training documents."
    x = Axis.named("training documents of the label, from", [str(one["from"]) for one in bins])
    chart = Chart(key, "Recall@5 by label frequency", about, x, Axis.linear("percent", 0, 100))
    for series, (name, one) in enumerate(found.items()):
        notes = [f"{name}, {part['documents']} training documents: {part['R@5']:.2f}" for part in one["recall_bins"]]
        chart.line([(place, part["R@5"]) for place, part in enumerate(one["recall_bins"])], series, notes)
    caption = "Share of the true assignments found among the first 5; a point covers labels from its number to the next."
    return _line_figure(chart, list(found), caption)


def matcher_recall(key: str, found: Mapping[str, Any]) -> str:
    """Recall of true labels by number of clusters, a line per model."""
    curves = {name: [(int(b), value) for b, value in one["matcher"]["recall"].items()] for name, one in found.items()}
    widest = max((b for curve in curves.values() for b, _ in curve), default=1)
    lowest = min((value for curve in curves.values() for _, value in curve), default=0.0)
    about = "; ".join(f"{name}: {curve[-1][1]:.2f} within {curve[-1][0]:,}" for name, curve in curves.items() if curve)
    x = Axis("clusters looked into", 1, max(widest, 2), _cluster_ticks(widest), log=True)
    y = Axis.linear("percent", min(10 * (lowest // 10), 90.0), 100)
    chart = Chart(key, "Recall of the matcher", about, x, y)
    for series, (name, curve) in enumerate(curves.items()):
        notes = [f"{name}, first {b:,} clusters: {value:.2f}" for b, value in curve]
        chart.line([(float(b), value) for b, value in curve], series, notes)
    cut = f" The axis starts at {y.low:g}." if y.low else ""
    caption = f"True labels whose cluster is among the first ones: no ranker can find more.{cut}"
    return _line_figure(chart, list(curves), caption)


def _cluster_ticks(widest: int) -> list[tuple[float, str]]:
    return [(b, f"{b:,}") for b in _CLUSTER_TICKS if b <= widest]


def ensemble_gain(key: str, gain: Mapping[str, Any]) -> str:
    """Points the ensemble adds to each member and to the best one, as figure 5 of the X-BERT paper."""
    pairs = {name: [(one[depth], one["intervals"].get(depth, ())) for depth in DEPTHS] for name, one in gain.items()}
    best = [min(column, key=lambda pair: pair[0]) for column in zip(*pairs.values(), strict=True)]
    rows = [_gain_row("over the best single model", COLOURS - 1, DEPTHS, best)]
    rows += [_gain_row(f"over {name}", series, DEPTHS, pairs[name]) for series, name in enumerate(pairs)]
    ends = [0.0, 0.5, *(value for row in pairs.values() for gained, bounds in row for value in (gained, *bounds))]
    y = Axis.linear("points", min(ends), max(ends) * 1.12)  # room above for the numbers
    about = "; ".join(note for row in rows for note in row.notes)
    chart = Chart(key, "Gain of the ensemble", about, Axis.named("", DEPTHS), y)
    caption = "Absolute difference in points; the best single model is the best of each metric on this split."
    return _bar_figure(chart, rows, caption)


def ensembles(key: str, single: Mapping[str, Any], groups: Sequence[tuple[str, Mapping[str, Any]]]) -> str:
    """Points by which ensembles, and the mean of the models, differ from the best single model: figure 5 of X-BERT."""
    drawn = _drawn(groups)
    mean = [(round(single["mean"][metric] - single["best"][metric], 2), ()) for metric in SHOWN]
    rows = [_gain_row("mean of the single models", COLOURS - 1, SHOWN, mean)]
    for series, (name, one) in enumerate(drawn):
        pairs = [(one["gain"][metric], one["gain"]["intervals"].get(metric, ())) for metric in SHOWN]
        rows.append(_gain_row(f"ensemble of {name}", series, SHOWN, pairs))
    ends = [0.0, 0.5, *(value for row in rows for value in row.values if value is not None)]
    ends += [bound for row in rows for bounds in row.intervals for bound in bounds]
    y = Axis.linear("points", min(ends) * 1.12, max(ends) * 1.12)  # room for the numbers
    about = "; ".join(note for row in rows for note in row.notes)
    chart = Chart(key, "Ensembles beside the best single model", about, Axis.named("", SHOWN), y)
    caption = "Absolute difference in points; zero is the best single model of each metric on this split."
    if rows[-1].intervals:
        caption += " Whiskers are bootstrap intervals of the difference."
    if len(drawn) < len(groups):
        caption += f" Drawn are {len(drawn)} of {len(groups)} ensembles; the table has all."
    return _bar_figure(chart, rows, caption)


def _drawn(groups: Sequence[tuple[str, Mapping[str, Any]]]) -> list[tuple[str, Mapping[str, Any]]]:
    """As many groups as there are colours: the finest ones are left out first, the last one, of all models, never."""
    most = COLOURS - 1
    if len(groups) > most:
        groups = [(name, one) for name, one in groups if one["embedding"] is None or one["matcher"] is None]
    return list(groups) if len(groups) <= most else [*groups[: most - 1], groups[-1]]


def _gain_row(name: str, series: int, metrics: Sequence[str], pairs: Sequence[tuple[float, Sequence[float]]]) -> Bars:
    notes = [
        f"{name}, {metric}: {value:+.2f}{_between(bounds)}" for metric, (value, bounds) in zip(metrics, pairs, strict=True)
    ]
    return Bars(name, series, [value for value, _ in pairs], notes, [bounds for _, bounds in pairs if bounds])


def _between(bounds: Sequence[float]) -> str:
    return f" [{bounds[0]:+.2f}, {bounds[1]:+.2f}]" if bounds else ""


def _shown(value: float | None) -> str:
    return "none" if value is None else f"{value:.2f}"
