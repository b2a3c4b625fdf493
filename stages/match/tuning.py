"""Fine-tuning for the match stage: from settings to a trained network and its answers."""

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from xbert.artifacts.atomic import write_bytes
from xbert.artifacts.errors import InputError
from xbert.artifacts.kinds.dataset import Dataset
from xbert.artifacts.kinds.label_index import LabelIndex
from xbert.artifacts.kinds.linear_matcher import IN_SAMPLE
from xbert.artifacts.kinds.neural_matcher import LINEAR, WEIGHTS
from xbert.artifacts.kinds.scores import Scores
from xbert.artifacts.sparse import Sparse
from xbert.stages.base import AUTO, Work
from xbert.stages.metrics.places import place
from xbert.stages.neural import checkpoint
from xbert.stages.neural.answering import Answers, answer_all
from xbert.stages.neural.arithmetic import choose_arithmetic
from xbert.stages.neural.building import build_encoder, build_head
from xbert.stages.neural.devices import (
    Arithmetic,
    choose_device,
    give_back,
    memory_kept,
    out_of_memory_errors,
    torch_threads,
)
from xbert.stages.neural.frozen import remembered
from xbert.stages.neural.head_start import start_linear
from xbert.stages.neural.network import Network
from xbert.stages.neural.ranks import Ranks
from xbert.stages.neural.tokens import Pieces, Reading
from xbert.stages.neural.training import Examples, Plan, Training

if TYPE_CHECKING:
    from xbert.stages.match.neural import NeuralConfig


_TIDY = 100  # steps after which memory that is free is given back: the next step is a little slower


@dataclass(frozen=True)
class Tuned:
    """What fine-tuning gives."""

    network: dict[str, Any]  # what the network is built from
    answers: dict[str, Answers]  # split -> vectors, and the best clusters of every head where they were asked for
    history: list[dict[str, Any]]


def tune(dataset: Dataset, indexes: Sequence[LabelIndex], config: "NeuralConfig", work: Work) -> Tuned:
    """Fine-tune, write weights and the encoder's files, and ask about every document."""
    ranks = Ranks.current()
    with out_of_memory_errors(_advice(config)), memory_kept(), torch_threads(work.threads), torch.random.fork_rng():
        torch.manual_seed(config.seed)
        job = _Job.prepare(dataset, indexes, config, work, ranks)
        training = job.train()
        _write_weights(job.network, work)
        job.network.encoder.save_files(work.folder)
        train_too = config.train_scores == IN_SAMPLE or config.train_vectors
        splits = [split for split in dataset.splits if split != "train" or train_too]
        answers = {split: job.ask(split) for split in splits}
    return Tuned(job.describe(), answers, training.progress.history)


def follow(dataset: Dataset, indexes: Sequence[LabelIndex], config: "NeuralConfig", work: Work) -> None:
    """The same training in another process, which keeps nothing."""
    with out_of_memory_errors(_advice(config)), memory_kept(), torch_threads(work.threads), torch.random.fork_rng():
        torch.manual_seed(config.seed)
        _Job.prepare(dataset, indexes, config, work, Ranks.current()).train()


