"""Data sets built by hand."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from xbert.artifacts.arrays import Strings
from xbert.artifacts.kinds.dataset import Dataset, Labels, Split
from xbert.artifacts.sparse import Sparse
from xbert.stages.features.tfidf import Tfidf, TfidfConfig


def dataset_of(**splits: list[str] | Sparse) -> Dataset:
    """A data set with one label that no document has."""
    none = Strings.of([""])
    labels = Labels(Strings.of(["label"]), none, none, Sparse.of_rows([[]], 1))
    made = {}
    for name, content in splits.items():
        if isinstance(content, Sparse):
            made[name] = Split(Sparse.of_rows([[]] * content.n_rows, 1), None, content)
        else:
            made[name] = Split(Sparse.of_rows([[]] * len(content), 1), Strings.of(content), None)
    return Dataset(labels, made, {})


# Tests cannot import a conftest: they are handed its functions.
@pytest.fixture(scope="session", name="dataset_of")
def _dataset_of():
    return dataset_of


@pytest.fixture(scope="session")
def features_of(bench):
    """Run Tfidf over texts in a folder that is gone afterwards; what is mapped stays readable."""

    def build(settings=None, threads=1, **splits):
        with TemporaryDirectory() as folder:
            return Tfidf().run(
                {"data": dataset_of(**splits)},
                TfidfConfig(**{"word_ngrams": 1, **(settings or {})}),
                bench(Path(folder), threads),
            )

    return build
