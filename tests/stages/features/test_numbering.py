"""The order of terms, against Python's own sort."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from xbert.artifacts.arrays import Strings
from xbert.stages.features.numbering import number_terms

TERMS = st.lists(st.tuples(st.text("ab\0é", max_size=20), st.integers(1, 4)), min_size=1, max_size=30)


@given(terms=TERMS, low=st.integers(1, 3), most=st.integers(0, 10))
def test_by_documents_then_bytes_then_appearance(terms, low, most):
    documents = np.array([count for _, count in terms])
    table = Strings.of([text for text, _ in terms])
    expected = sorted(
        (i for i in range(len(terms)) if low <= documents[i] <= 3), key=lambda i: (-documents[i], terms[i][0].encode())
    )
    found = number_terms(documents, table.blob, table.offsets, low, 3.0, most)
    assert found.tolist() == (expected[:most] if most else expected)
