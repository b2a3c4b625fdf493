"""The training loop on a toy encoder: its rates, its parts, its end, and several processes that do what one does."""

import math
from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import torch.distributed as dist  # noqa: E402
from torch import nn  # noqa: E402

from xbert.artifacts.errors import ArtifactError, InputError  # noqa: E402
from xbert.artifacts.sparse import Sparse  # noqa: E402
from xbert.stages.neural import checkpoint  # noqa: E402
from xbert.stages.neural.devices import Arithmetic  # noqa: E402
from xbert.stages.neural.encoders.base import Encoder, frozen  # noqa: E402
from xbert.stages.neural.heads.cls import Cls  # noqa: E402
from xbert.stages.neural.names import BCE, EAGER, FP32, MEAN  # noqa: E402
from xbert.stages.neural.network import Network  # noqa: E402
from xbert.stages.neural.ranks import Ranks  # noqa: E402
from xbert.stages.neural.states import States  # noqa: E402
from xbert.stages.neural.tokens import Pieces  # noqa: E402
from xbert.stages.neural.training import Examples, Plan, Training, make_optimizer  # noqa: E402

N_DOCS, N_TOKENS, N_TARGETS = 21, 20, 4
PLAN = Plan(
    epochs=2, batch=4, at_once=4, encoder_rate=0.01, head_rate=0.05, warmup=0.25, weight_decay=0.01, clip=10.0, patience=0,
    seconds_between_checkpoints=0.0,
)  # fmt: skip


class Words:
    """What a network asks of a tokenizer."""

    prefix, suffix, padding = (), (), 0


class Toy(Encoder):
    """An embedding and a layer."""

    def __init__(self, dropout=0.0, unused=False):
        super().__init__()
        self.width, self.tokenizer = 8, Words()
        self.embedding, self.layer = nn.Embedding(N_TOKENS, self.width), nn.Linear(self.width, self.width)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("positions", torch.arange(3))  # as BERT has some
        self.spare = nn.Linear(3, 3) if unused else None

    def forward(self, batch, all_layers=False):
        vectors = torch.tanh(self.layer(self.dropout(self.embedding(batch.ids))))
        return States((vectors,), batch.mask, batch.owner, batch.n_docs)

    def most_tokens(self):
        return None

    def depth(self):
        return 1

    def freeze(self, layers, embeddings):
        frozen(self.embedding)

    def save_files(self, folder):
        pass


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def network(seed=0, **more):
    torch.manual_seed(seed)
    return Network(Toy(**more), [Cls(8, N_TARGETS, BCE, MEAN)])


def examples():
    rng = np.random.default_rng(0)
    lengths = rng.integers(2, 7, N_DOCS)
    ids = rng.integers(1, N_TOKENS, lengths.sum()).astype(np.int32)
    pieces = Pieces(np.concatenate([[0], np.cumsum(lengths)]), ids, np.arange(N_DOCS + 1))
    return Examples(pieces, [Sparse.of_rows([[int(t)] for t in rng.integers(0, N_TARGETS, N_DOCS)], N_TARGETS)])


def training(net, plan, keeper, validate=None, ranks=None):
    return Training(net, examples(), plan, torch.device("cpu"), Arithmetic(FP32, EAGER), keeper, validate, ranks)


def weights(net):
    return checkpoint.weights_of(net)


def same(one, other, tolerance=0.0):
    return one.keys() == other.keys() and all(np.allclose(one[name], other[name], 0, tolerance) for name in one)


def test_rates_rise_linearly_and_fall_linearly_to_nothing(work):
    job = training(network(), PLAN, work)
    steps = list(job.steps())
    assert [step.number for step in steps] == list(range(1, 13))  # 21 documents, 4 at a time, twice
    rising, falling = [1 / 3, 2 / 3, 1], [left / 9 for left in range(9, 0, -1)]
    assert [step.rate / PLAN.encoder_rate for step in steps] == pytest.approx(rising + falling)
    assert [group["lr"] / group["full_rate"] for group in job.optimizer.param_groups] == pytest.approx([1 / 9] * 4)


def test_encoder_and_head_have_rates_of_their_own_and_only_matrices_decay():
    net = network()
    net.encoder.freeze(0, True)
    groups = make_optimizer(net, PLAN).param_groups
    names = {parameter: name for name, parameter in net.named_parameters()}
    found = {names[parameter]: (group["lr"], group["weight_decay"]) for group in groups for parameter in group["params"]}
    assert found == {
        "encoder.layer.weight": (0.01, 0.01),
        "encoder.layer.bias": (0.01, 0.0),
        "heads.0.output.weight": (0.05, 0.01),
        "heads.0.output.bias": (0.05, 0.0),
    }


