"""What frozen layers give, kept and learnt from: the same states and the same training as without, in any architecture."""

import json
from collections import namedtuple
from types import SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from xbert.artifacts.sparse import Sparse  # noqa: E402
from xbert.artifacts.store import PIECES  # noqa: E402
from xbert.stages.match.neural import Neural, NeuralConfig  # noqa: E402
from xbert.stages.neural import frozen, frozen_parts, row_file  # noqa: E402
from xbert.stages.neural.devices import Arithmetic  # noqa: E402
from xbert.stages.neural.encoders.transformer import Transformer  # noqa: E402
from xbert.stages.neural.heads.cls import Cls  # noqa: E402
from xbert.stages.neural.heads.self_attention import SelfAttention  # noqa: E402
from xbert.stages.neural.names import BCE, EAGER, FIRST, FP32, LAST, MEAN  # noqa: E402
from xbert.stages.neural.network import Network  # noqa: E402
from xbert.stages.neural.ranks import Ranks  # noqa: E402
from xbert.stages.neural.states import make_batch  # noqa: E402
from xbert.stages.neural.tokens import Pieces  # noqa: E402
from xbert.stages.neural.training import Examples, Plan, Training  # noqa: E402

N_TOKENS, WIDTH, N_TARGETS = 40, 16, 5
SIZES = {"hidden_size": WIDTH, "intermediate_size": 24, "num_hidden_layers": 3, "num_attention_heads": 2}
PLAIN = {"vocab_size": N_TOKENS, "max_position_embeddings": 80, "pad_token_id": 39}
TOKENS = {"cls_token_id": 1, "sep_token_id": 2, "bos_token_id": 1, "eos_token_id": 2}
CPU, ARITHMETIC, ALONE = torch.device("cpu"), Arithmetic(FP32, EAGER), Ranks()


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def configuration(kind):
    if kind == "xlnet":
        return transformers.XLNetConfig(vocab_size=N_TOKENS, d_model=WIDTH, d_inner=24, n_layer=3, n_head=2)
    if kind == "modernbert":
        return transformers.ModernBertConfig(**PLAIN, **SIZES, **TOKENS, global_attn_every_n_layers=2, local_attention=4)
    if kind == "deberta":
        positions = {"relative_attention": True, "pos_att_type": ["p2c", "c2p"], "position_buckets": 8}
        return transformers.DebertaV2Config(**PLAIN, **SIZES, **positions)
    if kind == "fnet":
        return transformers.FNetConfig(vocab_size=N_TOKENS, **{k: v for k, v in SIZES.items() if "heads" not in k})
    names = {"bert": "Bert", "roberta": "Roberta", "mpnet": "MPNet", "electra": "Electra"}
    return getattr(transformers, f"{names[kind]}Config")(**PLAIN, **SIZES)


def make(kind="bert", layers=2, heads=(MEAN,), dropout=0.0):
    """A network of random weights, large enough that every part of a layer shows in what it gives."""
    torch.manual_seed(0)
    config = configuration(kind)
    for name in ("hidden_dropout_prob", "attention_probs_dropout_prob", "dropout"):
        if hasattr(config, name):
            setattr(config, name, dropout)
    model = transformers.AutoModel.from_config(config, attn_implementation=EAGER)
    for parameter in model.parameters():
        if parameter.ndim > 1:
            torch.nn.init.normal_(parameter, std=0.3)
    if getattr(model, "pooler", None) is not None:
        model.pooler = None
    encoder = Transformer(model, SimpleNamespace(prefix=[], suffix=[], padding=N_TOKENS - 1))
    network = Network(encoder, [Cls(WIDTH, N_TARGETS, BCE, head) if head else SelfAttention(WIDTH, N_TARGETS, BCE, 4, 2, 8)
                                for head in heads])  # fmt: skip
    encoder.freeze(layers, False)
    return network


def make_pieces(n_docs=24, windows=1):
    rng = np.random.default_rng(0)
    lengths = rng.integers(2, 14, n_docs * windows)
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    return Pieces(
        indptr, rng.integers(3, N_TOKENS - 1, indptr[-1]).astype(np.int32), np.arange(0, n_docs * windows + 1, windows)
    )


def remember(network, pieces, work, ranks=ALONE):
    return frozen.remembered(network, pieces, CPU, ARITHMETIC, work, ranks)


def states(network, pieces, learning):
    """The states of the first few documents: of a learning network with what was kept, or as they are."""
    network.train(learning)
    batch = make_batch(pieces, np.arange(5), network.encoder.tokenizer.padding, CPU)
    return network.encoder(batch)


