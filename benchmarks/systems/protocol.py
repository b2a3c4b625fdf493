"""What every worker has in common: a request in JSON, rows and texts from the work folder, clocks, and figures in JSON.

Runs in every system's environment, so it needs nothing but the standard library, numpy and scipy.
"""

import gc
import importlib.metadata
import json
import platform
import resource
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import scipy.sparse

TOP = 10  # labels a document is given
REPEATS = 3  # of what is quick: the best counts
_ENOUGH = 8.0  # seconds after which nothing is repeated
SINGLE = 600  # documents predicted one by one
WARM_UP = 20


@dataclass(frozen=True)
class Request:
    """What a worker is asked for."""

    step: str  # a method of the System
    data: Path  # folder that `systems.prepare` filled
    model: Path  # folder of the model: made by a training step, read by the others
    scratch: Path  # an empty folder of the step's own
    threads: int
    seed: int
    variant: str  # one of the ways a system can predict; "" where there is one
    options: dict[str, Any]
    top: Path | None = None  # where to leave the labels found, documents x TOP, as .npy


class System(ABC):
    """A system under measurement; every public method but the small ones below is a step in a process of its own."""

    packages: ClassVar[tuple[str, ...]]  # whose versions the report names

    def warm_up(self, request: Request) -> None:  # noqa: B027 most systems are compiled beforehand
        """Whatever should not count, such as compiling."""

    @abstractmethod
    def train(self, request: Request) -> dict[str, Any]:
        """Learn from the shared rows, save the model; the clock runs while it learns only."""

    @abstractmethod
    def load(self, request: Request) -> None:
        """Open the model that `train` saved."""

    @abstractmethod
    def batch(self, X: Any, threads: int) -> Any:
        """The best labels of all rows, in the form the system gives them."""

    @abstractmethod
    def top(self, found: Any) -> np.ndarray:
        """What `batch` gave, as documents x TOP; -1 where there are fewer."""

    @abstractmethod
    def load_text(self, request: Request) -> None:
        """Open whatever leads from text to labels."""

    @abstractmethod
    def one_text(self, text: str) -> Any:
        """The best labels of one text, one thread."""

    def rows(self, X: Any) -> Any:
        """The rows in the system's own form, made before any clock runs."""
        return X

    def one_row(self, row: Any) -> Any:
        """The best labels of one row, one thread."""
        return self.batch(row, 1)

    def single_rows(self, X: Any) -> list[Any]:
        """The rows that are predicted one by one."""
        return [self.rows(X[i]) for i in range(min(SINGLE, X.shape[0]))]

    def predict(self, request: Request) -> dict[str, Any]:
        """Speed in batch and one by one from the shared rows; memory; the labels found."""
        matrix = rows(request.data, "test")
        X, single = self.rows(matrix), self.single_rows(matrix)
        before = rss_mb()
        load_s, _ = clock(lambda: self.load(request))
        figures = {"rss_before_load_mb": before, "load_s": load_s, "rss_after_load_mb": rss_mb()}
        found: Any = None
        for threads in (1, 2):
            self.batch(X, threads)  # so that no pool of threads or page of a file is new
            seconds, found = best_of(REPEATS, lambda threads=threads: self.batch(X, threads))
            figures[f"docs_per_s_{threads}"] = matrix.shape[0] / seconds
        figures["peak_mb"] = peak_mb()  # before the answers are rearranged for the accuracy
        if request.top is not None:
            np.save(request.top, self.top(found))
        return figures | latency(self.one_row, single)

    def latency(self, request: Request) -> dict[str, Any]:
        """From raw text to labels, a document at a time, in one process."""
        texts = read_texts(request.data, "test")[:SINGLE]
        before = rss_mb()
        self.load_text(request)
        return {"rss_before_load_mb": before, **latency(self.one_text, texts), "peak_mb": peak_mb()}


def rows(data: Path, split: str) -> Any:
    """The shared TF-IDF rows: documents x terms, float32, indices sorted."""
    return scipy.sparse.csr_matrix(scipy.sparse.load_npz(data / f"{split}.X.npz"))


def labels(data: Path, split: str) -> Any:
    """Documents x labels, ones of float32."""
    return scipy.sparse.csr_matrix(scipy.sparse.load_npz(data / f"{split}.Y.npz"))


