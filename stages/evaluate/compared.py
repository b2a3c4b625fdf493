"""The report's section on how the models of a run compare: table 2 and figure 5 of the X-BERT paper, on one's own data."""

from collections.abc import Mapping, Sequence
from html import escape
from itertools import groupby
from typing import Any

from xbert.stages.evaluate import plots
from xbert.stages.evaluate.comparison import SHOWN, STAGES
from xbert.stages.kernels.combine import WEIGHTED

_FAMILIES = {"x-ttention": "X-ttention", "bilstm": "BiLSTM"}


def section(split: str, compared: Mapping[str, Any]) -> str:
    """Both tables and the figure; "" where there are not several models."""
    if not compared:
        return ""
    parts = [f'\n<h3 id="{split}-matchers">Label embeddings and matchers</h3>', _matchers(compared["matchers"])]
    if compared.get("ensembles"):
        parts += [f'<h3 id="{split}-ensembles">Single models and ensembles</h3>', _ensembles(split, compared)]
    return "\n".join(parts)


def _matchers(rows: Sequence[Mapping[str, Any]]) -> str:
    """Table 2: matchers within embeddings down, both stages across."""
    columns = [(stage, metric) for stage in ("matching", "ranking") for metric in STAGES]
    best = _best([[row[stage][metric] for stage, metric in columns] for row in rows])
    body = []
    for embedding, each in groupby(zip(rows, best, strict=True), key=lambda pair: pair[0]["embedding"]):
        body.append(f'<tr class="group"><th scope="colgroup" colspan="8">{escape(embedding_title(embedding))}</th></tr>')
        for row, marked in each:
            cells = [_cell(row[stage][metric], mark) for (stage, metric), mark in zip(columns, marked, strict=True)]
            body.append(_row(matcher_title(row["matcher"]), len(row["models"]), cells))
    names = "".join(f'<th scope="col">{metric}</th>' for _, metric in columns)
    head = (
        '<tr class="over"><th></th><th></th><th scope="colgroup" colspan="3">matching stage, over clusters</th>'
        '<th scope="colgroup" colspan="3">ranking stage, over labels</th></tr>'
        f'<tr><th scope="col">percent</th><th scope="col">models</th>{names}</tr>'
    )
    words = "Means over the models of a row, which differ in seeds or settings."
    if len(rows) > 1:
        words += " The best of each column is in bold."
    if len({row["embedding"] for row in rows}) > 1:
        words += " Each embedding makes clusters of its own, so compare the matching stage within an embedding."
    return f'{_scroll("Label embeddings and matchers", head, body)}\n<p class="soft">{words}</p>'


def _ensembles(split: str, compared: Mapping[str, Any]) -> str:
    """Figure 5, as a table and, where there are groups to compare, as a figure."""
    single = compared["single"]
    groups = [(group_title(row), row) for row in compared["ensembles"]]
    lines = [("single models, mean", single["models"], single["mean"]), ("single models, best", 1, single["best"])]
    lines += [(f"ensemble of {name}", len(row["models"]), row) for name, row in groups]
    best = _best([[values[metric] for metric in SHOWN] for _, _, values in lines])
    body = [
        _row(name, n_models, [_cell(values[metric], mark) for metric, mark in zip(SHOWN, marked, strict=True)])
        for (name, n_models, values), marked in zip(lines, best, strict=True)
    ]
    names = "".join(f'<th scope="col">{metric}</th>' for metric in SHOWN)
    head = f'<tr><th scope="col">percent</th><th scope="col">models</th>{names}</tr>'
    text = f'{_scroll("Single models and ensembles", head, body)}\n<p class="soft">{_how(compared)}</p>'
    if len(groups) > 1:  # else the gain of the one ensemble is drawn above
        text += f'\n<div class="alone">{plots.ensembles(f"{split}-ensemble-gain", single, groups)}</div>'
    return text


def _how(compared: Mapping[str, Any]) -> str:
    way = compared["combine"]
    words = "The best of each column is in bold; the best single model is the best of each metric on this split. "
    if way != WEIGHTED:
        return words + f"Every ensemble is combined as the run's own ({escape(way)}), all members counting the same."
    return words + (
        "Members of every ensemble here count the same (average); the run's own ensemble has weights learnt on the "
        "validation split, and may differ from the ensemble of all models here."
    )


def _best(rows: Sequence[Sequence[float]]) -> list[list[bool]]:
    """Where the best values of each column are; nowhere in a single row, which has nothing to be better than."""
    tops = [max(column) for column in zip(*rows, strict=True)]
    return [[len(rows) > 1 and value == top for value, top in zip(row, tops, strict=True)] for row in rows]


def _cell(value: float, best: bool) -> str:
    return f"<td><strong>{value:.2f}</strong></td>" if best else f"<td>{value:.2f}</td>"


def _row(name: str, n_models: int, cells: Sequence[str]) -> str:
    return f'<tr><th scope="row">{escape(name)}</th><td>{n_models:,}</td>{"".join(cells)}</tr>'


def _scroll(title: str, head: str, body: Sequence[str]) -> str:
    table = f"<table><thead>{head}</thead><tbody>{''.join(body)}</tbody></table>"
    return f'<div class="scroll" tabindex="0" role="region" aria-label="{title}">{table}</div>'


def embedding_title(embedding: str) -> str:
    """An embedding's name as the paper writes it: "pifa+text" is "PIFA + text"."""
    return " + ".join("PIFA" if part == "pifa" else part for part in embedding.split("+"))


def matcher_title(family: str) -> str:
    """A family of matchers as the paper writes it."""
    return _FAMILIES.get(family, family)


def group_title(row: Mapping[str, Any]) -> str:
    """What the members of an ensemble share."""
    if row["matcher"] is None:
        return "all models" if row["embedding"] is None else embedding_title(row["embedding"])
    matcher = matcher_title(row["matcher"])
    return f"{matcher} matchers" if row["embedding"] is None else f"{embedding_title(row['embedding'])}, {matcher}"
