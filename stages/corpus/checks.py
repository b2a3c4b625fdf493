"""What a person should know of a dataset before training on it: sizes, the tail, duplicates, leakage."""

from typing import Any

import numpy as np

from xbert.artifacts.arrays import Array, Strings
from xbert.artifacts.kinds.dataset import SPLITS, Labels
from xbert.artifacts.sparse import Sparse
from xbert.stages.corpus.documents import Documents
from xbert.stages.corpus.notes import Notes

_TAIL = (1, 5, 20)
_GAPS = np.isin(np.arange(256), np.frombuffer(b" \t\n\r\x0b\x0c", np.uint8))


def find_facts(labels: Labels, splits: dict[str, Documents], notes: Notes) -> dict[str, Any]:
    """Plain JSON; counts are of the training split unless they say otherwise."""
    train = splits["train"]
    counts = train.Y.column_counts()
    lengths = words_per_document(train.texts) if train.texts is not None else _row_lengths(train.X)
    facts: dict[str, Any] = {
        "documents": {name: len(splits[name]) for name in SPLITS if name in splits},
        "labels": len(labels),
        "labels_in_training": int(np.count_nonzero(counts)),
        "labels_with_text": int(np.count_nonzero(np.diff(labels.texts.offsets))),
        "parent_links": labels.parents.nnz,
        "labels_per_document": _spread(train.Y.row_lengths()),
        "documents_per_label": _spread(counts[counts > 0]),
        "tail": _tail(counts),
        "terms" if train.texts is None else "words": {"median": _rounded(np.median(lengths))},
        "empty_documents": int(np.count_nonzero(lengths == 0)),
        "duplicate_documents": len(train) - len(np.unique(train.digests)),
        "unlabelled_documents": {name: int(np.count_nonzero(split.Y.row_lengths() == 0)) for name, split in splits.items()},
        "repeated_labels": notes.repeated_labels,
        "unknown_parents": notes.unknown_parents,
        "held_out": {name: _compared(splits[name], train, counts) for name in ("valid", "test") if name in splits},
    }
    facts["warnings"] = [*notes.warnings, *_warnings(facts)]
    return facts


def words_per_document(texts: Strings) -> Array:
    """Runs of characters between ASCII white space, (n_docs,) int64; counted in the bytes, block by block."""
    counts = np.zeros(len(texts), np.int64)
    offsets = np.asarray(texts.offsets)
    start = 0
    while start < len(texts):
        stop = max(start + 1, int(np.searchsorted(offsets, offsets[start] + (1 << 22), side="right")) - 1)
        here = offsets[start : stop + 1] - offsets[start]
        gaps = _GAPS[texts.blob[offsets[start] : offsets[stop]]]
        begins = ~gaps
        begins[1:] &= gaps[:-1]
        starts = here[here < len(gaps)]
        begins[starts] = ~gaps[starts]  # a word ends with its document
        counts[start:stop] = np.diff(np.searchsorted(np.flatnonzero(begins), here))
        start = stop
    return counts


def _row_lengths(X: Sparse | None) -> Array:
    return np.zeros(0, np.int64) if X is None else X.row_lengths()


def _rounded(value: Any) -> float:
    return round(float(value), 6)


def _spread(counts: Array) -> dict[str, float]:
    if not len(counts):
        return {"mean": 0.0, "median": 0.0, "max": 0}
    return {"mean": _rounded(counts.mean()), "median": _rounded(np.median(counts)), "max": int(counts.max())}


