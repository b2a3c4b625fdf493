"""The label index by recursive balanced 2-means: K clusters whose sizes differ by at most one, and the levels above them."""

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import joblib
import numpy as np

from xbert.artifacts.arrays import Array
from xbert.artifacts.errors import InputError
from xbert.artifacts.kinds.dataset import Dataset
from xbert.artifacts.kinds.features import Features
from xbert.artifacts.kinds.label_index import LabelIndex
from xbert.artifacts.kinds.label_vectors import LabelVectors
from xbert.artifacts.kinds.weights import MAX_CHILDREN
from xbert.artifacts.sparse import Sparse
from xbert.stages.base import AUTO, Companion, Config, Estimate, Method, Shape, Work, setting
from xbert.stages.index import embeddings
from xbert.stages.index.placement import place_unknown
from xbert.stages.kernels import kmeans, packing
from xbert.stages.neural.pretrained import MINILM


@dataclass(frozen=True)
class KMeansConfig(Config):
    """Settings of the index."""

    embedding: str = setting(
        embeddings.PIFA,
        "what a label's vector is made of: its training documents (pifa), the words of its text (text), what an encoder makes "
        "of its text (contextual)",
        choices=embeddings.EMBEDDINGS,
    )
    encoder: str = setting(MINILM, "what reads labels for contextual vectors: the name of a model, or a folder", folder=True)
    layers: str = setting("last", "layers of the encoder whose mean is taken: 'last', 'all', or numbers with commas")
    without_text: str = setting(
        embeddings.REFUSE,
        "labels without text under embedding 'contextual': an error, or their documents instead",
        choices=(embeddings.REFUSE, embeddings.PIFA),
    )
    clusters: int | str = setting(AUTO, "number of label clusters K; 'auto' takes it from labels_per_cluster", low=2)
    labels_per_cluster: int = setting(64, "about how many labels a cluster holds when clusters = 'auto'", low=1)
    branching: int = setting(64, "about how many children a cluster of the upper levels has", low=2)
    max_iterations: int = setting(20, "most rounds of one balanced 2-means split", low=1)
    seed: int = setting(0, "another seed gives another clustering: for ensembles")


@dataclass(frozen=True)
class Node:
    """Labels still to be split into `clusters` clusters, `larger` of which get one label more."""

    members: Array
    clusters: int
    larger: int
    rows: "Rows"


@dataclass(frozen=True)
class Rows:
    """The members' vectors, their columns renumbered: what lies below a node costs what its own terms cost."""

    indptr: Array
    indices: Array
    data: Array
    n_columns: int

    def take(self, rows: Array) -> "Rows":
        """Those rows, with only their columns."""
        lookup = np.full(self.n_columns, -1, np.int32)
        columns, indptr, indices, data = packing.gather(self.indptr, self.indices, self.data, rows, lookup)
        return Rows(indptr, indices, data, len(columns))


_VECTORS = "label-vectors"  # the companion that reads labels with an encoder
_STARTS = 8  # labels drawn for a split, of which two that differ are its first centres
_PIFA_SECONDS, _SPLIT_SECONDS = 25e-9, 60e-9  # for every entry of the labels' vectors; the second at every depth
_VECTOR_BYTES = 32  # of an entry: the vectors, their copy with renumbered columns, and the next depth's
_NO_ROWS = Rows(np.zeros(1, np.int64), np.empty(0, np.uint32), np.empty(0, np.float32), 0)  # of a node that is a cluster


