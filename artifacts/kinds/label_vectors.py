"""What an encoder makes of the labels' texts: a vector a label."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from xbert.artifacts.arrays import Array, load_array, save_array
from xbert.artifacts.kinds.base import Artifact

_FILE = "label_vectors.npy"


@dataclass(frozen=True, eq=False)
class LabelVectors(Artifact):
    """Unit vectors, and zeros for labels without text. Indexes of different seeds and sizes share them."""

    kind: ClassVar[str] = "label_vectors"
    format: ClassVar[int] = 1

    vectors: Array  # (n_labels, H) float32

    def save(self, folder: Path) -> None:
        """Write them."""
        save_array(folder / _FILE, self.vectors)

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Map them."""
        return cls(load_array(folder / _FILE, np.float32, ndim=2))

    def summary(self) -> dict[str, Any]:
        """How many labels have text, and how wide their vectors are."""
        return {"labels with text": int(self.vectors.any(axis=1).sum()), "width": self.vectors.shape[1]}
