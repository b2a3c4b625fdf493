"""How text becomes terms and counts become weights: the part of the settings a vocabulary is kept with."""

import math
from dataclasses import asdict, dataclass, fields
from typing import Any, Self

import numpy as np

from xbert.artifacts.arrays import Array
from xbert.artifacts.errors import ArtifactError
from xbert.stages.kernels.text_rows import N_LOGS


def frozen(array: Array) -> Array:
    """A plain read-only view: numba would compile a kernel anew for every mix of mapped, writable and other arrays."""
    view = np.asarray(array).view()
    view.flags.writeable = False
    return view


@dataclass(frozen=True)
class Analysis:
    """What a term is and how often it counts; the same for training and for new documents."""

    word_ngrams: int
    min_length: int
    char_min: int
    char_ngrams: int
    lowercase: bool
    sublinear: bool

    @classmethod
    def of(cls, kept: dict[str, Any]) -> Self:
        """What `kept` wrote; anything else is a damaged or foreign artifact."""
        try:
            values = [kept[each.name] for each in fields(cls)]
        except KeyError as error:
            raise ArtifactError(f"the features' settings lack {error}: they were made by another version") from None
        if any(type(value) is not each.type for value, each in zip(values, fields(cls), strict=True)):
            raise ArtifactError(f"the features' settings {values} are of the wrong types: the artifact is damaged")
        made = cls(*values)
        if made.min_length < 1 or made.word_ngrams < 0 or made.char_min < 1 or 0 < made.char_ngrams < made.char_min:
            raise ArtifactError(f"the features' settings {values} are out of range: the artifact is damaged")
        return made

    def kept(self) -> dict[str, Any]:
        """The settings as plain values."""
        return {"method": "tfidf", **asdict(self)}

    def rule(self) -> Array:
        """The settings the scanner needs, as kernels take them."""
        return frozen(np.array([self.word_ngrams, self.min_length, self.char_min, self.char_ngrams], np.int64))

    def logs(self) -> Array:
        """The weight of a count below N_LOGS, or nothing where a count is its own weight; float64."""
        weights = [0.0] + [1.0 + math.log(count) for count in range(1, N_LOGS)]
        return frozen(np.array(weights if self.sublinear else [], np.float64))


def inverse_document_frequency(documents: Array, n_docs: int) -> Array:
    """ln((1 + n_docs) / (1 + documents with the term)) + 1, as scikit-learn's smooth idf; float32."""
    return (np.log((1.0 + n_docs) / (1.0 + documents)) + 1.0).astype(np.float32)