class KMeans(Method[KMeansConfig]):
    """Semantic label indexing (X-BERT, section 3.2) by balanced k-means."""

    stage, name, version = "index", "kmeans", 2
    config = KMeansConfig
    needs = ("data", "features")
    gives = LabelIndex

    @classmethod
    def estimate(cls, config: KMeansConfig, shape: Shape, threads: int) -> Estimate:
        """The labels' vectors, read some times at every depth of the splitting."""
        entries = embeddings.entries_of_labels(shape)
        depth = math.log2(max(shape.n_clusters, 2))
        seconds = _PIFA_SECONDS * entries + entries * depth * _SPLIT_SECONDS / threads
        return Estimate(seconds, entries * _VECTOR_BYTES, entries * _VECTOR_BYTES, shape.n_labels * 24)

    @classmethod
    def check_data(cls, config: KMeansConfig, dataset: Dataset) -> None:
        """An encoder reads the labels' texts."""
        if config.embedding in embeddings.ENCODED and not dataset.labels.have_text:
            raise InputError(
                f"index.embedding = {config.embedding!r} needs label texts, and this dataset has none: give data.labels, "
                "or set index.embedding = 'pifa'"
            )

    @classmethod
    def companions(cls, config: KMeansConfig) -> dict[str, Companion]:
        """The labels' vectors by the encoder, which do not depend on clusters and seeds."""
        if config.embedding not in embeddings.ENCODED:
            return {}
        return {_VECTORS: Companion("index", _VECTORS, {"encoder": config.encoder, "layers": config.layers})}

    def run(self, inputs: dict[str, Any], config: KMeansConfig, work: Work) -> LabelIndex:
        """Embed the labels, split them, and stack the levels."""
        dataset: Dataset = inputs["data"]
        n_clusters = cluster_count(config, dataset)
        vectors = _embed(inputs, config, work)
        known = np.flatnonzero(vectors.known).astype(np.int32)
        if len(known) < 2:
            raise InputError(
                f"index.embedding = {config.embedding!r} tells nothing of all but {len(known)} of {dataset.n_labels} labels "
                "(their texts hold no word of the documents): set index.embedding = 'pifa'"
            )
        if config.clusters == AUTO:
            n_clusters = min(n_clusters, len(known))  # the documents of some labels may hold no term
        if len(known) < n_clusters:
            raise InputError(
                f"{n_clusters} clusters but only {len(known)} of {dataset.n_labels} labels have something to be clustered "
                f"by ({config.embedding}): set index.clusters to at most {len(known)}"
            )
        depths = split_all(vectors.Z, known, n_clusters, config.max_iterations, work)
        cluster_of = place_unknown(depths[-1], vectors, dataset.n_labels)
        parents = stack(depths, levels_of(len(depths) - 1, n_clusters, config.branching))
        unknown = dataset.n_labels - len(known)
        if unknown:
            work.say(f"{unknown} labels have no {_source(config.embedding)}: placed by {_stand_in(vectors, unknown)}")
        facts = {"embedding": config.embedding, "labels without a vector": unknown}
        return LabelIndex([_level(cluster_of, n_clusters), *parents], facts)


def _embed(inputs: dict[str, Any], config: KMeansConfig, work: Work) -> embeddings.Embeddings:
    dataset: Dataset = inputs["data"]
    features: Features = inputs["features"]
    if config.embedding not in embeddings.ENCODED:
        return embeddings.embed(dataset, features, config.embedding, work.threads, work.memory)
    read: LabelVectors = inputs[_VECTORS]
    return embeddings.embed_contextual(
        dataset, features, read.vectors, config.embedding, config.without_text, work.threads, work.memory
    )


def _source(embedding: str) -> str:
    return {embeddings.PIFA: "training document", embeddings.TEXT: "text", embeddings.CONTEXTUAL: "text"}.get(
        embedding, "training document and no text"
    )


def _stand_in(vectors: embeddings.Embeddings, unknown: int) -> str:
    guessed = int(((vectors.guess.row_lengths() > 0) & ~vectors.known).sum())
    return f"their text or related labels ({guessed}) or where there was room ({unknown - guessed})"