@pytest.mark.parametrize("kind", ["bert", "roberta", "mpnet", "modernbert", "xlnet", "deberta", "electra"])
def test_layers_above_come_to_the_same_from_what_was_kept(kind, work):
    network, pieces = make(kind), make_pieces(windows=2)
    with remember(network, pieces, work) as rows:
        found, wanted = states(network, rows, learning=True), states(network, pieces, learning=False)
        there = wanted.mask > 0
        assert torch.allclose(found.last[there], wanted.last[there], atol=0.02)
        found.last[there].square().sum().backward()
    assert not work.said
    learnt = {name for name, parameter in network.encoder.named_parameters() if parameter.grad is not None}
    assert learnt
    assert not any(f"layer{s}.{number}." in name for name in learnt for s in ("", "s") for number in (0, 1))
    assert torch.equal(states(network, pieces, learning=True).last, states(network, pieces, learning=False).last)


@pytest.mark.parametrize("kind", ["mpnet", "deberta"])
def test_what_feeds_frozen_layers_from_the_side_is_frozen_too(kind):
    learns = {name for name, parameter in make(kind).encoder.named_parameters() if parameter.requires_grad}
    assert learns
    assert all(".layer.2." in name for name in learns)


def test_all_layers_are_the_whole_encoder():
    assert not any(parameter.requires_grad for parameter in make("modernbert", layers=3).encoder.parameters())


def test_frozen_layers_do_not_drop_out_and_the_others_do():
    network, pieces = make(dropout=0.5), make_pieces()
    network.train()
    batch = make_batch(pieces, np.arange(5), 0, CPU)
    below, above = (network.encoder.layers()[at] for at in (1, 2))
    assert torch.equal(*(frozen_parts.output_of(network.encoder, below, batch) for _ in range(2)))
    assert not torch.equal(*(frozen_parts.output_of(network.encoder, above, batch) for _ in range(2)))


def test_an_encoder_that_mixes_in_padding_is_read_anew_and_says_so(work):
    network, pieces = make("fnet"), make_pieces()
    with remember(network, pieces, work) as found:
        assert found is pieces
    assert work.said[0].startswith("the frozen layers are read anew in every epoch: started from what they gave")
    assert not (work.folder / PIECES).exists()


def losses(network, pieces, work):
    targets = [Sparse.of_rows([[doc % N_TARGETS] for doc in range(pieces.n_docs)], N_TARGETS)] * len(network.heads)
    plan = Plan(epochs=3, batch=4, at_once=3, encoder_rate=1e-3, head_rate=1e-2, warmup=0.1, weight_decay=0.01, clip=1.0,
                patience=0)  # fmt: skip
    return [step.loss for step in Training(network, Examples(pieces, targets), plan, CPU, ARITHMETIC, work, None).steps()]


@pytest.mark.parametrize(
    ("layers", "heads", "shape"),
    [(2, (MEAN,), "tokens"), (3, (MEAN, MEAN), "documents"), (3, (FIRST,), "documents"), (3, (LAST,), "documents"),
     (3, (None,), "tokens"), (3, (MEAN, FIRST), "tokens")],
)  # fmt: skip
def test_training_is_the_same_and_keeps_no_more_than_it_needs(layers, heads, shape, work, bench, tmp_path):
    network, pieces = make(layers=layers, heads=heads), make_pieces(windows=2)
    with remember(network, pieces, work) as rows:
        kept = np.load(work.folder / PIECES / "frozen.npy", mmap_mode="r")
        assert kept.shape == (len(pieces.ids) if shape == "tokens" else pieces.n_docs, WIDTH)
        found = losses(network, rows, work)
    assert found == pytest.approx(losses(make(layers=layers, heads=heads), pieces, bench(tmp_path / "other")), abs=2e-3)
    assert np.mean(found[-6:]) < np.mean(found[:6]) - 0.1


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(frozen, "_BLOCK", 30)


def read_again(network, pieces, work, ranks=ALONE):
    """How many documents had to be read, and the rows."""
    read = []
    hook = network.encoder.layers()[0].register_forward_hook(lambda module, given, output: read.append(len(output)))
    probe = min(frozen._PROBE, pieces.n_docs)
    with remember(network, pieces, work, ranks):
        kept = np.array(network.encoder.remembered.kept)
    hook.remove()
    return sum(read) - 3 * probe - 1, kept  # some are read alone, in the usual way and from what was kept, to compare


def test_rows_are_read_once_and_spoilt_blocks_again(work, small_blocks):
    network, pieces = make(), make_pieces()
    n_read, whole = read_again(network, pieces, work)
    assert n_read == pieces.n_docs
    assert read_again(network, pieces, work)[0] == 0
    path = work.folder / PIECES / "frozen.npy"
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)
    n_read, again = read_again(network, pieces, work)
    assert 0 < n_read < pieces.n_docs / 2
    assert np.array_equal(whole, again)
    path.write_bytes(content[:-10])
    n_read, again = read_again(network, pieces, work)
    assert n_read == pieces.n_docs
    assert np.array_equal(whole, again)


