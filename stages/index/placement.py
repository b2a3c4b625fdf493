"""Labels that nothing is known of: each goes to the cluster nearest to its stand-in that still has room."""

from typing import Any

import numpy as np

from xbert.artifacts.arrays import Array
from xbert.stages.index.embeddings import Embeddings


def place_unknown(clusters: list[Array], vectors: Embeddings, n_labels: int) -> Array:
    """The cluster of every label: the known ones as clustered, the others added so that sizes still differ by at most one."""
    cluster_of = np.full(n_labels, -1, np.int32)
    for number, members in enumerate(clusters):
        cluster_of[members] = number
    unknown = np.flatnonzero(cluster_of < 0)
    if len(unknown) == 0:
        return cluster_of
    base, extra = divmod(n_labels, len(clusters))
    sizes = np.array([len(members) for members in clusters])
    room, larger = base - sizes, extra - int((sizes > base).sum())
    similar = _similarity(vectors, cluster_of, unknown, len(clusters))
    # The surest first, so that a label with no stand-in never takes the place of one that has.
    for i in np.argsort(-similar.max(axis=1).toarray().ravel(), kind="stable"):
        row = slice(similar.indptr[i], similar.indptr[i + 1])
        nearest = similar.indices[row][np.argsort(-similar.data[row], kind="stable")]
        chosen = next((c for c in nearest if room[c] > 0 or (room[c] == 0 and larger > 0)), None)
        if chosen is None:
            chosen = int(np.argmax(room))
        larger -= int(room[chosen] == 0)
        room[chosen] -= 1
        cluster_of[unknown[i]] = chosen
    return cluster_of


def _similarity(vectors: Embeddings, cluster_of: Array, unknown: Array, n_clusters: int) -> Any:
    """Unknown labels x clusters: cosine to the clusters' mean vectors, sparse."""
    from scipy.sparse import csr_array, diags_array

    known = np.flatnonzero(cluster_of >= 0)
    member = csr_array((np.ones(len(known), np.float32), (cluster_of[known], known)), shape=(n_clusters, len(cluster_of)))
    centres = (member @ vectors.Z.to_scipy()).tocsr()
    norms = np.sqrt(np.maximum(np.asarray(centres.multiply(centres).sum(axis=1)).ravel(), 1e-12))
    return (vectors.guess.to_scipy()[unknown] @ (diags_array(1 / norms) @ centres).T).tocsr()
