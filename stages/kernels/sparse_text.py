"""Reading the Extreme Classification Repository's sparse text: bytes in, compressed rows out.

A line is `l1,l2 f:v f:v`; one without labels starts with a space. Worked example, three lines:
`3,1 0:0.5 7:2` gives labels 1 3 and features 0 7; ` 4:1` gives no labels; `2` gives a label and no features.
"""

import numpy as np

from xbert.artifacts.arrays import Array
from xbert.stages.kernels.jit import kernel

OK = 0
BAD_LABEL = 1
LABEL_RANGE = 2
BAD_FEATURE = 3
FEATURE_RANGE = 4
BAD_VALUE = 5
NOT_FINITE = 6
NEGATIVE = 7
DUPLICATE = 8
NO_SPACE = 9

_NEWLINE, _RETURN, _SPACE, _TAB = 10, 13, 32, 9
_COMMA, _COLON, _POINT, _PLUS, _MINUS, _ZERO, _NINE = 44, 58, 46, 43, 45, 48, 57
_MOST_DIGITS = 19  # as many as a 64-bit whole number holds
_TOO_LARGE = 1 << 40  # no id is; stops a run of digits from wrapping round
_FLOAT32_LIMIT = 3.4028235677973366e38  # from here on, a float32 is infinite


@kernel
def _is_gap(byte: int) -> bool:
    return byte == _SPACE or byte == _TAB or byte == _RETURN  # noqa: PLR1714 - numba knows no sets here


@kernel
def _read_id(text: Array, at: int) -> tuple[int, int]:
    """A whole number and where it ends; -1 where there is none."""
    value, start = 0, at
    while _ZERO <= text[at] <= _NINE:
        if value < _TOO_LARGE:
            value = value * 10 + (text[at] - _ZERO)
        at += 1
    return (value if at > start else -1), at


@kernel
def _read_value(text: Array, at: int) -> tuple[int, float, int]:
    """A decimal number: code, value, where it ends. Off by a few of float64's last places at most, kept as float32."""
    negative = text[at] == _MINUS
    if text[at] == _MINUS or text[at] == _PLUS:
        at += 1
    letter = text[at] | 32
    if letter == 110 or letter == 105:  # nan, inf, infinity  # noqa: PLR1714
        return NOT_FINITE, 0.0, at
    mantissa, digits, exponent, seen, point = np.uint64(0), 0, 0, 0, False
    while True:
        byte = text[at]
        if _ZERO <= byte <= _NINE:
            seen += 1
            if digits < _MOST_DIGITS:
                mantissa = mantissa * np.uint64(10) + np.uint64(byte - _ZERO)
                digits += 1 if mantissa > 0 else 0
                exponent -= 1 if point else 0
            else:
                exponent += 0 if point else 1
        elif byte == _POINT and not point:
            point = True
        else:
            break
        at += 1
    if seen == 0:
        return BAD_VALUE, 0.0, at
    if text[at] | 32 == 101:  # e
        at += 1
        down = text[at] == _MINUS
        if text[at] == _MINUS or text[at] == _PLUS:
            at += 1
        power, at = _read_id(text, at)
        if power < 0:
            return BAD_VALUE, 0.0, at
        exponent += -power if down else power
    value = _scaled(mantissa, exponent)
    if value >= _FLOAT32_LIMIT:
        return NOT_FINITE, 0.0, at
    if negative and value > 0:
        return NEGATIVE, 0.0, at
    return OK, value, at


@kernel
def _scaled(mantissa: np.uint64, exponent: int) -> float:
    if mantissa == 0 or exponent < -400:
        return 0.0
    if exponent > 400:
        return np.inf
    value = float(mantissa)
    if exponent < -300:  # in two steps, as 10**330 is no float64
        value, exponent = value / 1e300, exponent + 300
    power = float(10.0 ** abs(exponent))
    return value / power if exponent < 0 else value * power


@kernel
def parse_rows(  # noqa: PLR0911 - an error leaves at once, with its place
    text: Array,
    n_labels: int,
    n_terms: int,
    most_rows: int,
    Y_indptr: Array,
    Y_indices: Array,
    X_indptr: Array,
    X_indices: Array,
    X_data: Array,
) -> tuple[int, int, int, int, int]:
    """Fill the arrays from whole lines; rows come out sorted, a label repeated in a row once.

    Returns code, rows read (the one after them is bad unless the code is OK), bytes read, labels dropped as repeated,
    and the label or feature that is wrong. The arrays must hold a row for every newline, a label for every comma and
    row, a feature for every colon; each newline ends a row, and the text ends with one.
    """
    at, row, y, x, repeated = 0, 0, 0, 0, 0
    Y_indptr[0] = 0
    X_indptr[0] = 0
    while at < len(text) and row < most_rows:
        y_start, x_start, sorted_ = y, x, True
        if text[at] != _NEWLINE and not _is_gap(text[at]):
            while True:
                label, at = _read_id(text, at)
                if label < 0:
                    return BAD_LABEL, row, at, repeated, 0
                if text[at] == _COLON:
                    return NO_SPACE, row, at, repeated, label
                if label >= n_labels:
                    return LABEL_RANGE, row, at, repeated, label
                sorted_ = sorted_ and (y == y_start or Y_indices[y - 1] < label)
                Y_indices[y] = label
                y += 1
                if text[at] != _COMMA:
                    break
                at += 1
            if text[at] != _NEWLINE and not _is_gap(text[at]):
                return BAD_LABEL, row, at, repeated, 0
            if not sorted_:
                Y_indices[y_start:y].sort()
                kept = y_start + 1
                for i in range(y_start + 1, y):
                    if Y_indices[i] != Y_indices[kept - 1]:
                        Y_indices[kept] = Y_indices[i]
                        kept += 1
                repeated += y - kept
                y = kept
        sorted_ = True
        while True:
            while _is_gap(text[at]):
                at += 1
            if text[at] == _NEWLINE:
                break
            term, at = _read_id(text, at)
            if term < 0 or text[at] != _COLON:
                return BAD_FEATURE, row, at, repeated, 0
            if term >= n_terms:
                return FEATURE_RANGE, row, at, repeated, term
            code, value, at = _read_value(text, at + 1)
            if code == OK and text[at] != _NEWLINE and not _is_gap(text[at]):
                code = BAD_VALUE
            if code != OK:
                return code, row, at, repeated, term
            sorted_ = sorted_ and (x == x_start or X_indices[x - 1] < term)
            X_indices[x] = term
            X_data[x] = value
            x += 1
        if not sorted_:
            order = np.argsort(X_indices[x_start:x])
            X_indices[x_start:x] = X_indices[x_start:x][order]
            X_data[x_start:x] = X_data[x_start:x][order]
            for i in range(x_start + 1, x):
                if X_indices[i] == X_indices[i - 1]:
                    return DUPLICATE, row, at, repeated, X_indices[i]
        at += 1
        row += 1
        Y_indptr[row] = y
        X_indptr[row] = x
    return OK, row, at, repeated, 0
