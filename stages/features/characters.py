"""What every character is, taken from Python itself, so that kernels and `re` and `str.lower` never disagree."""

from functools import cache

import numpy as np

from xbert.artifacts.arrays import Array

# Letters, digits and spaces all lie in the first four planes of Unicode; the kernels take the rest as they are.
N_ASCII, N_PLANES = 128, 0x40000
# The two characters whose lower case is not one character of its own: capital sigma looks at its neighbours, and the
# capital I with a dot becomes two. Text that has one of them is lower-cased by Python first.
CONTEXTUAL = ("\u03a3", "\u0130")


@cache
def character_classes(lowercase: bool, ascii_only: bool) -> Array:
    """For every code point: `code << 2 | space << 1 | word` of what it is after lower-casing, uint32."""
    codes = np.arange(N_ASCII if ascii_only else N_PLANES, dtype=np.uint32)
    if lowercase:
        codes = _lowered(codes)
    characters = codes.view("U1")
    word = np.strings.isalnum(characters) | (codes == ord("_"))
    classes: Array = (codes << np.uint32(2)) | (np.strings.isspace(characters) * np.uint32(2)) | word
    classes.flags.writeable = False
    return classes


def _lowered(codes: Array) -> Array:
    plain = codes.copy()
    for character in CONTEXTUAL:
        plain[plain == ord(character)] = 0
    lowered = plain.tobytes().decode("utf-32-le", "surrogatepass").lower()
    found = np.frombuffer(lowered.encode("utf-32-le", "surrogatepass"), np.uint32)
    return np.where(plain == codes, found, codes)
