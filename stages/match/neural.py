"""The neural matcher (X-BERT, section 3.3): an encoder fine-tuned to find a document's clusters."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from xbert.artifacts.errors import InputError
from xbert.artifacts.kinds.dataset import Dataset
from xbert.artifacts.kinds.label_index import LabelIndex
from xbert.artifacts.kinds.linear_matcher import IN_SAMPLE
from xbert.artifacts.kinds.neural_matcher import LINEAR, Clustering, NeuralMatcher
from xbert.artifacts.kinds.scores import Scores
from xbert.stages.base import AUTO, Config, Estimate, Method, Shape, Work, setting
from xbert.stages.match import linear, neural_cost
from xbert.stages.match.linear import LinearConfig
from xbert.stages.neural import tokens
from xbert.stages.neural.names import BCE, BILSTM, CLS, DEVICES, ENCODERS, HEADS, LOSSES, MEAN, POOLING, PRECISIONS, TRANSFORMER
from xbert.stages.neural.pretrained import MINILM, own_files

PRIOR = "prior"  # heads begin with each cluster's share of the documents


@dataclass(frozen=True)
class NeuralConfig(Config):
    """Settings of the neural matcher."""

    encoder: str = setting(TRANSFORMER, "what reads a document", choices=ENCODERS)
    model: str = setting(MINILM, "a pre-trained transformer: the name of a package's or hub's model, or a folder", folder=True)
    head: str = setting(CLS, "one vector a document, or X-ttention's self-attention over its tokens", choices=HEADS)
    pooling: str = setting(MEAN, "the vector of a document under head 'cls': which token's, or the mean", choices=POOLING)
    loss: str = setting(BCE, "what learning makes small: binary cross entropy or squared hinge", choices=LOSSES)
    max_tokens: int = setting(128, "tokens read at once, special ones included", low=4)
    long: str = setting(tokens.TRUNCATE, "what is read of a longer document", choices=tokens.LONG)
    windows: int = setting(4, "most pieces of a document under long = 'windows'", low=1)
    epochs: int = setting(3, "passes over the training documents", low=1)
    batch: int = setting(32, "documents of an update, over all processes", low=1)
    at_once: int | str = setting(AUTO, "documents in memory at once; fewer than a batch are added up", low=1, how=True)
    learning_rate: float = setting(1e-4, "learning rate of the encoder", low=0.0)
    head_rate: float = setting(2e-3, "learning rate of the heads", low=0.0)
    warmup: float = setting(0.1, "share of the updates in which the rates rise", low=0.0, high=1.0)
    weight_decay: float = setting(0.01, "how much AdamW draws weights towards zero", low=0.0)
    clip: float = setting(10.0, "longest gradient; 0 for any", low=0.0)
    dropout: float = setting(0.0, "share of values left out while learning", low=0.0, high=0.9)
    freeze_layers: int = setting(0, "lowest layers of the encoder that do not learn", low=0)
    freeze_embeddings: bool = setting(False, "whether the token embeddings do not learn")
    cache_frozen: bool = setting(True, "read what frozen layers make of the training documents once, and keep it on disk")
    head_start: str = setting(
        PRIOR,
        "where heads begin: from the clusters' frequency, or from a linear model on the encoder's vectors (head 'cls')",
        choices=(PRIOR, LINEAR),
    )
    head_start_documents: int = setting(10_000, "most documents the linear model of head_start is fitted on", low=1)
    gradient_checkpointing: bool = setting(False, "compute activations twice instead of keeping them: less memory", how=True)
    precision: str = setting(AUTO, "arithmetic while learning; 'auto' measures once what is fastest", choices=PRECISIONS)
    device: str = setting(AUTO, "where the network runs", choices=DEVICES, how=True)
    patience: int = setting(0, "epochs without a better validation before it stops; 0 for never", low=0)
    valid_documents: int = setting(2000, "most documents of the valid split looked at after an epoch", low=1)
    beam: int = setting(20, "clusters kept per document", low=1)
    train_scores: str = setting(
        LINEAR,
        "scores of the training documents: 'linear' takes those of an out-of-fold linear matcher, which a ranker may use",
        choices=("none", IN_SAMPLE, LINEAR),
    )
    train_vectors: bool = setting(
        False,
        "read the training documents once more for their vectors, which [rank] features = 'tfidf+dense' learns from",
    )
    shared: bool = setting(False, "one encoder for all models with these settings, with a head for each of their clusterings")
    words: int = setting(80_000, "words of the vocabulary under encoder 'bilstm'", low=1)
    word_vectors: str = setting("", "file of word vectors under encoder 'bilstm': a word and its numbers a line", path=True)
    word_width: int = setting(300, "size of a word's vector under encoder 'bilstm'", low=1)
    lstm_width: int = setting(512, "size of a hidden state, each direction, under encoder 'bilstm'", low=1)
    seed: int = setting(0, "order of the documents, and what starts at random")


class Neural(Method[NeuralConfig]):
    """Fine-tunes an encoder with a head for each clustering it is given."""

    stage, name, version = "match", "neural", 1
    config = NeuralConfig
    needs = ("data", "features", "index")
    gives = NeuralMatcher

    @classmethod
    def reads(cls, config: NeuralConfig) -> dict[str, Path]:
        """The encoder's files where the user gave a folder, and the word vectors."""
        files = own_files(config.model) if config.encoder == TRANSFORMER else {}
        vectors = {"word_vectors": Path(config.word_vectors)} if config.encoder == BILSTM and config.word_vectors else {}
        return files | vectors

    @classmethod
    def check(cls, config: NeuralConfig, others: Mapping[str, Config]) -> None:
        """Refuse what cannot go together."""
        if config.encoder == BILSTM and config.freeze_layers:
            raise InputError("[match] freeze_layers is for pre-trained encoders: a bilstm starts from nothing")
        if config.head_start == LINEAR and config.head != CLS:
            raise InputError(
                f"[match] head_start = {LINEAR!r} is for head = {CLS!r}, which is linear in the encoder's vectors, and head is "
                f"{config.head!r}: set head_start = {PRIOR!r}"
            )
        if config.train_vectors and config.head != CLS:
            raise InputError(
                f"[match] train_vectors is for head = {CLS!r}: head = {config.head!r} has no vectors worth keeping"
            )
        if config.head_start == LINEAR and config.encoder == BILSTM:
            raise InputError(
                f"[match] head_start = {LINEAR!r} is for pre-trained encoders: a bilstm's vectors say nothing at first; "
                f"set head_start = {PRIOR!r}"
            )

    @classmethod
    def check_data(cls, config: NeuralConfig, dataset: Dataset) -> None:
        """An encoder reads text."""
        if dataset.train.texts is None:
            raise InputError(
                "[match] method = 'neural' reads the documents' text, and this dataset has none, only given features"
            )

    @classmethod
    def estimate(cls, config: NeuralConfig, shape: Shape, threads: int) -> Estimate:
        """Mostly tokens, read forward and backward."""
        return neural_cost.estimate(config, shape, threads)

    def run(self, inputs: dict[str, Any], config: NeuralConfig, work: Work) -> NeuralMatcher:
        """Fine-tune on train, choose on valid, score all splits."""
        from xbert.stages.match.tuning import tune

        dataset: Dataset = inputs["data"]
        indexes = indexes_of(inputs)
        tuned = tune(dataset, indexes, config, work)
        honest = _stand_in(inputs, indexes, config, work)
        asked = {split: each for split, each in tuned.answers.items() if each[1]}
        scores = [
            {
                **{split: Scores.of_top(*answers[head], index.n_clusters) for split, (_, answers) in asked.items()},
                **own,
            }
            for head, (index, own) in enumerate(zip(indexes, honest, strict=True))
        ]
        vectors = {split: found for split, (found, _) in tuned.answers.items()} if config.head == CLS else {}
        clusterings = [Clustering(index.digest(), index.n_clusters) for index in indexes]
        return NeuralMatcher(
            work.folder, tuned.network, clusterings, scores, vectors, config.beam, config.train_scores, tuned.history
        )

    def follow(self, inputs: dict[str, Any], config: NeuralConfig, work: Work) -> None:
        """Help the first process of several to fine-tune."""
        from xbert.stages.match.tuning import follow

        follow(inputs["data"], indexes_of(inputs), config, work)


def indexes_of(inputs: Mapping[str, Any]) -> list[LabelIndex]:
    """The clusterings to be learnt: one, or those of all models that share the encoder."""
    return [each for name, each in inputs.items() if name == "index" or name.startswith("index/")]


def _stand_in(inputs: dict[str, Any], indexes: list[LabelIndex], config: NeuralConfig, work: Work) -> list[dict[str, Scores]]:
    """Honest scores of the training documents: a fine-tuned encoder has seen them all, an out-of-fold linear matcher none.

    Fine-tuning once for every fold would cost as many times as much; which clusters are easily mistaken for a document's
    own, all a ranker learns from these scores, the linear matcher knows as well.
    """
    if config.train_scores != LINEAR:
        return [{} for _ in indexes]
    dataset: Dataset = inputs["data"]
    settings = LinearConfig(seed=config.seed)
    X, Y = inputs["features"].X["train"], dataset.train.Y
    return [
        {"train": linear.out_of_fold(X, index.clusters_of(Y), index, settings, work, f" {number}")}
        for number, index in enumerate(indexes, 1)
    ]
