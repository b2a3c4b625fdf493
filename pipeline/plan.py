"""The plan: what the stages to be run will take in time, memory and disk, told before they run and held to."""

import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from xbert.artifacts.errors import InputError
from xbert.artifacts.kinds.dataset import Dataset
from xbert.artifacts.kinds.features import Features
from xbert.artifacts.kinds.label_index import LabelIndex
from xbert.pipeline.console import duration
from xbert.pipeline.graph import Node
from xbert.pipeline.memory import OWN, show
from xbert.stages.base import Estimate, Shape

_BYTES_PER_WORD = 6.5  # of text
_LABELS_PER_CLUSTER = 64  # as the index has it unless told otherwise


@dataclass(frozen=True)
class Step:
    """A node and what it will take; None where its method cannot say."""

    node: Node
    estimate: Estimate | None


def steps(nodes: Iterable[Node], shape: Shape, threads: int) -> list[Step]:
    """The nodes with their estimates."""
    return [Step(node, node.choice.method.estimate(node.choice.config, shape, threads)) for node in nodes]


def lines(plan: list[Step], threads: int, memory: int) -> list[str]:
    """The plan as a table."""
    known = [step for step in plan if step.estimate is not None]
    if not known:
        return []
    out = [f"plan, roughly, for {threads} threads and {show(memory)} of memory:"]
    for step in known:
        out.append(f"  {step.node.name:24} {_row(step.estimate, memory)}")
    if len(known) > 1:
        estimates = [step.estimate for step in known if step.estimate is not None]
        most = max(min(each.memory + OWN, max(memory, each.least + OWN)) for each in estimates)
        total = f"{duration(sum(each.seconds for each in estimates)):>9}   at most {show(most):>7} held at once"
        out.append(f"  {'all':24} {total}   {show(sum(each.disk for each in estimates)):>7} on disk")
    return out


def _row(estimate: Estimate | None, memory: int) -> str:
    if estimate is None:
        return "not known"
    held = min(estimate.memory + OWN, max(memory, estimate.least + OWN))
    return f"{duration(estimate.seconds):>9}   at most {show(held):>7} held at once   {show(estimate.disk):>7} on disk"


def refuse_what_does_not_fit(plan: list[Step], memory: int, folder: Path) -> None:
    """One sentence on the first stage that cannot be run in this memory or on this disk."""
    for step in plan:
        if step.estimate is not None and step.estimate.least + OWN > memory:
            raise InputError(
                f"{step.node.name} needs about {show(step.estimate.least + OWN)} of memory, and the run may use "
                f"{show(memory)}: give it more with --memory, or {step.estimate.advice}"
            )
    wanted = sum(step.estimate.disk for step in plan if step.estimate is not None)
    while not folder.exists():
        folder = folder.parent
    left = shutil.disk_usage(folder).free
    if wanted > left:
        raise InputError(f"the run needs about {show(wanted)} on disk, and {folder} has {show(left)} free")


def shape_of(data: Dataset, features: Features | None, index: LabelIndex | None, ngrams: int) -> Shape:
    """The shape of a prepared dataset; what is not made yet is guessed."""
    text = sum(len(split.texts.blob) for split in data.splits.values() if split.texts is not None)
    train = data.train
    if features is not None:
        entries, n_terms = features.X["train"].nnz, features.n_terms
    elif train.X is not None:
        entries, n_terms = train.X.nnz, train.X.n_cols
    else:
        words = len(train.texts.blob) / _BYTES_PER_WORD if train.texts is not None else 0
        entries = int(words * (0.6 if ngrams < 2 else 1.3))  # a word said twice is one entry; rare pairs are dropped
        n_terms = int(min(entries, 8 * entries**0.55 * ngrams))
    n_clusters = index.n_clusters if index is not None else max(2, data.n_labels // _LABELS_PER_CLUSTER)
    held_out = sum(split.n_docs for split in data.held_out.values())
    return Shape(train.n_docs, held_out, data.n_labels, train.Y.nnz, text, max(entries, 1), n_terms, n_clusters)


def ngrams_of(config: Any) -> int:
    """Longest run of words that is a term, as far as the method has such a setting."""
    return int(getattr(config, "word_ngrams", 1) or 1)
