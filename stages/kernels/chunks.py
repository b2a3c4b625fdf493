"""Weights by child made weights by chunk: the transposition that training ends with and prediction lives on."""

import numpy as np

from xbert.artifacts.arrays import Array
from xbert.stages.kernels.jit import kernel


@kernel
def chunk_rows(
    children_ptr: Array, child_ptr: Array, columns: Array, values: Array, lookup: Array
) -> tuple[Array, Array, Array, Array, Array]:
    """From (term, weight) lists per child, children grouped by parent, to rows per chunk.

    Returns (chunk_ptr, terms, term_ptr, entry_child, entry_value) of ChunkedWeights. `lookup` is a scratch array of one
    int32 a term, all -1, and is left so.
    """
    n_parents, nnz = len(children_ptr) - 1, len(columns)
    chunk_ptr = np.zeros(n_parents + 1, np.int64)
    terms, counts = np.empty(nnz, np.int32), np.zeros(nnz, np.int64)
    n_rows = 0
    for parent in range(n_parents):
        first, last = child_ptr[children_ptr[parent]], child_ptr[children_ptr[parent + 1]]
        start = n_rows
        for j in range(first, last):
            if lookup[columns[j]] < 0:
                lookup[columns[j]] = 0
                terms[n_rows] = columns[j]
                n_rows += 1
        terms[start:n_rows] = np.sort(terms[start:n_rows])
        for row in range(start, n_rows):
            lookup[terms[row]] = row
        for j in range(first, last):
            counts[lookup[columns[j]]] += 1
        for row in range(start, n_rows):
            lookup[terms[row]] = -1
        chunk_ptr[parent + 1] = n_rows
    term_ptr = np.zeros(n_rows + 1, np.int64)
    for row in range(n_rows):
        term_ptr[row + 1] = term_ptr[row] + counts[row]
    entry_child, entry_value = np.empty(nnz, np.uint16), np.empty(nnz, np.float32)
    fill = term_ptr[:n_rows].copy()
    for parent in range(n_parents):
        for row in range(chunk_ptr[parent], chunk_ptr[parent + 1]):
            lookup[terms[row]] = row
        for place in range(children_ptr[parent], children_ptr[parent + 1]):
            for j in range(child_ptr[place], child_ptr[place + 1]):
                row = lookup[columns[j]]
                entry_child[fill[row]] = place - children_ptr[parent]
                entry_value[fill[row]] = values[j]
                fill[row] += 1
        for row in range(chunk_ptr[parent], chunk_ptr[parent + 1]):
            lookup[terms[row]] = -1
    return chunk_ptr, terms[:n_rows].copy(), term_ptr, entry_child, entry_value
