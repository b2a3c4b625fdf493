"""Choosing and numbering terms, rows on disk, and what must never change them."""

import hashlib

import numpy as np
import pytest

from xbert.artifacts.errors import InputError
from xbert.artifacts.kinds.features import Features
from xbert.artifacts.sparse import Sparse
from xbert.stages.features.tfidf import Tfidf, TfidfConfig


def run(dataset, work, **settings):
    return Tfidf().run({"data": dataset}, TfidfConfig(**{"word_ngrams": 1, **settings}), work)


def digest(folder):
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}


def large_texts(n_docs=3000, seed=0):
    """Enough text for several batches, some of it not ASCII."""
    rng = np.random.default_rng(seed)
    words = np.array([f"word{i}" if i % 7 else f"Wörter{i}Σ" for i in range(20_000)])
    return [" ".join(words[np.minimum(rng.zipf(1.3, 450), len(words)) - 1]) for _ in range(n_docs)]


def test_terms_are_numbered_by_documents_then_by_bytes(features_of):
    features = features_of({"min_df": 1}, train=["zebra apple", "zebra mango", "zebra apple fig fig fig", "éclair"])
    assert list(features.vocabulary.terms) == ["zebra", "apple", "fig", "mango", "éclair"]


def test_max_terms_keeps_those_most_documents_have(features_of):
    features = features_of({"min_df": 1, "max_terms": 2}, train=["bb aa cc cc", "bb aa", "bb dd", "aa cc"])
    assert list(features.vocabulary.terms) == ["aa", "bb"]


def test_a_word_and_the_same_run_of_characters_are_two_terms(features_of):
    features = features_of({"min_df": 1, "char_min": 2, "char_ngrams": 2}, train=["ab xabx"])
    assert list(features.vocabulary.terms).count("ab") == 2


def test_rows_have_unit_length_and_rising_terms(features_of):
    X = features_of(train=["aa bb cc dd", "dd cc bb aa aa", "bb zz"]).X["train"]
    for i in range(X.n_rows):
        values = X.data[X.indptr[i] : X.indptr[i + 1]]
        assert np.linalg.norm(values) == pytest.approx(1.0, abs=1e-6)
        assert (np.diff(X.row(i)) > 0).all()


def test_a_document_without_a_known_word_is_an_empty_row(features_of):
    features = features_of(train=["aa bb", "aa bb", "new", ""], test=["unseen", "aa"])
    assert features.X["train"].row_lengths().tolist() == [2, 2, 0, 0]
    assert features.X["test"].row_lengths().tolist() == [0, 1]


def test_only_training_texts_are_counted(features_of):
    features = features_of(train=["aa bb", "aa bb"], valid=["cc cc"], test=["cc dd", "cc dd"])
    assert list(features.vocabulary.terms) == ["aa", "bb"]


def test_any_number_of_threads_gives_the_same_bytes(dataset_of, bench, tmp_path):
    dataset = dataset_of(train=large_texts(), test=large_texts(300, seed=1))
    found = []
    for threads in (1, 2, 5):
        work = bench(tmp_path / str(threads), threads)
        run(dataset, work, word_ngrams=2).save(work.folder)
        found.append(digest(work.folder))
    assert found[0] == found[1] == found[2]


def test_what_a_killed_run_left_behind_does_not_matter(dataset_of, bench, tmp_path):
    dataset = dataset_of(train=["aa bb", "aa cc"], test=["aa"])
    clean, dirty = bench(tmp_path / "clean"), bench(tmp_path / "dirty")
    for name in ("counts.spool", "train.X.indices.npy", "train.X.data.npy", "test.X.indptr.npy"):
        (dirty.folder / name).write_bytes(b"junk" * 1000)
    for work in (clean, dirty):
        run(dataset, work, min_df=1).save(work.folder)
    assert digest(clean.folder) == digest(dirty.folder)


def test_the_spool_is_removed_even_after_an_error(dataset_of, work):
    with pytest.raises(InputError):
        run(dataset_of(train=["aa", "bb"]), work)
    assert not (work.folder / "counts.spool").exists()


def test_save_leaves_the_rows_alone_and_load_finds_them(dataset_of, work):
    features = run(dataset_of(train=["aa bb", "aa cc"], valid=["cc"]), work, min_df=1)
    before = (work.folder / "train.X.data.npy").stat().st_mtime_ns
    features.save(work.folder)
    loaded = Features.load(work.folder)
    assert (work.folder / "train.X.data.npy").stat().st_mtime_ns == before
    assert list(loaded.vocabulary.terms) == ["aa", "bb", "cc"]
    np.testing.assert_array_equal(loaded.X["train"].data, features.X["train"].data)
    assert loaded.analysis == features.analysis


def test_the_table_is_a_power_of_two_and_at_most_half_full(features_of):
    vocabulary = features_of({"min_df": 1}, train=[" ".join(f"w{i}" for i in range(1000))]).vocabulary
    assert len(vocabulary.slots) == 2048
    assert sorted(vocabulary.numbers[vocabulary.numbers >= 0]) == list(range(1000))
    assert ((vocabulary.slots == 0) == (vocabulary.numbers == -1)).all()


def test_progress_reaches_its_totals(dataset_of, work):
    run(dataset_of(train=["aa bb", "aa bb"], valid=["aa"]), work)
    assert len(work.bars) == 3  # counting, weighing, transforming valid
    assert all(bar.done == bar.total for bar in work.bars)


def test_no_text_is_refused(dataset_of, work):
    rows = Sparse(np.array([0, 1]), np.array([0], np.int32), np.ones(1, np.float32), 3)
    with pytest.raises(InputError, match=r'no text: set features.method = "given"'):
        run(dataset_of(train=rows), work)


@pytest.mark.parametrize("texts", [[], ["", ""], ["aa", "bb"]])
def test_no_term_left_is_refused(dataset_of, work, texts):
    with pytest.raises(InputError, match=r"set features\.min_df lower"):
        run(dataset_of(train=texts), work)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"word_ngrams": 4}, "word_ngrams = 4: must be between 0 and 3"),
        ({"word_ngrams": 0}, "one of the two must be at least 1"),
        ({"char_ngrams": 2, "char_min": 3}, "char_min = 3: must be at most char_ngrams = 2"),
        ({"min_df": 0}, "min_df = 0: must be at least 1"),
    ],
)
def test_settings_that_contradict_are_refused(settings, message):
    with pytest.raises(InputError, match=message):
        TfidfConfig(**settings)
