"""napkinXC's probabilistic label tree, with squared hinge loss and C = 1 as the other systems have."""

import shutil
from typing import Any

import numpy as np
from napkinxc.models import PLT

from systems import protocol
from systems.protocol import TOP, Request


def tree(request: Request, threads: int) -> PLT:
    """The model, trained or not: it lives in its folder."""
    return PLT(str(request.model), threads=threads, seed=request.seed, **request.options["settings"])


class NapkinXC(protocol.System):
    packages = ("napkinxc", "numpy", "scipy")

    def train(self, request: Request) -> dict[str, Any]:
        """`fit` writes the model as it goes, so that saving is part of its time."""
        X, Y = protocol.rows(request.data, "train"), protocol.labels(request.data, "train")
        shutil.rmtree(request.model, ignore_errors=True)
        before = protocol.rss_mb()
        train_s, _ = protocol.clock(lambda: tree(request, request.threads).fit(X, Y))
        return {
            "train_s": train_s, "rss_before_mb": before, "peak_mb": protocol.peak_mb(),
            "model_mb": protocol.size_mb(request.model),
        }  # fmt: skip

    def load(self, request: Request) -> None:
        self.model, self.threads = tree(request, 1), 1
        self.model.load()

    def batch(self, X: Any, threads: int) -> Any:
        if threads != self.threads:
            self.model.set_params(threads=threads)
            self.threads = threads
        return self.model.predict(X, top_k=TOP)

    def top(self, found: Any) -> np.ndarray:
        labels = np.full((len(found), TOP), -1, np.int64)
        for row, named in zip(labels, found, strict=True):
            row[: len(named)] = named[:TOP]
        return labels

    def load_text(self, request: Request) -> None:
        from systems.prepare import fitted

        self.vectorizer = fitted(request.data)
        self.load(request)

    def one_text(self, text: str) -> Any:
        return self.batch(self.vectorizer.transform([text]), 1)


if __name__ == "__main__":
    protocol.serve(NapkinXC)