def read_texts(data: Path, split: str) -> list[str]:
    """The texts of the same documents."""
    found: list[str] = json.loads((data / f"{split}.texts.json").read_text("utf-8"))
    return found


def megabytes(texts: Sequence[str]) -> float:
    """Size of the texts in UTF-8."""
    return sum(len(text.encode("utf-8")) for text in texts) / 1e6


def clock(function: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds, and what came of it."""
    gc.collect()
    start = time.perf_counter()
    result = function()
    return time.perf_counter() - start, result


def best_of(repeats: int, function: Callable[[], Any]) -> tuple[float, Any]:
    """The least seconds of several runs: what disturbs a run only ever adds."""
    runs = [clock(function)]
    while len(runs) < repeats and sum(seconds for seconds, _ in runs) < _ENOUGH:
        runs.append(clock(function))
    return min(seconds for seconds, _ in runs), runs[-1][1]


def latency(one: Callable[[Any], Any], items: Sequence[Any]) -> dict[str, float]:
    """Median and 99th percentile in milliseconds over the items, after a warm-up; of several passes the least disturbed."""
    for item in items[:WARM_UP]:
        one(item)
    passes = [np.percentile(_pass(one, items), [50, 99]) for _ in range(REPEATS)]
    p50, p99 = 1000 * np.min(passes, axis=0)
    return {"p50_ms": float(p50), "p99_ms": float(p99), "single_documents": len(items)}


def _pass(one: Callable[[Any], Any], items: Sequence[Any]) -> list[float]:
    gc.collect()
    seconds = []
    for item in items:
        start = time.perf_counter()
        one(item)
        seconds.append(time.perf_counter() - start)
    return seconds


def features_figures(
    request: Request, fit: Callable[[list[str]], tuple[Any, int]], transform: Callable[[Any, list[str]], Any]
) -> dict[str, Any]:
    """Text to features: fit + transform of the training texts, then the test texts. `fit` returns (fitted, terms)."""
    train, test = read_texts(request.data, "train"), read_texts(request.data, "test")
    seconds, (fitted, n_terms) = clock(lambda: fit(train))
    again, _ = best_of(REPEATS, lambda: transform(fitted, test))
    size = megabytes(train)
    return {
        "fit_s": seconds, "fit_mb": size, "fit_mb_per_s": size / seconds, "n_terms": n_terms,
        "transform_s": again, "transform_docs_per_s": len(test) / again, "transform_mb_per_s": megabytes(test) / again,
    }  # fmt: skip


def top_of_csr(matrix: Any) -> np.ndarray:
    """The TOP highest entries of every row, best first; -1 where there are fewer."""
    found = np.full((matrix.shape[0], TOP), -1, np.int64)
    for i in range(matrix.shape[0]):
        part = slice(matrix.indptr[i], matrix.indptr[i + 1])
        order = np.argsort(-matrix.data[part], kind="stable")[:TOP]
        found[i, : len(order)] = matrix.indices[part][order]
    return found


def peak_mb() -> float:
    """Most memory this process ever had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def rss_mb() -> float:
    """Memory this process has now."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def size_mb(folder: Path) -> float:
    """Size on disk of all files in a folder, in 10^6 bytes."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6


def borrow(options: dict[str, Any]) -> None:
    """Let the environment of another system lend packages that this one lacks; its own come first."""
    sys.path.extend(options.get("borrow", []))


def serve(make: Callable[[], System]) -> None:
    """A worker's main: argv names the request and where the answer goes."""
    asked, answer = map(Path, sys.argv[1:3])
    given = json.loads(asked.read_text("utf-8"))
    paths = {"data", "model", "scratch", "top"}
    values = {key: Path(value) if key in paths and value is not None else value for key, value in given.items()}
    request = Request(**{each.name: values[each.name] for each in fields(Request) if each.name in values})
    borrow(request.options)
    system = make()
    warm_up_s, _ = clock(lambda: system.warm_up(request))
    figures = getattr(system, request.step)(request)
    versions = {name: importlib.metadata.version(name) for name in system.packages}
    about = {"python": platform.python_version(), "versions": versions, "warm_up_s": warm_up_s}
    answer.write_text(json.dumps({"peak_mb": peak_mb(), **figures, **about}), "utf-8")
