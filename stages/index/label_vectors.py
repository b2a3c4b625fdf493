"""Read the labels' texts with an encoder, once for all indexes that are made of them."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from xbert.artifacts.kinds.label_vectors import LabelVectors
from xbert.stages.base import Config, Method, Work, setting
from xbert.stages.neural.pretrained import MINILM, own_files


@dataclass(frozen=True)
class LabelVectorsConfig(Config):
    """Settings of the reading, as [index] has them."""

    encoder: str = setting(MINILM, "what reads labels: the name of a model, or a folder", folder=True)
    layers: str = setting("last", "layers of the encoder whose mean is taken: 'last', 'all', or numbers with commas")


class ReadLabels(Method[LabelVectorsConfig]):
    """Label vectors from text (X-BERT, section 3.2): the mean of the contextual vectors of a label's words."""

    stage, name, version = "index", "label-vectors", 1
    config = LabelVectorsConfig
    needs = ("data",)
    gives = LabelVectors

    @classmethod
    def reads(cls, config: LabelVectorsConfig) -> dict[str, Path]:
        """The encoder's files where the user gave a folder."""
        return own_files(config.encoder)

    def run(self, inputs: dict[str, Any], config: LabelVectorsConfig, work: Work) -> LabelVectors:
        """Read them all."""
        from xbert.stages.index.contextual import label_vectors

        return LabelVectors(label_vectors(inputs["data"], config.encoder, config.layers, work))