def test_an_interrupted_reading_goes_on_where_it_was(work, small_blocks):
    network, pieces = make(), make_pieces()
    _, whole = read_again(network, pieces, work)
    kept = work.pieces["frozen"]
    work.pieces["frozen"] = {**kept, "sums": np.where(np.arange(len(kept["sums"])) < 3, kept["sums"], -1)}
    n_read, again = read_again(network, pieces, work)
    assert 0 < n_read < pieces.n_docs
    assert np.array_equal(whole, again)


def test_rows_of_other_weights_or_texts_are_not_used(work):
    network, pieces = make(), make_pieces()
    read_again(network, pieces, work)
    with torch.no_grad():
        next(iter(network.encoder.layers()[0].parameters())).add_(0.1)
    assert read_again(network, pieces, work)[0] == pieces.n_docs
    pieces.ids[0] += 1
    assert read_again(network, pieces, work)[0] == pieces.n_docs


def test_a_small_disk_and_large_numbers_are_reasons_to_read_anew(work, monkeypatch):
    network, pieces = make(), make_pieces()
    with monkeypatch.context() as patch:
        patch.setattr(row_file.shutil, "disk_usage", lambda _: namedtuple("Usage", "free")(1000))
        with remember(network, pieces, work) as found:
            assert found is pieces
    assert "GB on disk" in work.said.pop()
    network.encoder.layers()[1].register_forward_hook(lambda module, given, output: output * (1e9 if len(output) > 8 else 1))
    with remember(network, pieces, work) as found:
        assert found is pieces
    assert "half precision" in work.said.pop()
    assert not (work.folder / PIECES / "frozen.npy").exists()


def test_two_processes_share_the_reading(work, bench, small_blocks, in_children, tmp_path):
    network, pieces = make(), make_pieces()
    _, whole = read_again(network, pieces, work)

    def member(rank):
        def run():
            torch.distributed.init_process_group(
                "gloo", store=torch.distributed.FileStore(str(tmp_path / "store"), 2), rank=rank, world_size=2
            )
            own = bench(tmp_path / f"process{rank}")
            n_read, rows = read_again(network, pieces, own, Ranks.current())
            np.savez(tmp_path / f"{rank}.npz", n_read=n_read, rows=rows, kept=list(own.pieces))
            torch.distributed.destroy_process_group()

        return run

    assert in_children([member(rank) for rank in range(2)], longest=60) == [0, 0]
    leader, other = (np.load(tmp_path / f"{rank}.npz") for rank in range(2))
    assert np.array_equal(leader["rows"], whole)
    assert np.array_equal(other["rows"], whole)
    assert min(leader["n_read"], other["n_read"]) > 0
    assert leader["n_read"] + other["n_read"] == pieces.n_docs
    assert (list(leader["kept"]), list(other["kept"])) == (["frozen"], [])


def test_a_matcher_is_made_with_and_without_and_keeps_nothing_of_it(tmp_path, jsonl, documents, tiny_bert, xbert):
    jsonl(tmp_path / "train.jsonl", documents(60, 12, 1))
    jsonl(tmp_path / "valid.jsonl", documents(20, 12, 2))
    (tmp_path / "e.toml").write_text(
        '[run]\nthreads = 1\n[data]\ntrain = "train.jsonl"\nvalid = "valid.jsonl"\ntest_fraction = 0\n[index]\nclusters = 4\n'
        '[rank]\nnegatives = "tfn"\n'
        f'[match]\nmethod = "neural"\nmodel = "{tiny_bert}"\nmax_tokens = 24\nepochs = 2\nprecision = "fp32"\ndevice = "cpu"\n'
        'train_scores = "none"\nbeam = 2\nhead_start = "linear"\n'
    )
    losses = {}
    for layers in (1, 2):
        for cached in ("true", "false"):
            options = (f"match.freeze_layers={layers}", f"match.cache_frozen={cached}", f"run.folder={layers}-{cached}")
            result = xbert("match", tmp_path / "e.toml", *(part for each in options for part in ("-o", each)))
            assert result.exit_code == 0, result.stderr
            assert "read anew" not in result.stderr
            (made,) = (tmp_path / f"{layers}-{cached}" / "match").glob("neural-*")
            assert not [path for path in made.rglob("*") if path.is_dir() or "frozen" in path.name]
            history = json.loads((made / "neural_matcher.json").read_text())["history"]
            losses[layers, cached] = [entry["loss"] for entry in history]
    assert losses[1, "true"] == pytest.approx(losses[1, "false"], rel=1e-3)
    assert losses[2, "true"] == pytest.approx(losses[2, "false"], rel=1e-3)


def test_the_plan_counts_what_is_kept_on_disk():
    shape = SimpleNamespace(n_docs=1000, n_held_out=0, text_bytes=1_000_000, n_clusters=0)
    disk = [Neural.estimate(NeuralConfig(**each), shape, 1).disk for each in ({}, {"freeze_layers": 3})]
    assert disk[1] - disk[0] == 1000 * 128 * 384 * 2
    assert Neural.estimate(NeuralConfig(freeze_layers=3, cache_frozen=False), shape, 1).disk == disk[0]
