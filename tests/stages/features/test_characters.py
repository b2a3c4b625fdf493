"""The table of characters says what Python says, for every code point."""

import re

import pytest

from xbert.stages.features.characters import CONTEXTUAL, character_classes


@pytest.mark.parametrize("lowercase", [True, False])
def test_every_code_point(lowercase):
    classes = character_classes(lowercase, False).tolist()
    word = re.compile(r"\w").match
    for code in range(0x110000):
        character = chr(code)
        expected = character.lower() if lowercase and character not in CONTEXTUAL else character
        found = classes[code] if code < len(classes) else code << 2
        assert found == (ord(expected) << 2 | expected.isspace() << 1 | (word(expected) is not None))


def test_lower_case_is_stable():
    """The kernel may lower-case what Python has lower-cased already."""
    every = "".join(map(chr, range(0x110000)))
    assert every.lower().lower() == every.lower()


def test_ascii_alone_is_the_beginning_of_all():
    assert character_classes(True, True).tolist() == character_classes(True, False)[:128].tolist()
