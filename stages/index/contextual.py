"""Label vectors from an encoder (X-BERT, section 3.2, "text-emb"): the mean of the contextual vectors of a label's words."""

import numpy as np
import torch

from xbert.artifacts.arrays import Array
from xbert.artifacts.errors import InputError
from xbert.artifacts.kinds.dataset import Dataset
from xbert.stages.base import Work
from xbert.stages.neural.devices import choose_device, out_of_memory_errors, torch_threads
from xbert.stages.neural.encoders.base import masked_mean
from xbert.stages.neural.encoders.transformer import Transformer
from xbert.stages.neural.names import AUTO
from xbert.stages.neural.pretrained import find
from xbert.stages.neural.states import Batch, make_batch
from xbert.stages.neural.tokens import TRUNCATE, Pieces, Reading

_MOST_TOKENS = 64  # a label's text is a name or a short phrase
_AT_ONCE = 256


def label_vectors(dataset: Dataset, model: str, layers: str, work: Work) -> Array:
    """A unit vector for every label with text, (n_labels, H); zeros for the others."""
    device = choose_device(AUTO)
    advice = f"another [index] encoder, smaller than {model!r}, needs less"
    with out_of_memory_errors(advice), torch_threads(work.threads), torch.inference_mode():
        encoder = Transformer.load(find(model)).to(device).eval()
        chosen = chosen_layers(layers, encoder.depth() + 1)
        most = min(_MOST_TOKENS, encoder.most_tokens() or _MOST_TOKENS)
        pieces = Reading(TRUNCATE, most).pieces(dataset.labels.texts, encoder.tokenizer)
        special = len(encoder.tokenizer.prefix), len(encoder.tokenizer.suffix)
        found = np.zeros((dataset.n_labels, encoder.width), np.float32)
        worded = np.flatnonzero(pieces.lengths() > sum(special))
        order = worded[np.argsort(pieces.lengths()[worded], kind="stable")]
        with work.progress("reading labels", len(order), "labels") as bar:
            for start in range(0, len(order), _AT_ONCE):
                some = order[start : start + _AT_ONCE]
                found[some] = _mean(encoder, pieces, some, chosen, special, device)
                bar.advance(len(some))
    lengths = np.linalg.norm(found, axis=1, keepdims=True)
    return found / np.where(lengths > 0, lengths, 1)


def _mean(
    encoder: Transformer, pieces: Pieces, some: Array, layers: list[int], special: tuple[int, int], device: torch.device
) -> Array:
    """The mean over words and chosen layers; what the tokenizer adds before and after says nothing of the label."""
    batch: Batch = make_batch(pieces, some, encoder.tokenizer.padding, device)
    states = encoder(batch, all_layers=True)
    mixed = torch.stack([states.layers[layer] for layer in layers]).mean(0)  # (B, T, H)
    place = torch.arange(batch.mask.shape[1], device=device)
    words = (place >= special[0]) & (place < batch.mask.sum(1, keepdim=True) - special[1])
    mean: Array = masked_mean(mixed.float(), words).cpu().numpy()
    return mean


def chosen_layers(layers: str, count: int) -> list[int]:
    """'last', 'all', or numbers with commas, 0 for the embeddings and -1 for the last layer."""
    if layers == "last":
        return [count - 1]
    if layers == "all":
        return list(range(count))
    try:
        numbers = [int(part) for part in layers.split(",")]
    except ValueError:
        numbers = []
    if not numbers or any(not -count <= number < count for number in numbers):
        raise InputError(
            f"[index] layers = {layers!r}: must be 'last', 'all', or numbers from 0 to {count - 1} with commas, as '-1,-2'"
        )
    return [number % count for number in numbers]
