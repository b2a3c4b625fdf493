"""Beam search through the label index: score the children of each document's clusters, keep the best few.

Scores are kept as logarithms: a product along a path of several levels would leave float32.
"""

from typing import Any

import numpy as np

from xbert.artifacts.arrays import Array
from xbert.stages.kernels.jit import fast_kernel, kernel

SIGMOID = 0  # p = 1, 2, 3 ... is the l_p-hinge exp(-max(0, 1 - z)^p)


@kernel
def log_score(margin: Any, power: int) -> Any:
    """log g(z) of a classifier's margin, g in (0,1]: the sigmoid (power 0) or exp(-max(0, 1 - z)^power)."""
    if power == SIGMOID:
        return -np.log1p(np.exp(-margin)) if margin > -30.0 else margin
    loss = max(np.float32(1.0) - margin, np.float32(0.0))
    result = loss
    for _ in range(power - 1):
        result *= loss
    return -result


@fast_kernel
def expand(
    indptr: Array,
    indices: Array,
    data: Array,
    beam_ptr: Array,
    beam_parent: Array,
    beam_score: Array,
    children_ptr: Array,
    children: Array,
    bias: Array,
    chunk_ptr: Array,
    terms: Array,
    term_ptr: Array,
    entry_child: Array,
    entry_value: Array,
    power: int,
    lookup: Array,
) -> tuple[Array, Array, Array]:
    """All children of every document's clusters: (candidate_ptr, child, log score), grouped by document.

    Jobs (document, cluster) are done cluster by cluster. With enough of them the chunk's rows are laid out in `lookup`
    (one int32 a term, all -1, left so), so that a term is found in one read; with few, by bisection.
    """
    n_docs, n_parents = len(beam_ptr) - 1, len(children_ptr) - 1
    n_jobs = beam_ptr[n_docs]
    candidate_ptr, place = np.zeros(n_docs + 1, np.int64), np.empty(n_jobs, np.int64)
    doc_of, by_parent = np.empty(n_jobs, np.int32), np.zeros(n_parents + 1, np.int64)
    at = 0
    for doc in range(n_docs):
        for job in range(beam_ptr[doc], beam_ptr[doc + 1]):
            parent = beam_parent[job]
            place[job], doc_of[job] = at, doc
            at += children_ptr[parent + 1] - children_ptr[parent]
            by_parent[parent + 1] += 1
        candidate_ptr[doc + 1] = at
    for parent in range(n_parents):
        by_parent[parent + 1] += by_parent[parent]
    jobs, fill = np.empty(n_jobs, np.int64), by_parent[:n_parents].copy()
    for job in range(n_jobs):
        jobs[fill[beam_parent[job]]] = job
        fill[beam_parent[job]] += 1
    candidate, score = np.empty(at, np.int32), np.empty(at, np.float32)
    for parent in range(n_parents):
        if by_parent[parent] == by_parent[parent + 1]:
            continue
        first_child, last_child = children_ptr[parent], children_ptr[parent + 1]
        first_row, last_row = chunk_ptr[parent], chunk_ptr[parent + 1]
        n_children, n_rows = last_child - first_child, last_row - first_row
        n_terms_sought = 0
        for k in range(by_parent[parent], by_parent[parent + 1]):
            doc = doc_of[jobs[k]]
            n_terms_sought += indptr[doc + 1] - indptr[doc]
        laid_out = n_terms_sought * 4 > n_rows
        if laid_out:
            for row in range(first_row, last_row):
                lookup[terms[row]] = row
        for k in range(by_parent[parent], by_parent[parent + 1]):
            job = jobs[k]
            doc, start = doc_of[job], place[job]
            origin = np.uint64(start)
            for child in range(n_children):
                score[start + child] = bias[first_child + child]
            low = first_row
            # Unsigned, here and below, so that the loop need not ask whether an index counts from the end.
            for j in range(np.uint64(indptr[doc]), np.uint64(indptr[doc + 1])):
                if laid_out:
                    row = lookup[indices[j]]
                    if row < 0:
                        continue
                else:  # a document's terms ascend, so each search starts where the last one ended
                    high = last_row
                    while low < high:
                        middle = (low + high) >> 1
                        if terms[middle] < indices[j]:
                            low = middle + 1
                        else:
                            high = middle
                    if low == last_row:
                        break
                    if terms[low] != indices[j]:
                        continue
                    row = low
                value = data[j]
                for entry in range(np.uint64(term_ptr[row]), np.uint64(term_ptr[row + 1])):
                    score[origin + np.uint64(entry_child[entry])] += value * entry_value[entry]
            for child in range(n_children):
                candidate[start + child] = children[first_child + child]
                score[start + child] = beam_score[job] + log_score(score[start + child], power)
        if laid_out:
            for row in range(first_row, last_row):
                lookup[terms[row]] = -1
    return candidate_ptr, candidate, score


@kernel
def keep_best(candidate_ptr: Array, candidate: Array, score: Array, k: int) -> tuple[Array, Array, Array]:
    """The best k candidates of each document, best first, equal scores by number: (ptr, candidate, score)."""
    n_docs = len(candidate_ptr) - 1
    ptr = np.zeros(n_docs + 1, np.int64)
    for doc in range(n_docs):
        ptr[doc + 1] = ptr[doc] + min(np.int64(k), candidate_ptr[doc + 1] - candidate_ptr[doc])
    best, best_score = np.empty(ptr[n_docs], np.int32), np.empty(ptr[n_docs], np.float32)
    for doc in range(n_docs):
        start, room, n = ptr[doc], ptr[doc + 1] - ptr[doc], 0
        for j in range(candidate_ptr[doc], candidate_ptr[doc + 1]):
            s, c = score[j], candidate[j]
            if n == room:
                last = start + n - 1
                if s < best_score[last] or (s == best_score[last] and c > best[last]):
                    continue
                n -= 1
            i = start + n  # insert into the sorted few: most candidates never get here
            while i > start and (best_score[i - 1] < s or (best_score[i - 1] == s and best[i - 1] > c)):
                best[i], best_score[i] = best[i - 1], best_score[i - 1]
                i -= 1
            best[i], best_score[i] = c, s
            n += 1
    return ptr, best, best_score
