"""Any Hugging Face encoder: BERT, RoBERTa, XLNet, MPNet, ModernBERT and the like."""

import contextlib
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from huggingface_hub.errors import StrictDataclassError
from safetensors import SafetensorError
from torch import nn
from transformers import AutoConfig, AutoModel, AutoTokenizer
from transformers.utils import logging as transformers_logging

from xbert.artifacts.arrays import Array
from xbert.artifacts.errors import InputError
from xbert.stages.neural.encoders.base import Encoder, frozen
from xbert.stages.neural.frozen_parts import feeders, output_of, small_batch
from xbert.stages.neural.names import EAGER
from xbert.stages.neural.states import Batch, States

_PROBE = "a"
_LOCAL: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
_UNREADABLE = (OSError, ValueError, KeyError, ImportError, RuntimeError, SafetensorError, StrictDataclassError)
_DROPOUTS = ("hidden_dropout_prob", "attention_probs_dropout_prob", "dropout", "attention_dropout", "embedding_dropout",
             "mlp_dropout")  # fmt: skip
_MEMORIES = ("use_cache", "use_mems_eval", "use_mems_train")  # of text read before: every document stands alone


class WordPieces:
    """The encoder's own tokenizer, without its truncation and padding: those are ours to choose."""

    def __init__(self, folder: Path) -> None:
        with _quiet():
            try:
                self._tokenizer: Any = AutoTokenizer.from_pretrained(folder, use_fast=True, **_LOCAL)
            except _UNREADABLE as error:
                raise InputError(f"{folder} holds no tokenizer that can be read ({_line(error)})") from None
        whole, bare = self._tokenizer(_PROBE).input_ids, self._tokenizer(_PROBE, add_special_tokens=False).input_ids
        at = next((i for i in range(len(whole) - len(bare) + 1) if whole[i : i + len(bare)] == bare), 0)
        self.prefix, self.suffix = list(whole[:at]), list(whole[at + len(bare) :])
        self.padding: int = self._tokenizer.pad_token_id or 0

    def tokenize(self, texts: Sequence[str]) -> list[Array]:
        """Token numbers of each text, all of them; on all threads the tokenizer has."""
        with _quiet():
            found = self._tokenizer(list(texts), add_special_tokens=False, truncation=False, padding=False)
        return [np.array(ids, np.int32) for ids in found.input_ids]

    def save(self, folder: Path) -> None:
        """Write its files."""
        self._tokenizer.save_pretrained(folder)