@dataclass(frozen=True)
class _Job:
    """All that a fine-tuning needs at hand."""

    dataset: Dataset
    indexes: Sequence[LabelIndex]
    config: "NeuralConfig"
    work: Work
    ranks: Ranks
    network: Network
    device: torch.device
    arithmetic: Arithmetic
    reading: Reading
    pieces: dict[str, Pieces]
    targets: dict[str, list[Sparse]]

    @classmethod
    def prepare(
        cls, dataset: Dataset, indexes: Sequence[LabelIndex], config: "NeuralConfig", work: Work, ranks: Ranks
    ) -> "_Job":
        device = choose_device(config.device, ranks.rank, ranks.local)
        encoder = build_encoder(config, dataset.train.texts or ())
        reading = Reading(config.long, config.max_tokens, config.windows)
        most = encoder.most_tokens()
        if most is not None and config.max_tokens > most:
            raise InputError(
                f"[match] max_tokens = {config.max_tokens}, but the encoder has {most} positions: set it to at most {most}, "
                "and long = 'windows' to read more of a document"
            )
        pieces = {}
        with work.progress("cutting text into tokens", sum(s.n_docs for s in dataset.splits.values()), "documents") as bar:
            for name, split in dataset.splits.items():
                pieces[name] = reading.pieces(split.texts or (), encoder.tokenizer)
                bar.advance(split.n_docs)
        targets = {name: [index.clusters_of(split.Y)[0] for index in indexes] for name, split in dataset.splits.items()}
        heads = [build_head(config, encoder.width, index.n_clusters) for index in indexes]
        for head, Y in zip(heads, targets["train"], strict=True):
            head.start(torch.from_numpy((Y.column_counts() / max(Y.n_rows, 1)).astype(np.float32)))
        network = Network(encoder, heads).to(device)
        encoder.freeze(config.freeze_layers, config.freeze_embeddings)
        if config.gradient_checkpointing:
            encoder.checkpoint_gradients()
        usual = math.ceil(pieces["train"].lengths().mean()) if pieces["train"].n_docs else config.max_tokens
        arithmetic = choose_arithmetic(network, config.precision, device, usual, work, ranks)
        if config.head_start == LINEAR:
            start_linear(
                network, pieces["train"], targets["train"], config.head_start_documents, device, arithmetic, work, ranks
            )
        return cls(dataset, indexes, config, work, ranks, network, device, arithmetic, reading, pieces, targets)

    def train(self) -> Training:
        """The whole training, with a bar."""
        config, work = self.config, self.work
        plan = Plan(
            epochs=config.epochs, batch=config.batch, at_once=config.batch if config.at_once == AUTO else int(config.at_once),
            encoder_rate=config.learning_rate, head_rate=config.head_rate, warmup=config.warmup,
            weight_decay=config.weight_decay, clip=config.clip, patience=config.patience,
        )  # fmt: skip
        validate = self._validate if "valid" in self.pieces and self.pieces["valid"].n_docs else None
        with self._pieces_to_learn() as pieces:
            examples = Examples(pieces, self.targets["train"])
            training = Training(self.network, examples, plan, self.device, self.arithmetic, work, validate, self.ranks)
            self._go_through(training)
        return training

    def _pieces_to_learn(self) -> AbstractContextManager[Pieces]:
        """The documents' tokens, or what frozen layers made of them."""
        pieces = self.pieces["train"]
        if not (self.config.freeze_layers and self.config.cache_frozen):
            return nullcontext(pieces)
        return remembered(self.network, pieces, self.device, self.arithmetic, self.work, self.ranks)

    def _go_through(self, training: Training) -> None:
        work, said = self.work, 0
        with work.progress("fine-tuning", self.pieces["train"].n_docs * self.config.epochs, "documents") as bar:
            for step in training.steps():
                bar.advance(step.documents)
                if step.number % _TIDY == 0:
                    give_back()
                said = self._tell(training, said, logged=not step.resumed)
                if not step.resumed:
                    work.log(step.number, {"train/loss": step.loss, "train/rate": step.rate})
        self._tell(training, said)

    def _tell(self, training: Training, said: int, logged: bool = True) -> int:
        """Tell of the epochs that were not told of yet; how many there are now."""
        history = training.progress.history
        for entry in history[said:]:
            self.work.say(_sentence(entry))
            if logged:
                values = {f"valid/{name}": value for name, value in entry.get("valid", {}).items()}
                self.work.log(entry["epoch"] * training.steps_per_epoch, {"epoch/loss": entry["loss"], **values})
        return len(history)

    def ask(self, split: str) -> Answers:
        """Vectors and clusters of a split's documents; kept, so that an interrupted run need not ask again."""
        kept = self.work.recall(f"answers-{split}")
        if kept is None:
            wanted = split != "train" or self.config.train_scores == IN_SAMPLE
            vectors, answers = self._read(split, self.config.beam if wanted else 0)
            kept = {"vectors": vectors}
            for head, (ids, scores) in enumerate(answers):
                kept |= {f"ids-{head}": ids, f"scores-{head}": scores}
            self.work.keep(f"answers-{split}", kept)
        heads = sum(name.startswith("ids-") for name in kept)
        return kept["vectors"], [(kept[f"ids-{head}"], kept[f"scores-{head}"]) for head in range(heads)]

    def _read(self, split: str, beam: int) -> Answers:
        with self.work.progress(f"reading {split}", self.pieces[split].n_docs, "documents") as bar:
            return answer_all(self.network, self.pieces[split], beam, self.device, self.arithmetic, bar.advance)

    def _validate(self) -> dict[str, float]:
        """How well the clusters of (some of) the valid documents are found, on average over the heads."""
        n_docs = self.pieces["valid"].n_docs
        some = np.arange(n_docs)
        if n_docs > self.config.valid_documents:
            some = np.sort(self.work.rng("validation").permutation(n_docs)[: self.config.valid_documents])
        _, answers = answer_all(self.network, self.pieces["valid"].take(some), self.config.beam, self.device, self.arithmetic)
        found = [
            measure(Y.take(some), Scores.of_top(*answer, Y.n_cols), self.config.beam)
            for Y, answer in zip(self.targets["valid"], answers, strict=True)
        ]
        return {name: round(float(np.mean([each[name] for each in found])), 3) for name in found[0]}

    def describe(self) -> dict[str, Any]:
        """What it takes to build the network again, and to read documents as it learnt them."""
        config = self.config
        network = {name: getattr(config, name) for name in ("encoder", "head", "pooling", "loss")}
        reading = {name: getattr(config, name) for name in ("max_tokens", "long", "windows")}
        return {**network, **reading, "precision": self.arithmetic.precision, **self.network.encoder.describe()}


def measure(Y: Sparse, scores: Scores, beam: int) -> dict[str, float]:
    """P@5 first: it decides which epoch is the best."""
    places = place(Y, scores, beam).places
    precision = {f"P@{k}": 100 * float((places < k).sum()) / (k * max(Y.n_rows, 1)) for k in (5, 1)}
    return {**precision, f"recall@{beam}": 100 * float((places < beam).sum()) / max(Y.nnz, 1)}


def _sentence(entry: dict[str, Any]) -> str:
    valid = ", ".join(f"{name} {value:.2f}" for name, value in entry.get("valid", {}).items())
    return f"epoch {entry['epoch']}: loss {entry['loss']:.5f}" + (f"; clusters of valid: {valid}" if valid else "")


def _write_weights(network: Network, work: Work) -> None:
    from safetensors.numpy import save  # not save_file, which makes an error of its own kind of a full disk

    write_bytes(work.folder / WEIGHTS, save(checkpoint.weights_of(network)))


def _advice(config: "NeuralConfig") -> str:
    at_once = config.batch if config.at_once == AUTO else config.at_once
    return (
        f"lower [match] at_once (now {at_once}) or set gradient_checkpointing = true, and the run goes on from its last "
        f"checkpoint; or lower max_tokens (now {config.max_tokens}), and it begins anew"
    )
