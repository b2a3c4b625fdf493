"""Beam search through the label index: score the children of each document's clusters, keep the best few.

Scores are kept as logarithms: a product along a path of several levels would leave float32. No child scores above its
cluster, so a cluster that scores below the k-th best child already found is not looked at: the result is the same.
"""

from typing import Any

import numpy as np

from xbert.artifacts.arrays import Array
from xbert.artifacts.kinds.weights import FULL
from xbert.stages.kernels.jit import fast_kernel, kernel

SIGMOID = 0  # p = 1, 2, 3 ... is the l_p-hinge exp(-max(0, 1 - z)^p)
_FEW = 16  # documents up to which every cluster is looked at by itself
_ROUNDS = (2, 5)  # with more documents: each one's best 2 clusters, then the next 3, then the rest, cluster by cluster
_SEARCH = 40  # a chunk is laid out where a search, which costs as much as so many rows, would cost more
_MASK = FULL - 1


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
def best_children(
    indptr: Array,
    indices: Array,
    data: Array,
    beam_ptr: Array,
    beam_parent: Array,
    beam_score: Array,
    children_ptr: Array,
    children: Array,
    bias: Array,
    unit: Array,
    chunk_ptr: Array,
    word_ptr: Array,
    terms: Array,
    row_start: Array,
    words: Array,
    halves: Array,
    power: int,
    k: int,
    lookup: Array,
) -> tuple[Array, Array, Array]:
    """The best k children of every document's clusters, best first, equal scores by number: (ptr, child, log score).

    Jobs (document, cluster) are done cluster by cluster. With enough of them the chunk's rows are laid out in `lookup`
    (one int32 a term, all -1, left so), so that a term is found in one read; with few, by bisection. `halves` are the
    `words`, seen as 16 bits each.
    """
    n_docs, n_parents = len(beam_ptr) - 1, len(children_ptr) - 1
    ptr, widest, deepest, longest = np.zeros(n_docs + 1, np.int64), 0, 0, 0
    for doc in range(n_docs):
        longest = max(longest, indptr[doc + 1] - indptr[doc])
        candidates = 0
        for job in range(beam_ptr[doc], beam_ptr[doc + 1]):
            width = children_ptr[beam_parent[job] + 1] - children_ptr[beam_parent[job]]
            widest = max(widest, width)
            candidates += width
        ptr[doc + 1] = ptr[doc] + min(np.int64(k), candidates)
        deepest = max(deepest, beam_ptr[doc + 1] - beam_ptr[doc])
    best, best_score = np.empty(ptr[n_docs], np.int32), np.empty(ptr[n_docs], np.float32)
    filled, margin = np.zeros(n_docs, np.int64), np.zeros(widest, np.float32)
    jobs, doc_of = np.empty(beam_ptr[n_docs], np.int64), np.empty(beam_ptr[n_docs], np.int32)
    found, worth = np.empty(longest, np.int64), np.empty(longest, np.float32)
    begins, ends = np.empty(longest, np.uint32), np.empty(longest, np.uint32)
    low_rank = 0
    while low_rank < deepest:
        if n_docs <= _FEW:
            high_rank = low_rank + 1
        else:
            high_rank = _ROUNDS[0] if low_rank == 0 else _ROUNDS[1] if low_rank == _ROUNDS[0] else deepest
        n_jobs = 0
        for doc in range(n_docs):
            last = ptr[doc + 1] - 1
            is_full = ptr[doc] + filled[doc] == ptr[doc + 1]
            for job in range(beam_ptr[doc] + low_rank, min(beam_ptr[doc] + high_rank, beam_ptr[doc + 1])):
                if is_full and beam_score[job] < best_score[last]:
                    continue
                jobs[n_jobs], doc_of[n_jobs] = job, doc
                n_jobs += 1
        order = np.arange(n_jobs) if n_docs <= _FEW else group(beam_parent, jobs, n_jobs, n_parents)
        start = 0
        while start < n_jobs:
            parent, sought, stop = beam_parent[jobs[order[start]]], 0, start
            while stop < n_jobs and beam_parent[jobs[order[stop]]] == parent:
                sought += indptr[doc_of[order[stop]] + 1] - indptr[doc_of[order[stop]]]
                stop += 1
            first_row, last_row = chunk_ptr[parent], chunk_ptr[parent + 1]
            first_child, n_children = children_ptr[parent], children_ptr[parent + 1] - children_ptr[parent]
            first_word, shift = np.uint64(word_ptr[parent]), parent  # row r of parent p stands at r + p in row_start
            laid_out = sought * _SEARCH > last_row - first_row
            most_terms = (last_row - first_row) * 4 > len(lookup)
            if laid_out:
                for row in range(first_row, last_row):
                    lookup[terms[row]] = row
            for at in range(start, stop):
                job, doc = jobs[order[at]], doc_of[order[at]]
                margin[:n_children] = 0.0
                # First where each term's weights are, then the weights: many far reads at once, not one after the other.
                n_found, low = 0, first_row
                last_term = indptr[doc + 1] if first_row < last_row else indptr[doc]  # a chunk may have no rows at all
                for j in range(indptr[doc], last_term):
                    if laid_out:
                        row = lookup[indices[j]]
                        if row < 0:
                            continue
                    else:
                        # A document's terms ascend, so a search starts where the last one ended. Terms are numbered by falling
                        # frequency: a large chunk has most of the first ones, and no row is missing between two of them.
                        guess = low + (indices[j] - terms[low]) if most_terms else last_row
                        if guess < last_row and terms[guess] == indices[j]:
                            low = guess
                        else:
                            high = min(max(guess, low), last_row)
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
                    found[n_found], worth[n_found] = row + shift, data[j] * unit[parent]
                    n_found += 1
                for f in range(n_found):
                    begins[f], ends[f] = row_start[found[f]], row_start[found[f] + 1]
                # Unsigned, so that the loops need not ask whether an index counts from the end.
                for f in range(n_found):
                    begin, value = np.uint64(begins[f]), worth[f]
                    if begin >= np.uint64(FULL):
                        half = np.uint64(2) * (first_word + begin - np.uint64(FULL))
                        for child in range(np.uint64(n_children)):
                            margin[child] += value * np.float32(halves[half + child])
                    else:
                        value *= np.float32(1.0 / 65536.0)  # the weight is read where it stands, 16 bits up
                        end = first_word + (np.uint64(ends[f]) & np.uint64(_MASK))
                        for entry in range(first_word + begin, end):
                            word = np.uint64(words[entry])
                            margin[word >> np.uint64(16)] += value * np.float32(np.int32(np.uint32(word << np.uint64(16))))
                base, origin, room, n = beam_score[job], ptr[doc], ptr[doc + 1] - ptr[doc], filled[doc]
                for child in range(n_children):
                    score = base + log_score(margin[child] + bias[first_child + child], power)
                    if n == room and score < best_score[origin + n - 1]:
                        continue
                    n = insert(best, best_score, origin, room, n, children[first_child + child], score)
                filled[doc] = n
            if laid_out:
                for row in range(first_row, last_row):
                    lookup[terms[row]] = -1
            start = stop
        low_rank = high_rank
    return ptr, best, best_score


@kernel
def group(parent: Array, jobs: Array, n_jobs: int, n_parents: int) -> Array:
    """The order of the first jobs by their parent."""
    place = np.zeros(n_parents + 1, np.int64)
    for at in range(n_jobs):
        place[parent[jobs[at]] + 1] += 1
    for each in range(n_parents):
        place[each + 1] += place[each]
    order = np.empty(n_jobs, np.int64)
    for at in range(n_jobs):
        order[place[parent[jobs[at]]]] = at
        place[parent[jobs[at]]] += 1
    return order


@kernel
def insert(best: Array, best_score: Array, origin: int, room: int, n: int, child: int, score: Any) -> int:
    """Put a child among the sorted best n of at most `room`, if it belongs there; returns how many there are now."""
    if n == room:
        last = origin + n - 1
        if score < best_score[last] or (score == best_score[last] and child > best[last]):
            return n
        n -= 1
    i = origin + n
    while i > origin and (best_score[i - 1] < score or (best_score[i - 1] == score and best[i - 1] > child)):
        best[i], best_score[i] = best[i - 1], best_score[i - 1]
        i -= 1
    best[i], best_score[i] = child, score
    return n + 1
