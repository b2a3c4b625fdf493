"""New text gets the rows training would have given it, bit by bit."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from xbert.artifacts.arrays import Strings
from xbert.artifacts.errors import ArtifactError, InputError
from xbert.artifacts.kinds.features import Features
from xbert.stages.features.tfidf import Tfidf, TfidfConfig
from xbert.stages.features.vectorizer import Vectorizer

TEXTS = [
    "The Café of ΟΔΟΣ",
    "the the the café",
    "",
    "İstanbul the STRASSE straße",
    "of of " * 300,
    "unknown 日本語 日本語",
]


def equal(one, two):
    for a, b in ((one.indptr, two.indptr), (one.indices, two.indices), (one.data, two.data)):
        np.testing.assert_array_equal(a, b)
    assert one.n_cols == two.n_cols


@pytest.mark.parametrize("settings", [{}, {"word_ngrams": 3, "char_ngrams": 4}, {"lowercase": False, "sublinear": False}])
def test_training_texts_get_their_training_rows(features_of, settings):
    features = features_of({"min_df": 1, **settings}, train=TEXTS)
    equal(Vectorizer(features).transform(TEXTS), features.X["train"])


def test_one_document_gets_the_row_it_has_among_many(features_of):
    features = features_of({"min_df": 1}, train=TEXTS)
    vectorizer = Vectorizer(features)
    for i, text in enumerate(TEXTS):
        equal(vectorizer.transform([text]), features.X["train"].take(np.array([i])))


@pytest.mark.parametrize("threads", [1, 3])
def test_a_table_of_strings_and_a_list_give_the_same(features_of, threads):
    texts = [f"{text} {i} the" for i in range(20_000) for text in TEXTS[:4]]
    vectorizer = Vectorizer(features_of({"min_df": 1}, train=TEXTS))
    expected = vectorizer.transform(texts)
    equal(vectorizer.transform(texts, threads), expected)
    equal(vectorizer.transform(Strings.of(texts), threads), expected)


def test_a_loaded_vocabulary_gives_the_same(dataset_of, work):
    features = Tfidf().run({"data": dataset_of(train=TEXTS)}, TfidfConfig(min_df=1, word_ngrams=1), work)
    features.save(work.folder)
    equal(Vectorizer(Features.load(work.folder)).transform(TEXTS), features.X["train"])


def test_no_document_gives_no_row(features_of):
    vectorizer = Vectorizer(features_of(train=["aa", "aa"]))
    assert vectorizer.transform([]).shape == (0, 1)
    assert vectorizer.transform(Strings.of([])).shape == (0, 1)


def test_a_lone_surrogate_parts_words(features_of):
    vectorizer = Vectorizer(features_of({"min_df": 1}, train=["aa bb"]))
    assert vectorizer.transform(["aa\ud800bb"]).row(0).tolist() == [0, 1]


def test_counts_beyond_the_table_of_logarithms(features_of):
    features = features_of({"min_df": 1}, train=["aa " * 1000 + "bb"])
    ratio = features.X["train"].data[0] / features.X["train"].data[1]
    assert ratio == pytest.approx(1 + np.log(1000), rel=1e-6)


def test_one_vectorizer_serves_many_threads(features_of):
    texts = [f"{TEXTS[i % 6]} the {i % 50}" for i in range(2000)]
    vectorizer = Vectorizer(features_of({"min_df": 1}, train=texts))
    expected = vectorizer.transform(texts)
    with ThreadPoolExecutor(4) as pool:
        rows = list(pool.map(lambda text: vectorizer.transform([text]), texts))
    for i, row in enumerate(rows):
        equal(row, expected.take(np.array([i])))


def test_given_features_have_no_vectorizer(features_of):
    features = features_of(train=["aa", "aa"])
    with pytest.raises(InputError, match="came with the corpus"):
        Vectorizer(replace(features, vocabulary=None))


@pytest.mark.parametrize("field", ["slots", "numbers"])
def test_a_damaged_table_is_refused(features_of, field):
    features = features_of(train=["aa", "aa"])
    damaged = np.full_like(getattr(features.vocabulary, field), 7)
    with pytest.raises(ArtifactError, match="does not fit its terms"):
        Vectorizer(replace(features, vocabulary=replace(features.vocabulary, **{field: damaged})))


@pytest.mark.parametrize(
    ("change", "message"),
    [({"min_length": None}, "wrong types"), ({"char_min": 0}, "out of range"), ({"lowercase": 1}, "wrong types")],
)
def test_damaged_settings_are_refused(features_of, change, message):
    features = features_of(train=["aa", "aa"])
    with pytest.raises(ArtifactError, match=message):
        Vectorizer(replace(features, analysis={**features.analysis, **change}))


def test_missing_settings_are_refused(features_of):
    features = features_of(train=["aa", "aa"])
    with pytest.raises(ArtifactError, match="lack 'word_ngrams'"):
        Vectorizer(replace(features, analysis={}))
