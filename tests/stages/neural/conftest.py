"""Encoders small enough to be made anew: random ones of several architectures, in folders as Hugging Face keeps them."""

import importlib.util
from functools import cache

import numpy as np
import pytest

from xbert.artifacts.sparse import Sparse
from xbert.stages.neural.tokens import TRUNCATE, Reading

collect_ignore_glob = [] if all(map(importlib.util.find_spec, ("torch", "transformers"))) else ["test_*.py"]

SPECIAL = {"cls_token": "[CLS]", "pad_token": "[PAD]", "sep_token": "[SEP]", "unk_token": "[UNK]", "mask_token": "[MASK]"}
WORDS = [f"w{number}" for number in range(90)]  # padding is token 1, as in RoBERTa; the words begin with token 5
SIZES = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
THREE = ["w1 w2 w3 w4", "w5 w6", "w7 w8 w9 w10 w11 w12 w13"]


def configuration(kind):
    """A small configuration of that architecture; skips where the installed library does not have it."""
    import transformers

    names = {"bert": "Bert", "roberta": "Roberta", "xlnet": "XLNet", "mpnet": "MPNet", "modernbert": "ModernBert", "t5": "T5"}
    made = getattr(transformers, f"{names[kind]}Config", None)
    if made is None:
        pytest.skip(f"transformers {transformers.__version__} has no {kind}")
    tokens = {"vocab_size": len(SPECIAL) + len(WORDS), "pad_token_id": 1}
    if kind == "xlnet":
        return made(**tokens, d_model=16, d_inner=32, n_layer=2, n_head=2)
    if kind == "t5":
        return made(**tokens, d_model=16, d_ff=32, d_kv=8, num_layers=1, num_heads=2)
    more = dict.fromkeys(("cls_token_id", "bos_token_id"), 0) | dict.fromkeys(("sep_token_id", "eos_token_id"), 2)
    return made(**tokens, **SIZES, max_position_embeddings=40, **(more if kind == "modernbert" else {}))


def tokenizer(kind):
    """Whole words; [CLS] comes first but for XLNet, where it is last."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    numbers = {token: number for number, token in enumerate([*SPECIAL.values(), *WORDS])}
    made = Tokenizer(models.WordLevel(numbers, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    form = "$A [SEP] [CLS]" if kind == "xlnet" else "[CLS] $A [SEP]"
    made.post_processor = processors.TemplateProcessing(single=form, special_tokens=[("[CLS]", 0), ("[SEP]", 2)])
    return PreTrainedTokenizerFast(tokenizer_object=made, **SPECIAL)


@pytest.fixture(scope="session")
def encoder_folder(tmp_path_factory):
    """The folder of a random encoder of an architecture."""

    @cache
    def make(kind):
        import torch
        from transformers import AutoModel

        folder = tmp_path_factory.mktemp("encoders") / kind
        with torch.random.fork_rng():
            torch.manual_seed(0)
            AutoModel.from_config(configuration(kind)).save_pretrained(folder)
        tokenizer(kind).save_pretrained(folder)
        return folder

    return make


@pytest.fixture(scope="session")
def encoder_of(encoder_folder):
    """A new encoder, ready to be asked: an architecture of the library, or 'bilstm'."""

    def make(kind, **settings):
        from xbert.stages.neural.encoders.bilstm import BiLstm
        from xbert.stages.neural.encoders.transformer import Transformer

        if kind == "bilstm":
            return BiLstm.start([" ".join(WORDS)], len(WORDS), word_width=8, lstm_width=8, **settings).eval()
        return Transformer.load(encoder_folder(kind), **settings).eval()

    return make


@pytest.fixture(scope="session")
def batch_of():
    """Texts as a batch for an encoder."""
    import torch

    from xbert.stages.neural.states import make_batch

    def make(encoder, texts, long=TRUNCATE, most=30, **settings):
        pieces = Reading(long, most, **settings).pieces(texts, encoder.tokenizer)
        return make_batch(pieces, np.arange(len(texts)), encoder.tokenizer.padding, torch.device("cpu"))

    return make


@pytest.fixture(scope="session")
def three():
    """Three documents, and which of five targets each has."""
    return THREE, Sparse.of_rows([[0], [1, 3], [2]], 5)


@pytest.fixture(autouse=True)
def torch_seed():
    """The same random numbers for every test, and none of them taken from the others."""
    import torch

    with torch.random.fork_rng():
        torch.manual_seed(0)
        yield
