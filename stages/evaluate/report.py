"""The report: one HTML page that needs nothing else, says how sure its numbers are, and is always the same bytes."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from xbert.artifacts.arrays import Array
from xbert.artifacts.kinds.evaluation import COMPARISON, ENSEMBLE
from xbert.stages.evaluate import plots
from xbert.stages.evaluate.compared import section
from xbert.stages.evaluate.definitions import definitions
from xbert.stages.evaluate.style import STYLE
from xbert.stages.metrics.ranking import names as metric_names

_LONGEST = 200  # characters of a fact that are shown
_HEAD = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>Evaluation</title>
"""


@dataclass(frozen=True, eq=False)
class Facts:
    """What the page tells besides the metrics."""

    documents: dict[str, int]  # of every split, train too
    assignments: dict[str, int]  # true (document, label) pairs of every split
    splits: list[str]  # those measured
    counts: Array  # (n_labels,) training documents
    cluster_sizes: dict[str, Array]  # of every single model
    found: dict[str, Any]  # what the reader of the corpus noted
    ks: tuple[int, ...]
    propensity: tuple[float, float]
    bootstrap: int
    confidence: float
    few: int
    medium: int


def page(metrics: dict[str, Any], facts: Facts) -> str:
    """The whole page. Every word that comes from the user is escaped."""
    splits = [split for split in ("test", "valid") if split in facts.splits]
    links = "".join(f'<a href="#{split}">{split}</a>' for split in splits)
    compared = metrics.get(COMPARISON, {})
    metrics = {name: found for name, found in metrics.items() if name != COMPARISON}
    parts = [
        f"{_HEAD}<style>{STYLE}</style>\n</head>\n<body>\n<h1>Evaluation</h1>",
        f'<p class="lead">{_models(metrics)}</p>',
        f'<nav>{links}<a href="#data">data</a><a href="#terms">definitions</a></nav>',
        _numbers(facts),
        _notes(metrics, facts),
        *(_split(split, metrics, facts) + section(split, compared.get(split, {})) for split in splits),
        _data(facts),
        _terms(facts),
        "</body>\n</html>\n",
    ]
    return "\n".join(parts)


def _models(metrics: dict[str, Any]) -> str:
    singles = [name for name in metrics if name != ENSEMBLE]
    together = " and their ensemble" if ENSEMBLE in metrics else ""
    return f"{'Models' if len(singles) > 1 else 'Model'}: {escape(', '.join(singles))}{together}."


def _numbers(facts: Facts) -> str:
    n_train = max(facts.documents["train"], 1)
    shown = [(f"{split} documents", f"{n:,}") for split, n in facts.documents.items()]
    shown.append(("labels", f"{len(facts.counts):,}"))
    shown.append(("labels per training document", f"{facts.assignments['train'] / n_train:.2f}"))
    few = int(((facts.counts > 0) & (facts.counts <= facts.few)).sum())
    shown.append((f"labels with 1 to {facts.few} training documents", f"{few:,}"))
    return f'<dl class="numbers">{"".join(f"<div><dt>{term}</dt><dd>{value}</dd></div>" for term, value in shown)}</dl>'


def _notes(metrics: dict[str, Any], facts: Facts) -> str:
    """What a reader has to know not to be misled."""
    a, b = facts.propensity
    notes = ["All metrics are in percent and measure the order of the labels named for a document."]
    if facts.bootstrap:
        notes.append(
            f"Brackets hold {facts.confidence:g}% bootstrap intervals from {facts.bootstrap:,} draws of the documents: "
            "they tell how much the choice of documents matters, not how much another training run would."
        )
    else:
        notes.append("No intervals were asked for: small differences may be chance.")
    notes.append("Scores are not calibrated probabilities: a score of 0.8 does not mean that a label is right 8 times in 10.")
    if {"valid", "test"} <= set(facts.splits):
        notes.append("Training may have been stopped, or settings chosen, on valid: quote the numbers of test.")
    notes.append(
        f"PSP uses A = {a:g} and B = {b:g} (customary: 0.5 and 0.4 for Wikipedia sets, 0.6 and 2.6 for Amazon sets, "
        "0.55 and 1.5 for all others); compare it only with numbers of the same constants."
    )
    if ENSEMBLE in metrics:
        notes.append(
            "The ensemble costs as much as all of its members together: compare it with ensembles, models with models."
        )
    notes.append("Numbers of another split or version of a data set, even of the same name, are not comparable.")
    return f'<ul class="notes">{"".join(f"<li>{note}</li>" for note in notes)}</ul>'


def _split(split: str, metrics: dict[str, Any], facts: Facts) -> str:
    found = {name: splits[split] for name, splits in metrics.items() if split in splits}
    singles = {name: one for name, one in found.items() if "matcher" in one}
    figures = [
        plots.macro_f(f"{split}-macro", found, facts.few, facts.medium),
        plots.recall_by_frequency(f"{split}-recall", found),
        plots.matcher_recall(f"{split}-matcher", singles),
    ]
    if found.get(ENSEMBLE, {}).get("gain"):
        figures.append(plots.ensemble_gain(f"{split}-gain", found[ENSEMBLE]["gain"]))
    first: dict[str, Any] = next(iter(found.values()), {})
    parts = [
        f'<h2 id="{split}">{split.capitalize()} split</h2>',
        f"<p>{_size(split, first, facts)}</p>",
        '<div class="tables">',
        _table("All labels", found, list(_overall_rows(found, facts.ks))),
        '<div class="stack">',
        _table("By label frequency", found, list(_frequency_rows(found, facts))),
        _table("Matcher", singles, list(_matcher_rows(singles))),
        "</div></div>",
        f'<div class="figures">{"".join(figures)}</div>',
    ]
    return "\n".join(parts)