class Transformer(Encoder):
    """A pre-trained transformer. Its own pooling layer, if it has one, is left out: heads pool."""

    def __init__(self, model: Any, tokenizer: WordPieces) -> None:
        super().__init__()
        self.model: Any = model
        self.tokenizer: WordPieces = tokenizer
        self.width = model.config.hidden_size
        self.frozen_layers = 0
        self.remembered: Callable[[Batch], States] | None = None  # what frozen layers gave, instead of asking them again
        self._still: list[nn.Module] = []  # frozen: without dropout even while the rest learns

    @classmethod
    def load(cls, folder: Path, dropout: float = 0.0, attention: str = EAGER, weights: bool = True) -> "Transformer":
        """The encoder of a folder: with its pre-trained weights, or as an empty shell for weights that follow."""
        tokenizer = WordPieces(folder)
        with _quiet():
            try:
                config = AutoConfig.from_pretrained(folder, **_LOCAL)
                for name, value in {**dict.fromkeys(_DROPOUTS, dropout), **dict.fromkeys(_MEMORIES, False)}.items():
                    if hasattr(config, name):
                        setattr(config, name, value)
                kwargs = {"config": config, "attn_implementation": attention}
                if weights:
                    model, loaded = AutoModel.from_pretrained(folder, output_loading_info=True, **kwargs, **_LOCAL)
                    _refuse_random(folder, loaded["missing_keys"])
                else:
                    model = AutoModel.from_config(**kwargs)
            except _UNREADABLE as error:
                raise InputError(f"{folder} holds no encoder that can be loaded ({_line(error)})") from None
        if getattr(model.config, "is_encoder_decoder", False):
            raise InputError(f"{folder} holds an encoder-decoder ({model.config.model_type}): an encoder is needed")
        if getattr(model, "pooler", None) is not None:
            model.pooler = None
        return cls(model.float(), tokenizer)

    def set_attention(self, attention: str) -> None:
        """How attention is computed: the numbers are the same, the speed is not."""
        with _quiet(), contextlib.suppress(ValueError):  # some architectures have but one way, and keep to it
            self.model.set_attn_implementation(attention)

    def forward(self, batch: Batch, all_layers: bool = False) -> States:
        """The tokens' vectors."""
        if self.remembered is not None and self.training:
            return self.remembered(batch)
        return self.read(batch, all_layers)

    def read(self, batch: Batch, all_layers: bool = False) -> States:
        """The tokens' vectors, from the tokens."""
        found = self.model(input_ids=batch.ids, attention_mask=batch.mask, output_hidden_states=all_layers)
        layers = tuple(found.hidden_states) if all_layers else (found.last_hidden_state,)
        return States(layers, batch.mask, batch.owner, batch.n_docs)

    def most_tokens(self) -> int | None:
        """The positions it has for tokens: RoBERTa, MPNet and their like begin after the one they keep for padding."""
        with _quiet():
            positions = getattr(self.model.config, "max_position_embeddings", None)
        if not isinstance(positions, int) or positions <= 0:
            return None  # relative positions
        tables = [module for name, module in self.model.named_modules() if name.endswith("position_embeddings")]
        padding = [table.padding_idx for table in tables if getattr(table, "padding_idx", None) is not None]
        return positions - max(padding, default=-1) - 1

    def depth(self) -> int:
        """Number of layers."""
        return len(self.layers())

    def freeze(self, layers: int, embeddings: bool) -> None:
        """The lowest layers and all that feeds them, so that what they give never changes; all layers: the whole encoder.

        What all layers share (the position biases of MPNet and DeBERTa) then does not learn for the upper ones either.
        """
        below = [module for name, module in self.model.named_children() if "embed" in name]
        self.frozen_layers = layers
        if layers:
            self._still = [self.model] if layers == self.depth() else [*below, *self.layers()[:layers]]
        for module in self._still or below * embeddings:
            frozen(module)
        if layers:
            self.model.eval()
            for parameter in feeders(output_of(self, self.layers()[layers - 1], small_batch(self, self.model.device))):
                parameter.requires_grad_(False)

    def train(self, mode: bool = True) -> Self:
        """Learn, or only answer; what is frozen only answers."""
        super().train(mode)
        for module in self._still:
            module.eval()
        return self

    def checkpoint_gradients(self) -> None:
        """Compute activations again in the backward pass instead of keeping them."""
        if not self.model.supports_gradient_checkpointing:
            super().checkpoint_gradients()
        renamed = getattr(self.model, "activation_checkpointing_enable", None)  # the other name ends with transformers 6
        (renamed or self.model.gradient_checkpointing_enable)({"use_reentrant": False})

    def save_files(self, folder: Path) -> None:
        """Its configuration and its tokenizer."""
        self.model.config.save_pretrained(folder)
        self.tokenizer.save(folder)

    def layers(self) -> nn.ModuleList:
        """The stack of layers, wherever the architecture keeps it: the longest list of modules it has."""
        lists = [module for module in self.model.modules() if isinstance(module, nn.ModuleList)]
        return max(lists, key=len) if lists else nn.ModuleList()


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without the library's remarks: what a user should know, xbert says."""
    before, bars = transformers_logging.get_verbosity(), transformers_logging.is_progress_bar_enabled()
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    tokenizers_log = logging.getLogger("transformers.tokenization_utils_base")
    level = tokenizers_log.level
    tokenizers_log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        tokenizers_log.setLevel(level)
        transformers_logging.set_verbosity(before)
        if bars:
            transformers_logging.enable_progress_bar()


def _refuse_random(folder: Path, missing: Iterable[str]) -> None:
    """The library starts weights it does not find at random, and all but silently."""
    lacking = sorted(name for name in missing if "pooler" not in name)
    if lacking:
        raise InputError(
            f"{folder} lacks {len(lacking)} of its encoder's weights, as {lacking[0]!r}: its model.safetensors is not whole, "
            "or of another model; fetch it again"
        )


def _line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:160]
