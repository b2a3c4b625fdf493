"""The same terms and the same values as scikit-learn's TfidfVectorizer, on text as awkward as it comes."""

# ruff: noqa: RUF001 - letters that look like others are the point

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import TfidfVectorizer

AWKWARD = [
    "",
    " \n\t ",
    "The quick brown fox, the QUICK brown fox!",
    "Café CAFÉ cafe\u0301 CAFE\u0301 naïve",
    "ΟΔΟΣ ΟΔΟΣ. ΣΑΣ Σ ΑΣ' ΑΣ'Α οδος οδός Σ\u0301Σ",
    "Straße STRASSE STRAẞE straße",
    "İstanbul ISTANBUL ıstanbul istanbul Iİiı İİ",
    "日本語の文章 日本語 中文 한국어 한국어",
    "snake_case __init__ _ __ a_b x1 1x 42 4 ٤٢ ४२ ²³ ½",
    "👍 👍🏽 family 👨\u200d👩\u200d👧 ok👍ok",
    "don't e-mail a.b.c U.S.A. x\u00ady \u200b zero\u200bwidth",
    "\x1c\x85\u00a0\u2028nbsp\u00a0here\u3000there\x1fend",
    "Ⱥ ȺȺ K Å ǅ ǅǅ ﬁn ﬁn Ⅷ Ⅷ ⓐⓑ",
    "𝔘𝔫𝔦 𐐀𐐁 𐐨𐐩 \U0001e900\U0001e922 \U000e0041 \U000f0000",
    "हिन्दी हिन्दी ไทย ไทย עברית العربية",
    "a bc a bc def a",
    "x\x00y \x00 ab\x00 ab",
]
ANALYSERS = {
    "words": ({}, {}),
    "pairs": ({"word_ngrams": 2}, {"ngram_range": (1, 2)}),
    "triples": ({"word_ngrams": 3}, {"ngram_range": (1, 3)}),
    "characters": ({"word_ngrams": 0, "char_min": 2, "char_ngrams": 4}, {"analyzer": "char_wb", "ngram_range": (2, 4)}),
    "long characters": (
        {"word_ngrams": 0, "char_min": 5, "char_ngrams": 6},
        {"analyzer": "char_wb", "ngram_range": (5, 6)},
    ),
    "single letters": ({"min_length": 1}, {"token_pattern": r"(?u)\b\w+\b"}),
    "longer words": ({"min_length": 4, "word_ngrams": 2}, {"token_pattern": r"(?u)\b\w{4,}\b", "ngram_range": (1, 2)}),
    "case kept": ({"lowercase": False}, {"lowercase": False}),
    "plain counts": ({"sublinear": False}, {"sublinear_tf": False}),
    "not too common": ({"max_df": 0.5}, {"max_df": 0.5}),
}


def same(features, texts, fitted):
    """Compare X with scikit-learn's matrix of the same texts, terms matched by their text."""
    terms = list(features.vocabulary.terms)
    assert sorted(terms) == sorted(fitted.vocabulary_)
    expected = fitted.transform(texts).toarray()[:, [fitted.vocabulary_[term] for term in terms]]
    for X in features.X.values():
        np.testing.assert_allclose(X.to_scipy().toarray(), expected, rtol=0, atol=1e-6)
        assert X.nnz == np.count_nonzero(expected)


def reference(texts, options):
    options = {"min_df": 1, "sublinear_tf": True, "dtype": np.float32, **options}
    return TfidfVectorizer(**options).fit(texts)


@pytest.mark.parametrize("analyser", ANALYSERS)
def test_awkward_text(features_of, analyser):
    ours, theirs = ANALYSERS[analyser]
    texts = AWKWARD * 2
    same(features_of({"min_df": 1, **ours}, train=texts, test=texts), texts, reference(texts, theirs))


@pytest.mark.parametrize("analyser", ["words", "pairs", "characters"])
def test_min_df(features_of, analyser):
    ours, theirs = ANALYSERS[analyser]
    texts = [*AWKWARD, "fox ok the 日本語 ab", "the café straße οδος"]
    same(features_of({"min_df": 2, **ours}, train=texts), texts, reference(texts, {"min_df": 2, **theirs}))


# Letters and marks that meet often: capital and final sigma, dotted capital I, sharp s, accents, joiners and spaces.
LETTERS = st.sampled_from("aAbBΣςσİıIßẞéE\u0301\u0307'’.-_ 1٤\n\u00a0\u200d日本👍𐐀Ⱥ\u00ad\u02b0")
TEXT = st.one_of(st.text(LETTERS, max_size=30), st.text(max_size=30))


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(texts=st.lists(TEXT, min_size=1, max_size=5), analyser=st.sampled_from(sorted(ANALYSERS)))
@example(texts=["ΑΣ", "Σ", "ΑΣ Σ"], analyser="words")
@example(texts=["aΣ", "Σa"], analyser="characters")
def test_any_text(features_of, texts, analyser):
    ours, theirs = ANALYSERS[analyser]
    texts = [text.encode("utf-8", "replace").decode() for text in texts] + ["anchor words anchored", "other thing"]
    same(features_of({"min_df": 1, **ours}, train=texts), texts, reference(texts, theirs))
