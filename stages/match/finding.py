"""Clusters for new text by a fine-tuned network."""

from collections.abc import Sequence
from dataclasses import dataclass

from xbert.artifacts.arrays import Array
from xbert.artifacts.kinds.neural_matcher import NeuralMatcher
from xbert.artifacts.kinds.scores import Scores
from xbert.stages.neural.answering import answer_all
from xbert.stages.neural.building import restore_network
from xbert.stages.neural.devices import Arithmetic, bf16_is_native, choose_device, torch_threads
from xbert.stages.neural.names import AUTO, BF16, FP32, SDPA
from xbert.stages.neural.tokens import Reading


@dataclass(frozen=True)
class Found:
    """What a network says of some documents."""

    vectors: Array  # (n_docs, D) float16
    clusters: list[Scores]  # of every clustering it was fine-tuned for


class Finder:
    """A network ready to be asked: built once, on the best device there is."""

    def __init__(self, matcher: NeuralMatcher, device: str = AUTO) -> None:
        self._matcher = matcher
        self._device = choose_device(device)
        sizes = [clustering.n_clusters for clustering in matcher.clusterings]
        self._network = restore_network(matcher.folder, matcher.network, sizes).to(self._device).eval()
        how = matcher.network
        self._reading = Reading(how["long"], how["max_tokens"], how["windows"])
        # Half the bits cost less than the third digit of a score, and twice the speed where the processor has them.
        precision = BF16 if how["precision"] == BF16 and bf16_is_native(self._device) else FP32
        self._arithmetic = Arithmetic(precision, SDPA)
        self._network.encoder.set_attention(SDPA)

    def find(self, texts: Sequence[str], threads: int) -> Found:
        """Vectors and clusters of the texts."""
        with torch_threads(threads):
            pieces = self._reading.pieces(texts, self._network.encoder.tokenizer)
            vectors, answers = answer_all(self._network, pieces, self._matcher.beam, self._device, self._arithmetic)
        sizes = (clustering.n_clusters for clustering in self._matcher.clusterings)
        return Found(vectors, [Scores.of_top(*answer, size) for answer, size in zip(answers, sizes, strict=True)])