def _tail(counts: Array) -> dict[str, float | None]:
    """Shares of all labels by their training documents, and how steeply frequency falls with rank."""
    seen = np.sort(counts[counts > 0])[::-1]
    top = max(1, len(seen) // 100)
    return {
        "share_0": _rounded(np.mean(counts == 0)),
        "share_1": _rounded(np.mean(counts == 1)),
        **{f"share_1_to_{most}": _rounded(np.mean((counts >= 1) & (counts <= most))) for most in _TAIL[1:]},
        "zipf_exponent": _zipf_exponent(seen),
        "top_1_percent": _rounded(seen[:top].sum() / max(1, seen.sum())),
    }


def _zipf_exponent(frequencies: Array) -> float | None:
    """s of frequency ~ rank^-s, by least squares on the logarithms; None for fewer than two labels."""
    if len(frequencies) < 2:
        return None
    rank, frequency = np.log(np.arange(1, len(frequencies) + 1)), np.log(frequencies)
    rank = rank - rank.mean()
    return _rounded(-(rank @ (frequency - frequency.mean())) / (rank @ rank))


def _compared(split: Documents, train: Documents, counts: Array) -> dict[str, float]:
    unseen = counts[split.Y.indices] == 0
    leaked = int(np.count_nonzero(np.isin(split.digests, train.digests)))
    return {
        "unseen_labels": len(np.unique(split.Y.indices[unseen])),
        "unseen_assignments": _rounded(np.mean(unseen)) if len(unseen) else 0.0,
        "leaked_documents": leaked,
        "leaked_share": _rounded(leaked / max(1, len(split))),
    }


def _warnings(facts: dict[str, Any]) -> list[str]:
    documents, found = facts["documents"], []
    for name in ("valid", "test"):
        if name not in documents:
            use = "settings cannot be chosen or training stopped by it" if name == "valid" else "nothing can be evaluated"
            found.append(f"there is no {name} split: {use}")
    for name, split in facts["held_out"].items():
        if split["leaked_documents"]:
            found.append(
                f"{split['leaked_documents']:,} {name} documents ({split['leaked_share']:.1%}) also stand in train, "
                f"word for word: scores on them are too good"
            )
        if split["unseen_labels"]:
            found.append(
                f"{split['unseen_labels']:,} labels of {name} ({split['unseen_assignments']:.1%} of its assignments) "
                f"never occur in train; they count as truth that cannot be found"
            )
    for name, count in facts["unlabelled_documents"].items():
        if count:
            found.append(f"{count:,} {name} documents have no label")
    if facts["empty_documents"]:
        found.append(f"{facts['empty_documents']:,} train documents are empty")
    if facts["duplicate_documents"]:
        found.append(f"{facts['duplicate_documents']:,} train documents repeat an earlier one word for word")
    if facts["repeated_labels"]:
        found.append(f"{facts['repeated_labels']:,} labels were listed more than once in a document and kept once")
    if facts["unknown_parents"]:
        found.append(f"{facts['unknown_parents']:,} links to parents that are no labels themselves were ignored")
    return found


def describe(facts: dict[str, Any]) -> list[str]:
    """The facts as aligned lines for the terminal, warnings last."""
    tail, unit = facts["tail"], "words" if "words" in facts else "terms"
    exponent = "" if tail["zipf_exponent"] is None else f"   Zipf exponent {tail['zipf_exponent']:.2f}"
    rows = {
        "documents": "   ".join(f"{name} {facts['documents'][name]:,}" for name in SPLITS if name in facts["documents"]),
        "labels": f"{facts['labels']:,}, of which {facts['labels_in_training']:,} occur in train",
        "labels per document": _spread_line(facts["labels_per_document"]),
        "documents per label": _spread_line(facts["documents_per_label"]),
        "rare labels": f"never {tail['share_0']:.1%}   once {tail['share_1']:.1%}   "
        f"1-5 times {tail['share_1_to_5']:.1%}   1-20 times {tail['share_1_to_20']:.1%}",
        "frequent labels": f"the top 1 % carry {tail['top_1_percent']:.1%} of all assignments{exponent}",
        f"{unit} per document": f"median {facts[unit]['median']:,.0f}",
    }
    width = max(map(len, rows))
    lines = [f"{name:<{width}}  {value}" for name, value in rows.items()]
    return lines + [f"warning: {sentence}" for sentence in facts["warnings"]]


def _spread_line(spread: dict[str, float]) -> str:
    return f"mean {spread['mean']:,.1f}   median {spread['median']:,.0f}   max {spread['max']:,}"