@pytest.mark.parametrize("at_once", [1, 3])
def test_parts_of_a_batch_add_up_to_the_update_of_the_whole(bench, tmp_path, at_once):
    whole, parts = network(), network()
    losses = [step.loss for step in training(whole, PLAN, bench(tmp_path / "a")).steps()]
    assert losses[-1] < losses[0]
    in_parts = training(parts, replace(PLAN, at_once=at_once), bench(tmp_path / "b")).steps()
    assert [step.loss for step in in_parts] == pytest.approx(losses, rel=1e-5)
    assert same(weights(parts), weights(whole), 1e-5)


class Marks:
    """A validation that gives these marks one after the other, and remembers the weights it was asked about."""

    def __init__(self, net, *marks):
        self.net, self.marks, self.seen = net, marks, []

    def __call__(self):
        self.seen.append(weights(self.net))
        return {"P@5": self.marks[len(self.seen) - 1], "P@1": 0.0}


@pytest.mark.parametrize(("patience", "epochs"), [(2, 4), (0, 6)])
def test_the_best_epochs_weights_are_the_last_word_and_patience_ends_it(work, patience, epochs):
    net = network()
    marks = Marks(net, 1.0, 3.0, 2.0, 3.0, 1.0, 1.0)
    job = training(net, replace(PLAN, epochs=6, patience=patience), work, marks)
    assert len(list(job.steps())) == 6 * epochs
    assert [entry["epoch"] for entry in job.progress.history if entry.get("best")] == [2]
    assert len(job.progress.history) == epochs
    assert same(weights(net), marks.seen[1])
    assert not same(weights(net), marks.seen[-1])


def test_best_weights_that_cannot_be_read_again_are_made_again(work):
    net = network()
    for _ in training(net, replace(PLAN, epochs=3), work, Marks(net, 1.0, 3.0, 2.0)).steps():
        pass
    best, work.pieces["best"] = weights(net), None
    net = network(seed=1)
    with torch.random.fork_rng():
        net.load_state_dict(network().state_dict())
    steps = list(training(net, replace(PLAN, epochs=3), work, Marks(net, 1.0, 3.0, 2.0)).steps())
    assert steps[0].number == 1
    assert same(weights(net), best)


def test_a_keeper_that_keeps_nothing_cannot_give_the_best_weights(work, monkeypatch):
    net = network()
    monkeypatch.setattr(work, "keep", lambda name, piece: None)
    with pytest.raises(ArtifactError, match="best epoch were not kept"):
        list(training(net, PLAN, work, Marks(net, 2.0, 1.0)).steps())


def test_a_loss_that_is_no_number_stops_it_and_leaves_the_checkpoint_before(work):
    net = network()
    calls = iter(range(100))
    net.encoder.register_forward_hook(
        lambda module, given, states: replace(states, layers=(states.last * math.nan,)) if next(calls) == 4 else states
    )
    job = training(net, PLAN, work)
    with pytest.raises(InputError, match="no longer a number at step 5: lower learning_rate or head_rate"):
        list(job.steps())
    kept = work.pieces["checkpoint"]
    assert checkpoint.facts_of(kept)["step"] == 4
    assert all(np.isfinite(array).all() for name, array in kept.items() if name.startswith("weight/"))
    assert same(weights(net), {name.removeprefix("weight/"): a for name, a in kept.items() if name.startswith("weight/")})


@pytest.mark.parametrize("at_once", [4, 3])
def test_a_training_stopped_anywhere_ends_in_the_same_bytes(bench, tmp_path, at_once):
    plan = replace(PLAN, at_once=at_once, patience=2)
    whole = network(dropout=0.3)
    undisturbed = training(whole, plan, bench(tmp_path / "whole"), Marks(whole, 2.0, 1.0))
    losses = [step.loss for step in undisturbed.steps()]
    for stop in range(1, 12):
        keeper = bench(tmp_path / f"stopped-{stop}")
        net = network(dropout=0.3)
        for step in training(net, plan, keeper, Marks(net, 2.0, 1.0)).steps():
            if step.number == stop:
                break
        net = network(seed=1, dropout=0.3)  # whatever it starts from, the checkpoint replaces it
        net.load_state_dict(network(dropout=0.3).state_dict()) if stop == 1 else None  # none was kept yet
        again = training(net, plan, keeper, Marks(net, *([2.0, 1.0] if stop <= 6 else [1.0])))
        steps = [step for step in again.steps() if not step.resumed]
        assert [step.loss for step in steps] == losses[-len(steps) :]
        assert again.progress.history == undisturbed.progress.history
        assert same(weights(net), weights(whole)), f"other weights after a stop at step {stop}"


def together(in_children, folder, work, world=2):
    """work(ranks) -> arrays, in so many processes that talk through gloo; the arrays of each."""

    def member(rank):
        def run():
            torch.set_num_threads(1)
            store = dist.FileStore(str(folder / "store"), world)
            dist.init_process_group("gloo", store=store, rank=rank, world_size=world)
            np.savez(folder / f"{rank}.npz", **work(Ranks.current()))
            dist.destroy_process_group()

        return run

    folder.mkdir(exist_ok=True)
    assert in_children([member(rank) for rank in range(world)], longest=120) == [0] * world
    return [dict(np.load(folder / f"{rank}.npz")) for rank in range(world)]


