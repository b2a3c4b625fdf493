"""Whole words as tokens, and vectors for them from a file."""

import numpy as np
import pytest

from xbert.artifacts.errors import ArtifactError, InputError
from xbert.stages.neural.encoders.word_vectors import read_word_vectors
from xbert.stages.neural.encoders.words import NUMBER, UNKNOWN, Words, split


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("In 1998, 3.5 Million cats", ["in", "1998", "3.5", "million", "cats"]),
        ("1,000.50 and 7.", ["1,000.50", "and", "7"]),
        ("B12 mp3 12ab x_y", ["b12", "mp3", "12ab", "x", "y"]),
        ("Don't-stop ÉTÉ 日本語 ΟΔΟΣ", ["don", "t", "stop", "été", "日本語", "οδος"]),
        ("٣٤ ²", ["٣٤", "²"]),
        (" \t\n...", []),
    ],
)
def test_words_and_numbers_are_found(text, expected):
    assert split(text) == expected


def test_the_most_frequent_words_are_kept_and_equals_go_by_the_alphabet():
    words = Words.of(["b b b a a", "d c a", "17 17 17 17"], 3)
    assert words.words == ["a", "b", "c"]
    assert len(words) == 6


def test_counting_in_parts_changes_nothing():
    texts = [f"word{i % 37} word{i % 11}" for i in range(5000)]
    expected = Words.of([" ".join(texts)], 20).words
    assert Words.of(iter(texts), 20).words == expected


def test_all_numbers_are_one_token_and_unknown_words_another():
    words = Words.of(["cat cat dog"], 2)
    found = words.tokenize(["Dog 1998 CAT 3.5 bird 12ab 10,000", "", "?!"])
    assert [ids.tolist() for ids in found] == [[4, NUMBER, 3, NUMBER, UNKNOWN, UNKNOWN, NUMBER], [UNKNOWN], [UNKNOWN]]
    assert all(ids.dtype == np.int32 for ids in found)


def test_no_words_at_all_still_cut_text():
    assert Words.of(["", "12"], 5).tokenize(["cat 1"])[0].tolist() == [UNKNOWN, NUMBER]


def test_a_vocabulary_is_kept_as_text(tmp_path):
    words = Words.of(["zoé 日本 cat"], 10)
    words.save(tmp_path)
    assert (tmp_path / "words.txt").read_text("utf-8") == "cat\nzoé\n日本\n"
    assert Words.load(tmp_path, 3).numbers == words.numbers


def test_no_words_are_kept_too(tmp_path):
    Words([]).save(tmp_path)
    assert Words.load(tmp_path, 0).words == []


@pytest.mark.parametrize(
    ("content", "sentence"),
    [(b"cat\n", "holds 1 words where 2"), (b"cat\ncat\n", "holds 1 words where 2"), (b"\xff\ncat\n", "not UTF-8")],
)
def test_a_damaged_vocabulary_is_refused(tmp_path, content, sentence):
    (tmp_path / "words.txt").write_bytes(content)
    with pytest.raises(ArtifactError, match=sentence):
        Words.load(tmp_path, 2)


def test_a_missing_vocabulary_is_a_damaged_artifact(tmp_path):
    with pytest.raises(ArtifactError, match=r"words.txt is missing"):
        Words.load(tmp_path, 2)


WANTED = {"cat": 3, "dog": 4, "paris": 5}


@pytest.fixture
def vectors(tmp_path):
    """Read a file of those lines."""

    def read(*lines, width=2):
        path = tmp_path / "vectors.txt"
        path.write_bytes("\n".join(lines).encode())
        return {number: vector.tolist() for number, vector in read_word_vectors(path, WANTED, width).items()}

    return read


def test_vectors_of_wanted_words_are_read(vectors):
    assert vectors("the 9 9", "cat 0.5 -1e-1", "dog 2 3", "") == {3: [0.5, pytest.approx(-0.1)], 4: [2, 3]}


def test_the_first_line_of_fasttext_and_its_spaces_at_the_end_are_passed_over(vectors):
    assert vectors("2 2", "cat 1 2 ", "dog 3 4 \r") == {3: [1, 2], 4: [3, 4]}


def test_words_with_spaces_are_passed_over(vectors):
    assert vectors(". . . 7 8", "at name@domain.com 7 8", "cat 1 2") == {3: [1, 2]}


def test_the_first_of_two_vectors_counts_and_the_exact_case_before_another(vectors):
    assert vectors("CAT 8 8", "cat 1 2", "cat 3 4", "Cat 5 6", "PARIS 5 5", "Paris 6 6") == {3: [1, 2], 5: [5, 5]}


def test_line_ends_of_other_kinds_do_not_break_lines(vectors):
    assert vectors("a\x85b 1 1", "a\u2028b 1 1", "a\xa0b 1 1", "cat 1 2") == {3: [1, 2]}


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        (["cat 1 2", "dog 1 2 3"], "vectors.txt line 2: vectors of 3 numbers where word_width = 2"),
        (["cat 1 2", "the 1"], "vectors.txt line 2: vectors of 1 numbers"),
        (["400000 300"], "vectors.txt line 1: vectors of 300 numbers"),
        (["cat\t1\t2"], "vectors.txt line 1: vectors of 0 numbers"),
        (["cat 1 2", "dog 1 x.5"], "vectors.txt line 2: 'x.5' is not a number"),
        (["cat 1 nan"], "vectors.txt line 1: .*not finite"),
    ],
)
def test_what_is_wrong_with_a_line_is_said(vectors, lines, sentence):
    with pytest.raises(InputError, match=sentence):
        vectors(*lines)


def test_a_file_that_is_not_there_is_said(tmp_path):
    with pytest.raises(InputError, match=r"word_vectors = .*none.txt' cannot be read"):
        read_word_vectors(tmp_path / "none.txt", WANTED, 2)
