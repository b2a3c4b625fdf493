"""PECOS XR-Linear with its own defaults, and its own TF-IDF where the way leads from text."""

import shutil
from typing import Any

import numpy as np
from pecos.utils.featurization.text.vectorizers import Tfidf
from pecos.xmc import Indexer, LabelEmbeddingFactory
from pecos.xmc.xlinear.model import XLinearModel

from systems import protocol
from systems.protocol import TOP, Request

TEXT = {"ngram_range": (1, 1), "min_df_cnt": 2, "sublinear_tf": True, "norm": "l2", "analyzer": "word"}
BEAM = 10


def fit(X: Any, Y: Any, request: Request) -> tuple[XLinearModel, dict[str, float]]:
    """Label embeddings, clusters, weights; the model, and seconds of each part."""
    pifa_s, vectors = protocol.clock(lambda: LabelEmbeddingFactory.create(Y, X, method="pifa"))
    index_s, chain = protocol.clock(
        lambda: Indexer.gen(vectors, indexer_type="hierarchicalkmeans", threads=request.threads, seed=request.seed)
    )
    weights_s, model = protocol.clock(
        lambda: XLinearModel.train(X, Y, C=chain, threads=request.threads, threshold=0.1, negative_sampling_scheme="tfn")
    )
    return model, {"embedding_s": pifa_s, "index_s": index_s, "weights_s": weights_s}


class Pecos(protocol.System):
    packages = ("libpecos", "numpy", "scipy")

    def features(self, request: Request) -> dict[str, Any]:
        def fit_transform(texts: list[str]) -> tuple[Any, int]:
            vectorizer = Tfidf.train(texts, config={**TEXT, "threads": request.threads})
            return vectorizer, vectorizer.predict(texts, threads=request.threads).shape[1]

        return protocol.features_figures(
            request, fit_transform, lambda vectorizer, texts: vectorizer.predict(texts, threads=request.threads)
        )

    def train(self, request: Request) -> dict[str, Any]:
        X, Y = protocol.rows(request.data, "train"), protocol.labels(request.data, "train").tocsc()
        before = protocol.rss_mb()
        model, parts = fit(X, Y, request)
        peak = protocol.peak_mb()
        shutil.rmtree(request.model, ignore_errors=True)
        model.save(str(request.model))
        return {
            "train_s": sum(parts.values()), "parts_s": parts, "rss_before_mb": before, "peak_mb": peak,
            "model_mb": protocol.size_mb(request.model),
        }  # fmt: skip

    def train_text(self, request: Request) -> dict[str, Any]:
        """A model of PECOS's own features: for the latency from text, outside any clock."""
        texts, Y = protocol.read_texts(request.data, "train"), protocol.labels(request.data, "train").tocsc()
        vectorizer = Tfidf.train(texts, config={**TEXT, "threads": request.threads})
        model, _ = fit(vectorizer.predict(texts, threads=request.threads), Y, request)
        vectorizer.save(str(request.model / "features"))
        model.save(str(request.model / "model"))
        return {}

    def load(self, request: Request) -> None:
        self.model = self._open(str(request.model), request)

    def _open(self, folder: str, request: Request) -> XLinearModel:
        return XLinearModel.load(folder, is_predict_only=True, weight_matrix_type=request.variant)

    def batch(self, X: Any, threads: int) -> Any:
        return self.model.predict(X, beam_size=BEAM, only_topk=TOP, threads=threads)

    def top(self, found: Any) -> np.ndarray:
        return protocol.top_of_csr(found)

    def load_text(self, request: Request) -> None:
        self.vectorizer = Tfidf.load(str(request.model / "features"))
        self.model = self._open(str(request.model / "model"), request)

    def one_text(self, text: str) -> Any:
        return self.batch(self.vectorizer.predict([text], threads=1), 1)


if __name__ == "__main__":
    protocol.serve(Pecos)
