"""Omikuji, a Rust implementation of partitioned label trees: Parabel-like by default, Bonsai-like by its options.

Called at its C interface, which is faster than its Python wrapper: that takes a list of pairs and copies it item by item.
"""

import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import omikuji
from omikuji import ffi, lib

from systems import protocol
from systems.protocol import TOP, Request

BEAM = 10
DENSE = 0.1  # what omikuji's own command line uses


class Rows(NamedTuple):
    """Rows with the types the C interface takes."""

    indptr: np.ndarray
    terms: np.ndarray  # uint32
    values: np.ndarray  # float32


class Omikuji(protocol.System):
    packages = ("omikuji", "numpy")

    def train(self, request: Request) -> dict[str, Any]:
        """Reading the file is not counted. There is no seed to set: every run draws its own."""
        settings = omikuji.Model.default_hyper_param()
        for key, value in request.options["settings"].items():
            setattr(settings, key, value)
        pool = ffi.gc(lib.init_omikuji_thread_pool(request.threads), lib.free_omikuji_thread_pool)
        path = ffi.new("char[]", str(request.data / "train.xmc").encode())
        before = protocol.rss_mb()
        read_s, data = protocol.clock(lambda: lib.load_omikuji_data_set(path, pool))
        data = ffi.gc(data, lib.free_omikuji_data_set)
        train_s, pointer = protocol.clock(lambda: lib.train_omikuji_model(data, settings, pool))
        peak = protocol.peak_mb()
        shutil.rmtree(request.model, ignore_errors=True)
        omikuji.Model(pointer).save(str(request.model))
        return {
            "train_s": train_s, "read_s": read_s, "rss_before_mb": before, "peak_mb": peak,
            "model_mb": protocol.size_mb(request.model),
        }  # fmt: skip

    def load(self, request: Request) -> None:
        self.model = omikuji.Model.load(str(request.model))
        if request.variant == "dense":
            self.model.densify_weights(DENSE, n_threads=request.threads)

    def rows(self, X: Any) -> Rows:
        return Rows(X.indptr, X.indices.astype(np.uint32), X.data)

    def _one(self, terms: np.ndarray, values: np.ndarray) -> np.ndarray:
        found, scores = np.empty(TOP, np.uint32), np.empty(TOP, np.float32)
        count = lib.omikuji_predict(
            self.model._model_ptr, BEAM, len(terms), ffi.from_buffer("uint32_t[]", terms), ffi.from_buffer("float[]", values),
            TOP, ffi.from_buffer("uint32_t[]", found), ffi.from_buffer("float[]", scores), ffi.NULL,
        )  # fmt: skip
        return found[:count]

    def _block(self, X: Rows, start: int, stop: int) -> np.ndarray:
        found = np.full((stop - start, TOP), -1, np.int64)
        for i in range(start, stop):
            part = slice(X.indptr[i], X.indptr[i + 1])
            labels = self._one(X.terms[part], X.values[part])
            found[i - start, : len(labels)] = labels
        return found

    def batch(self, X: Any, threads: int) -> np.ndarray:
        """A document a call; the calls leave Python's lock, so that plain threads work side by side."""
        n_docs = len(X.indptr) - 1
        if threads == 1:
            return self._block(X, 0, n_docs)
        cuts = np.linspace(0, n_docs, 8 * threads + 1).astype(int)
        with ThreadPoolExecutor(threads) as pool:
            return np.vstack(list(pool.map(lambda at: self._block(X, *at), pairwise(cuts))))

    def top(self, found: Any) -> np.ndarray:
        return np.asarray(found)

    def single_rows(self, X: Any) -> list[Any]:
        singles = [self.rows(X[i]) for i in range(min(protocol.SINGLE, X.shape[0]))]
        return [(row.terms, row.values) for row in singles]

    def one_row(self, row: Any) -> Any:
        return self._one(*row)

    def load_text(self, request: Request) -> None:
        self.transform = sklearn_transform(request.data)
        self.load(request)

    def one_text(self, text: str) -> Any:
        row = self.transform([text])
        row.sort_indices()
        return self._one(row.indices.astype(np.uint32), row.data)


def sklearn_transform(data: Path) -> Callable[[list[str]], Any]:
    """The shared vectorizer, from text to rows; imported late, since only this step needs scikit-learn."""
    from systems.prepare import fitted

    transform: Callable[[list[str]], Any] = fitted(data).transform
    return transform


if __name__ == "__main__":
    protocol.serve(Omikuji)
