"""scikit-learn: its TfidfVectorizer, and one-vs-rest LinearSVC on a sample of the labels, for what all would cost."""

from typing import Any

import joblib
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC

from systems import protocol
from systems.prepare import SETTINGS
from systems.protocol import Request


class Sklearn(protocol.System):
    packages = ("scikit-learn", "numpy", "scipy")

    def features(self, request: Request) -> dict[str, Any]:
        def fit(texts: list[str]) -> tuple[Any, int]:
            vectorizer = TfidfVectorizer(**SETTINGS)
            return vectorizer, vectorizer.fit_transform(texts).shape[1]

        return protocol.features_figures(request, fit, lambda vectorizer, texts: vectorizer.transform(texts))

    def train(self, request: Request) -> dict[str, Any]:
        """Threads rather than processes: LIBLINEAR leaves Python's lock, and nothing is copied."""
        X, Y = protocol.rows(request.data, "train"), protocol.labels(request.data, "train").tocsc()
        n_labels, most = Y.shape[1], int(request.options["labels"])
        chosen = np.random.default_rng(request.seed).permutation(n_labels)[:most]
        X = X.astype(np.float64)  # what LinearSVC wants; else it would convert the rows anew for every label
        sample = Y[:, chosen].tocsr().astype(np.int64)  # narrower types overflow in scikit-learn's binarizer
        before = protocol.rss_mb()
        model = OneVsRestClassifier(LinearSVC(C=1.0), n_jobs=request.threads)
        with joblib.parallel_config(backend="threading"):
            seconds, _ = protocol.clock(lambda: model.fit(X, sample))
        return {
            "train_s": seconds * n_labels / len(chosen), "sampled_s": seconds, "sampled_labels": len(chosen),
            "extrapolated": len(chosen) < n_labels, "rss_before_mb": before,
        }  # fmt: skip

    def load(self, request: Request) -> None:
        raise NotImplementedError("a sample of the labels is trained for its time, not to predict")

    batch = top = load_text = one_text = load


if __name__ == "__main__":
    protocol.serve(Sklearn)