def _size(split: str, first: dict[str, Any], facts: Facts) -> str:
    n_docs, pairs, table = facts.documents[split], facts.assignments[split], first["by_frequency"]
    met = sum(group["labels"] for group in table.values())
    text = f"{n_docs:,} documents, {pairs:,} true assignments of {met:,} different labels out of {len(facts.counts):,}."
    if first["unlabelled"]:
        text += f" Documents without a true label: {first['unlabelled']:,}; they count 0 in every mean."
    if table["unseen"]["labels"]:
        words = f"Labels without a training document: {table['unseen']['labels']:,} of these"
        text += f" {words}, with {table['unseen']['share']:.2f}% of the assignments."
    return text


_Row = tuple[str, list[str], str]  # name, cells as HTML, class of the row


def _overall_rows(found: dict[str, Any], ks: tuple[int, ...]) -> Iterator[_Row]:
    for name in metric_names(ks):
        kind = "first" if name.endswith(f"@{ks[0]}") else ""
        yield name, [_cell(one[name], one["intervals"].get(name)) for one in found.values()], kind
    yield "coverage@5", [_cell(one["coverage@5"]) for one in found.values()], "first"
    for k in ks:
        yield f"PSP@{k}, seen labels", [_cell(one["seen"][f"PSP@{k}"]) for one in found.values()], "first" if k == ks[0] else ""


def _frequency_rows(found: dict[str, Any], facts: Facts) -> Iterator[_Row]:
    first = next(iter(found.values()), None)
    if first is None:
        return
    ranges = {"few": f"1-{facts.few}", "medium": f"{facts.few + 1}-{facts.medium}", "many": f">{facts.medium}"}
    for group, words in ranges.items():
        table = first["by_frequency"][group]
        yield f"{group} ({words} training documents): {table['labels']:,} of {table['of']:,} labels occur", [], "group"
        for name in ("P@5", "R@5", "F@5"):
            yield f"macro {name}", [_cell(one["by_frequency"][group][name]) for one in found.values()], ""
    head, tail = _cell(first["head"]["share"]), _cell(first["tail"]["share"])
    yield f"true assignments: {head}% head (many), {tail}% tail (few)", [], "group"
    for group in ("head", "tail"):
        yield f"{group} R@5", [_cell(one[group]["R@5"]) for one in found.values()], ""


def _matcher_rows(singles: dict[str, Any]) -> Iterator[_Row]:
    tables = [one["matcher"] for one in singles.values()]
    yield "clusters", [f"{table['clusters']:,}" for table in tables], ""
    for name in ("P@1", "P@3", "P@5"):
        yield f"{name} over clusters", [_cell(table[name]) for table in tables], ""
    for b in sorted({int(b) for table in tables for b in table["recall"]}):
        yield (
            f"recall in first {b:,}",
            [_cell(table["recall"].get(str(b))) for table in tables],
            "first" if b == 1 else "",
        )


def _cell(value: float | None, interval: list[float] | None = None) -> str:
    if value is None:
        return "&ndash;"
    bounds = f"<small>[{interval[0]:.2f}, {interval[1]:.2f}]</small>" if interval else ""
    return f"{value:.2f}{bounds}"


def _table(title: str, models: Iterable[str], rows: Sequence[_Row]) -> str:
    """Metrics down, models across: it grows downwards, which a phone can show."""
    names = list(models)
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in names)
    body = []
    for name, cells, kind in rows:
        if kind == "group":
            body.append(f'<tr class="group"><th scope="colgroup" colspan="{len(names) + 1}">{escape(name)}</th></tr>')
        else:
            values = "".join(f"<td>{cell}</td>" for cell in cells)
            body.append(f'<tr class="{kind}"><th scope="row">{escape(name, quote=False)}</th>{values}</tr>')
    text = f'<table><thead><tr><th scope="col">percent</th>{head}</tr></thead><tbody>{"".join(body)}</tbody></table>'
    region = f'<div class="scroll" tabindex="0" role="region" aria-label="{title}">{text}</div>'
    return f"<section><h3>{title}</h3>\n{region}</section>"


def _data(facts: Facts) -> str:
    figures = plots.label_frequency(facts.counts, facts.few, facts.medium) + plots.cluster_sizes(facts.cluster_sizes)
    rows = "".join(
        f'<tr><th scope="row" class="words">{escape(name)}</th><td class="words">{escape(value)}</td></tr>'
        for name, value in flat("", facts.found)
    )
    table = f'<h3>Facts</h3><div class="scroll"><table><tbody>{rows}</tbody></table></div>' if rows else ""
    return f'<h2 id="data">Data</h2>\n<div class="figures">{figures}</div>\n{table}'


def flat(prefix: str, found: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The facts as lines of name and value; tables within tables get dotted names, long values are cut."""
    for key, value in found.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict):
            yield from flat(f"{name}.", value)
            continue
        number = isinstance(value, int) and not isinstance(value, bool)
        words = f"{value:,}" if number else ", ".join(map(str, value)) if isinstance(value, list) else str(value)
        yield name, words if len(words) <= _LONGEST else f"{words[:_LONGEST]} ..."


def _terms(facts: Facts) -> str:
    terms = definitions(*facts.propensity, facts.few, facts.medium)
    items = "".join(f"<dt>{escape(term)}</dt><dd>{escape(sentence)}</dd>" for term, sentence in terms)
    return f'<h2 id="terms">Definitions</h2>\n<dl class="terms">{items}</dl>'