def cluster_count(config: KMeansConfig, dataset: Dataset) -> int:
    """K, checked against the data."""
    n_labels, seen = dataset.n_labels, int((dataset.label_counts() > 0).sum())
    n_clusters: int
    if config.clusters == AUTO:
        # Counted over the labels that can be learnt: a thesaurus may hold many more.
        wanted = max(2, 2 ** round(math.log2(max(seen / config.labels_per_cluster, 2))))
        n_clusters = min(wanted, max(seen, 2))
    else:
        n_clusters = int(config.clusters)
    if n_labels < 2:
        raise InputError("there is only 1 label: with nothing to choose from, there is nothing to learn")
    if n_clusters > n_labels:
        raise InputError(f"index.clusters = {n_clusters}, but there are only {n_labels} labels: set it to at most that")
    if n_labels / n_clusters > MAX_CHILDREN or n_clusters / config.branching > MAX_CHILDREN:
        raise InputError(
            f"{n_labels} labels in {n_clusters} clusters is more than {MAX_CHILDREN} a cluster: set index.clusters higher"
        )
    return n_clusters


def split_all(Z: Sparse, members: Array, n_clusters: int, max_iterations: int, work: Work) -> list[list[Array]]:
    """Split until every node is one cluster: the nodes' members at every depth, the whole set first."""
    rows = Rows(Z.indptr, Z.indices.view(np.uint32), Z.values(), Z.n_cols)
    rows = rows if len(members) == Z.n_rows else rows.take(members)
    nodes = [Node(members, n_clusters, len(members) % n_clusters, rows)]
    base = len(members) // n_clusters
    depths = [[members]]
    with work.progress("clustering labels", n_clusters - 1, "splits") as bar:
        while any(node.clusters > 1 for node in nodes):
            rng = work.rng(f"split-{len(depths)}")
            starts = [rng.choice(n, min(n, _STARTS), replace=False) if n > 1 else None for n in map(_to_split, nodes)]
            halves = joblib.Parallel(work.threads, prefer="threads")(
                joblib.delayed(split)(node, base, start, max_iterations) for node, start in zip(nodes, starts, strict=True)
            )
            nodes = [half for pair in halves for half in pair]
            depths.append([node.members for node in nodes])
            bar.advance(len(nodes) - len(halves))
    return depths


def _to_split(node: Node) -> int:
    """How many labels are to be split; 0 for a node that is a cluster."""
    return len(node.members) if node.clusters > 1 else 0


def split(node: Node, base: int, start: Array | None, max_iterations: int) -> list[Node]:
    """One node into two halves of the sizes that keep all clusters within one label of each other."""
    if start is None:
        return [node]
    left = (node.clusters + 1) // 2
    larger = min(max(round(node.larger * left / node.clusters), node.larger - (node.clusters - left)), left)
    rows = node.rows
    goes_left = kmeans.split_in_two(
        rows.indptr, rows.indices, rows.data, rows.n_columns, base * left + larger, start, max_iterations
    )
    sides = np.flatnonzero(goes_left).astype(np.int32), np.flatnonzero(~goes_left).astype(np.int32)
    counts = (left, larger), (node.clusters - left, node.larger - larger)
    return [
        Node(node.members[side], clusters, more, rows.take(side) if clusters > 1 else _NO_ROWS)
        for side, (clusters, more) in zip(sides, counts, strict=True)
    ]


def levels_of(depth: int, n_clusters: int, branching: int) -> list[int]:
    """At which depths of the binary tree the levels stand, from the clusters up; evenly spaced, the last above the root."""
    count = max(1, math.ceil(math.log(n_clusters) / math.log(branching) - 1e-9))
    return sorted({round(depth * i / count) for i in range(1, count + 1)} - {0}, reverse=True)


def stack(depths: list[list[Array]], at: list[int]) -> list[Sparse]:
    """The levels above the clusters: clusters x parents, parents x theirs, and so on."""
    n_labels = int(depths[0][0].max()) + 1
    chain = []
    for below, above in pairwise(at):
        node_of = np.empty(n_labels, np.int32)
        for number, members in enumerate(depths[above]):
            node_of[members] = number
        parent = np.array([node_of[members[0]] for members in depths[below]], np.int32)
        chain.append(_level(parent, len(depths[above])))
    return chain


def _level(parent: Array, n_parents: int) -> Sparse:
    return Sparse(np.arange(len(parent) + 1, dtype=np.int64), parent, None, n_parents)