def trained(plan, keeper, make, validate=None, ranks=None):
    """Losses, lengths of the gradient, validations and weights of a training, as arrays."""
    net = make()
    job = training(net, plan, keeper, validate, ranks)
    lengths = []  # AdamW does not care how long a gradient is, so the weights would not tell
    job.optimizer.register_step_pre_hook(lambda *_: lengths.append(length_of_gradient(net)))
    losses = [step.loss for step in job.steps() if not step.resumed]
    history = [entry["loss"] for entry in job.progress.history]
    best = [entry["epoch"] for entry in job.progress.history if entry.get("best")]
    return {"losses": losses, "lengths": lengths, "history": history, "best": best, **weights(net)}


def length_of_gradient(net):
    return math.sqrt(sum(float(each.grad.square().sum()) for each in net.parameters() if each.grad is not None))


def plain():
    return network()


def half_frozen():
    net = network()
    net.encoder.freeze(0, True)
    return net


def with_unused_weights():
    return network(unused=True)


@pytest.mark.parametrize("make", [plain, half_frozen, with_unused_weights])
@pytest.mark.parametrize("at_once", [5, 1])
def test_two_processes_learn_what_one_does(in_children, bench, tmp_path, make, at_once):
    """Of a batch one has three documents, the other two; the rest of an epoch is one document, so that the second has none."""
    plan = replace(PLAN, batch=5, at_once=at_once)
    alone = trained(plan, bench(tmp_path / "alone"), make)
    both = together(in_children, tmp_path / "both", lambda ranks: trained(plan, bench(tmp_path / "w"), make, None, ranks))
    for found in both:
        assert same(found, {name: np.asarray(value) for name, value in alone.items()}, 1e-4)
    assert same(*both)  # to the last bit


def test_only_the_first_process_validates_and_its_word_ends_them_all(in_children, bench, tmp_path):
    plan = replace(PLAN, epochs=6, patience=2)

    def work(ranks):
        marks = iter([1.0, 3.0, 2.0, 2.0])

        def validate():
            if not ranks.leads:
                raise AssertionError("another process than the first validates")
            return {"P@5": next(marks)}

        return trained(plan, bench(tmp_path / f"w{ranks.rank}"), plain, validate, ranks)

    first, second = together(in_children, tmp_path / "both", work)
    assert len(first["history"]) == 4
    assert list(first["best"]) == [2]
    assert same(first, second)


def test_two_processes_go_on_from_the_checkpoint_of_one(in_children, bench, tmp_path):
    alone = trained(PLAN, bench(tmp_path / "alone"), plain)
    keeper = bench(tmp_path / "stopped")
    for step in training(network(), PLAN, keeper).steps():
        if step.number == 5:
            break

    def work(ranks):
        own = keeper if ranks.leads else bench(tmp_path / "other")
        return trained(PLAN, own, lambda: network(seed=1), None, ranks)

    for found in together(in_children, tmp_path / "both", work):
        assert len(found["losses"]) == 12 - 4
        assert np.allclose(found["losses"], alone["losses"][4:], atol=1e-4)
        assert all(np.allclose(found[name], alone[name], atol=1e-4) for name in weights(network()))


def test_dropout_draws_otherwise_in_every_process_and_step(in_children, bench, tmp_path):
    def work(ranks):
        job = training(network(dropout=0.5), PLAN, bench(tmp_path / f"w{ranks.rank}"), None, ranks)
        drawn = []
        job.network.encoder.dropout.register_forward_hook(lambda module, given, out: drawn.append(torch.rand(1).item()))
        list(job.steps())
        return {"drawn": drawn[1:]}  # the first looks for unused weights

    first, second = together(in_children, tmp_path / "both", work)
    drawn = [*first["drawn"], *second["drawn"]]
    assert len(set(drawn)) == len(drawn) == 24


def test_what_is_told_arrives_as_it_was(in_children, tmp_path):
    arrays = {
        "weight": np.arange(6, dtype=np.float32).reshape(2, 3), "step": np.array(3.0), "none": np.zeros((0, 2), np.int64),
        "half": np.array([1.5], np.float16),
    }  # fmt: skip

    def work(ranks):
        said = ranks.tell({"best": -math.inf, "history": [{"loss": 0.1}]} if ranks.leads else None)
        assert said == {"best": -math.inf, "history": [{"loss": 0.1}]}
        assert ranks.tell_arrays(None) is None
        return ranks.tell_arrays(arrays if ranks.leads else None)

    for found in together(in_children, tmp_path / "both", work):
        assert [(found[name].dtype, found[name].shape) for name in arrays] == [(a.dtype, a.shape) for a in arrays.values()]
        assert same(found, arrays)
