"""The one training loop, a generator of steps: AdamW, warm-up and decay, clipping, accumulation, checkpoints, early stop."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from xbert.artifacts.arrays import Array
from xbert.artifacts.errors import ArtifactError, InputError
from xbert.artifacts.sparse import Sparse
from xbert.stages.neural import checkpoint
from xbert.stages.neural.devices import Arithmetic
from xbert.stages.neural.network import Network
from xbert.stages.neural.ranks import Ranks
from xbert.stages.neural.states import make_batch, make_targets
from xbert.stages.neural.tokens import Pieces, similar

_CHECKPOINT, _BEST = "checkpoint", "best"
_SECONDS_BETWEEN = 180.0


class Keeper(Protocol):
    """Where checkpoints are kept."""

    def recall(self, name: str) -> dict[str, Array] | None:
        """What was kept under that name, or None."""

    def keep(self, name: str, piece: dict[str, Array]) -> None:
        """Keep it, durably."""

    def rng(self, name: str) -> np.random.Generator:
        """Random numbers of that name."""


@dataclass(frozen=True)
class Plan:
    """How a network is trained."""

    epochs: int
    batch: int  # documents of a step, over all processes
    at_once: int  # documents in memory at the same time; fewer than a batch are added up
    encoder_rate: float
    head_rate: float
    warmup: float  # share of all steps
    weight_decay: float
    clip: float
    patience: int  # epochs without a better validation before it stops; 0 for never
    seconds_between_checkpoints: float = _SECONDS_BETWEEN


@dataclass(frozen=True)
class Examples:
    """What is learnt from: pieces of the documents, and their targets in every clustering."""

    pieces: Pieces
    targets: Sequence[Sparse]


@dataclass(frozen=True)
class Step:
    """One update, for whoever watches."""

    number: int  # from 1
    epoch: int
    documents: int
    loss: float
    rate: float
    resumed: bool = False  # not made now, but found in the checkpoint


@dataclass
class Progress:
    """How far a training is: what a checkpoint says beside the weights."""

    step: int = 0
    epoch: int = 0
    batch: int = 0  # batches of this epoch that are done
    loss_sum: float = 0.0  # of this epoch
    best: float = -math.inf
    since_best: int = 0
    history: list[dict[str, Any]] = field(default_factory=list)


class Training:
    """Trains a network. `steps()` yields every update; afterwards the network has the best weights."""

    def __init__(
        self,
        network: Network,
        examples: Examples,
        plan: Plan,
        device: torch.device,
        arithmetic: Arithmetic,
        keeper: Keeper,
        validate: Callable[[], dict[str, float]] | None,
        ranks: Ranks | None = None,
    ) -> None:
        self.network, self.examples, self.plan = network, examples, plan
        self.device, self.arithmetic, self.keeper, self.validate = device, arithmetic, keeper, validate
        self.ranks = ranks or Ranks()
        self.optimizer = make_optimizer(network, plan)
        self.progress = Progress()
        self._lengths = examples.pieces.lengths()
        self._saved = time.monotonic()

    @property
    def steps_per_epoch(self) -> int:
        """Updates of an epoch."""
        per_chunk = 64 * self.plan.batch
        full, rest = divmod(self.examples.pieces.n_docs, per_chunk)
        return full * 64 + math.ceil(rest / self.plan.batch)

    @property
    def total_steps(self) -> int:
        """Updates of the whole training, if it is not stopped early."""
        return self.steps_per_epoch * self.plan.epochs

    def steps(self) -> Iterator[Step]:
        """Train from the last checkpoint, or from the start."""
        self._resume()
        some_unused = not self.ranks.alone and self.ranks.tell(self._some_unused())
        shared = self.ranks.share(self.network, self.device, some_unused)
        if self.progress.step:
            yield Step(self.progress.step, self.progress.epoch, self._documents_done(), math.nan, 0.0, resumed=True)
        while self.progress.epoch < self.plan.epochs and not self._gave_up():
            yield from self._epoch(shared)
            self._close_epoch()
        self._take_best()

    def _epoch(self, shared: nn.Module) -> Iterator[Step]:
        progress = self.progress
        batches = similar(self._lengths, self.plan.batch, self.keeper.rng(f"epoch-{progress.epoch}"))
        for documents in batches[progress.batch :]:
            rate = self._set_rates()
            self.network.train()
            loss = self._update(shared, documents)
            progress.step, progress.batch = progress.step + 1, progress.batch + 1
            progress.loss_sum += loss
            yield Step(progress.step, progress.epoch, len(documents), loss, rate)
            if time.monotonic() - self._saved >= self.plan.seconds_between_checkpoints:
                self._keep()

    def _update(self, shared: nn.Module, documents: Array) -> float:
        """One step: gradients of the batch, in as many parts as fit, over all processes."""
        self._sow()
        mine = self.ranks.mine(documents)
        total = 0.0
        self.optimizer.zero_grad(set_to_none=True)
        parts = [mine[at : at + self.plan.at_once] for at in range(0, len(mine), self.plan.at_once)] or [documents[:1]]
        for number, part in enumerate(parts):
            share = len(part) / len(documents) if len(mine) else 0.0  # a process without documents joins in with nothing
            loss = self._loss(shared, part, last=number == len(parts) - 1, scale=share * self.ranks.world)
            total += float(loss.detach()) * share
        total = self.ranks.total(total)
        norm = nn.utils.clip_grad_norm_(self._trained(), self.plan.clip or math.inf)
        if not math.isfinite(total) or not bool(torch.isfinite(norm)):
            raise InputError(
                f"the loss is no longer a number at step {self.progress.step + 1}: lower learning_rate or head_rate, or set "
                "precision = 'fp32'; the last checkpoint before it is kept"
            )
        self.optimizer.step()
        return total

    def _loss(self, shared: nn.Module, part: Array, last: bool, scale: float) -> Tensor:
        batch = make_batch(self.examples.pieces, part, self.network.encoder.tokenizer.padding, self.device)
        positives = [make_targets(Y, part, self.device) for Y in self.examples.targets]
        with self.ranks.wait_with_sharing(shared, not last):
            with self.arithmetic.context(self.device):
                loss: Tensor = shared(batch, positives)
            (loss * scale).backward()  # type: ignore[no-untyped-call]
        return loss

    def _sow(self) -> None:
        """What dropout draws depends on the step and the process alone, so a training that goes on draws what it would have."""
        seed = self.keeper.rng(f"dropout-{self.progress.step}-{self.ranks.rank}").integers(2**63)
        torch.manual_seed(int(seed))

    def _some_unused(self) -> bool:
        """Whether there are weights that get no gradient though they could (XLNet has some): tried on one document."""
        self.network.train()
        self._loss(self.network, np.zeros(1, np.int64), last=True, scale=0.0)
        found = any(parameter.grad is None for parameter in self._trained())
        self.optimizer.zero_grad(set_to_none=True)
        return found

    def _trained(self) -> list[nn.Parameter]:
        return [parameter for group in self.optimizer.param_groups for parameter in group["params"]]

    def _set_rates(self) -> float:
        """Warm up linearly, then fall linearly to nothing."""
        step, total = self.progress.step, self.total_steps
        warm = max(round(self.plan.warmup * total), 1)
        factor = (step + 1) / warm if step < warm else max(total - step, 0) / max(total - warm, 1)
        for group in self.optimizer.param_groups:
            group["lr"] = group["full_rate"] * factor
        return self.plan.encoder_rate * factor

    def _close_epoch(self) -> None:
        """Measure, remember the best, and keep a checkpoint."""
        progress = self.progress
        entry: dict[str, Any] = {"epoch": progress.epoch + 1, "loss": round(progress.loss_sum / max(progress.batch, 1), 6)}
        if self.validate is not None:
            found: dict[str, float] = self.ranks.tell(self.validate() if self.ranks.leads else None)  # the others wait
            entry["valid"] = found
            score = next(iter(found.values()))
            progress.since_best += 1
            if score > progress.best:
                progress.best, progress.since_best = score, 0
                for other in progress.history:
                    other.pop("best", None)
                entry["best"] = True
                if self.ranks.leads:
                    self.keeper.keep(_BEST, checkpoint.weights_of(self.network))
        progress.history.append(entry)
        progress.epoch, progress.batch, progress.loss_sum = progress.epoch + 1, 0, 0.0
        self._keep()

    def _keep(self) -> None:
        if self.ranks.leads:
            self.keeper.keep(_CHECKPOINT, checkpoint.take(self.network, self.optimizer, vars(self.progress)))
        self._saved = time.monotonic()

    def _resume(self) -> None:
        """Take up the last checkpoint, in every process."""
        found = self.ranks.tell_arrays(self._kept() if self.ranks.leads else None)
        if found is not None:
            checkpoint.restore(self.network, self.optimizer, found)
            self.progress = Progress(**checkpoint.facts_of(found))

    def _kept(self) -> dict[str, Array] | None:
        """The last checkpoint; none where the best weights that belong to it can no longer be read and must be made again."""
        found = self.keeper.recall(_CHECKPOINT)
        if found is None or (checkpoint.facts_of(found)["best"] > -math.inf and self.keeper.recall(_BEST) is None):
            return None
        return found

    def _take_best(self) -> None:
        if self.progress.since_best:
            found = self.ranks.tell_arrays(self.keeper.recall(_BEST) if self.ranks.leads else None)
            if found is None:
                raise ArtifactError("the weights of the best epoch were not kept, or are damaged: run the same command again")
            checkpoint.load_weights(self.network, found)

    def _gave_up(self) -> bool:
        return bool(self.plan.patience and self.progress.since_best >= self.plan.patience)

    def _documents_done(self) -> int:
        n_docs = self.examples.pieces.n_docs
        return self.progress.epoch * n_docs + min(self.progress.batch * self.plan.batch, n_docs)


def make_optimizer(network: Network, plan: Plan) -> torch.optim.AdamW:
    """AdamW with rates of their own for encoder and heads; biases and norms do not decay."""
    groups: dict[tuple[float, float], list[nn.Parameter]] = {}
    for name, parameter in network.named_parameters():
        if parameter.requires_grad:
            rate = plan.encoder_rate if name.startswith("encoder.") else plan.head_rate
            decay = plan.weight_decay if parameter.ndim > 1 else 0.0
            groups.setdefault((rate, decay), []).append(parameter)
    listed = [
        {"params": parameters, "lr": rate, "full_rate": rate, "weight_decay": decay}
        for (rate, decay), parameters in groups.items()
    ]
    return torch.optim.AdamW(listed, fused=True)
