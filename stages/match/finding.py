"""Clusters for new text by a fine-tuned network."""

from collections.abc import Sequence
from dataclasses import dataclass

from xbert.artifacts.arrays import Array
from xbert.artifacts.kinds.neural_matcher import NeuralMatcher
from xbert.artifacts.kinds.scores import Scores
from xbert.stages.neural.answering import answer_all
from xbert.stages.neural.building import restore_network
from xbert.stages.neural.devices import Arithmetic, bf16_is_native, choose_device, out_of_memory_errors, torch_threads
from xbert.stages.neural.names import AUTO, BF16, CPU, FP32, INT8, SDPA
from xbert.stages.neural.quantized import in_eight_bits
from xbert.stages.neural.tokens import Reading


@dataclass(frozen=True)
class Found:
    """What a network says of some documents."""

    vectors: Array  # (n_docs, D) float16
    clusters: list[Scores]  # of every clustering it was fine-tuned for


class Finder:
    """A network ready to be asked: built once, on the best device there is unless told otherwise."""

    def __init__(self, matcher: NeuralMatcher, device: str = AUTO, precision: str = AUTO) -> None:
        self._matcher = matcher
        self._device = choose_device(CPU if (device, precision) == (AUTO, INT8) else device)
        sizes = [clustering.n_clusters for clustering in matcher.clusterings]
        network = restore_network(matcher.folder, matcher.network, sizes).to(self._device).eval()
        network.encoder.set_attention(SDPA)
        how = matcher.network
        self._reading = Reading(how["long"], how["max_tokens"], how["windows"])
        if precision == AUTO:
            # Half the bits cost less than the third digit of a score, and twice the speed where the processor has them.
            precision = BF16 if how["precision"] == BF16 and bf16_is_native(self._device) else FP32
        self._arithmetic = Arithmetic(FP32 if precision == INT8 else precision, SDPA)
        self._network = in_eight_bits(network, self._device) if precision == INT8 else network

    def find(self, texts: Sequence[str], threads: int) -> Found:
        """Vectors and clusters of the texts."""
        with torch_threads(threads), out_of_memory_errors("give fewer documents at a time, or device = 'cpu'"):
            pieces = self._reading.pieces(texts, self._network.encoder.tokenizer)
            vectors, answers = answer_all(self._network, pieces, self._matcher.beam, self._device, self._arithmetic)
        sizes = (clustering.n_clusters for clustering in self._matcher.clusterings)
        return Found(vectors, [Scores.of_top(*answer, size) for answer, size in zip(answers, sizes, strict=True)])
