"""A fine-tuned encoder with a head for each clustering, the clusters it found, and the documents' vectors."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from xbert.artifacts.arrays import Array, load_array, save_array
from xbert.artifacts.errors import ArtifactError
from xbert.artifacts.kinds.base import Artifact, read_json, write_json
from xbert.artifacts.kinds.label_index import LabelIndex
from xbert.artifacts.kinds.scores import Scores, load_scores, save_scores

WEIGHTS = "weights.safetensors"
LINEAR = "linear"  # train's scores come from an out-of-fold linear matcher: honest, and a stand-in
_HEADER = "neural_matcher.json"


@dataclass(frozen=True)
class Clustering:
    """One clustering the encoder was fine-tuned for: which index it is, and how many clusters it has."""

    digest: str
    n_clusters: int


@dataclass(frozen=True, eq=False)
class NeuralMatcher(Artifact):
    """The network's weights and what is needed to build it again; S and document vectors of every split.

    The folder also holds the encoder's own files (its configuration, its tokenizer), as the encoder wrote them.
    """

    kind: ClassVar[str] = "neural_matcher"
    format: ClassVar[int] = 1

    folder: Path  # where the encoder's own files and the weights are
    network: dict[str, Any]  # what the network is built from: encoder, head, sizes, pooling, length
    clusterings: list[Clustering]
    scores: list[dict[str, Scores]]  # of each clustering: split -> documents x clusters
    vectors: dict[str, Array]  # split -> documents x width, float16; empty where the head makes none worth keeping
    beam: int
    train_scores: str
    history: list[dict[str, Any]]  # what training looked like, epoch by epoch

    def __post_init__(self) -> None:
        if len(self.clusterings) != len(self.scores):
            raise ArtifactError(f"{len(self.clusterings)} clusterings but scores of {len(self.scores)}: damaged artifact")
        for clustering, splits in zip(self.clusterings, self.scores, strict=True):
            for split, scores in splits.items():
                if scores.n_targets != clustering.n_clusters:
                    raise ArtifactError(f"{split} is scored for {scores.n_targets} clusters, not {clustering.n_clusters}")

    @property
    def family(self) -> str:
        """What reports call it: the encoder's family, or the name the paper gives it."""
        return "x-ttention" if self.network["head"] == "self_attention" else str(self.network["encoder"])

    def head_of(self, index: LabelIndex) -> int:
        """Which head serves that index."""
        digest = index.digest()
        for place, clustering in enumerate(self.clusterings):
            if clustering.digest == digest:
                return place
        raise ArtifactError("the matcher was not fine-tuned for this label index: they come from different runs")

    def scores_of(self, index: LabelIndex) -> dict[str, Scores]:
        """The clusters of that index found in every split."""
        return self.scores[self.head_of(index)]

    def save(self, folder: Path) -> None:
        """Write scores and vectors; the weights and the encoder's own files are there already."""
        header = {
            "network": self.network,
            "clusterings": [[each.digest, each.n_clusters] for each in self.clusterings],
            "scores": [_save_scores(folder, place, splits) for place, splits in enumerate(self.scores)],
            "vectors": list(self.vectors),
            "beam": self.beam,
            "train_scores": self.train_scores,
            "history": self.history,
        }
        for split, vectors in self.vectors.items():
            save_array(folder / f"{split}.vectors.npy", vectors)
        write_json(folder / _HEADER, header)

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Map scores and vectors; weights are read when a network is built of them."""
        header = read_json(folder / _HEADER)
        clusterings = [Clustering(digest, n_clusters) for digest, n_clusters in header["clusterings"]]
        scores = [_load_scores(folder, place, part) for place, part in enumerate(header["scores"])]
        vectors = {split: load_array(folder / f"{split}.vectors.npy", np.float16, ndim=2) for split in header["vectors"]}
        return cls(
            folder, header["network"], clusterings, scores, vectors, header["beam"], header["train_scores"], header["history"]
        )

    def summary(self) -> dict[str, Any]:
        """What it is, and how it did."""
        facts: dict[str, Any] = {"encoder": self.network["encoder"], "clusterings": len(self.clusterings)}
        best = [each for each in self.history if each.get("best")]
        return facts | ({"best epoch": best[-1]["epoch"]} | best[-1].get("valid", {}) if best else {})


def _save_scores(folder: Path, place: int, splits: dict[str, Scores]) -> dict[str, Any]:
    named = {f"head{place}.{split}": scores for split, scores in splits.items()}
    return save_scores(folder, named)


def _load_scores(folder: Path, place: int, header: dict[str, Any]) -> dict[str, Scores]:
    return {name.removeprefix(f"head{place}."): scores for name, scores in load_scores(folder, header).items()}
