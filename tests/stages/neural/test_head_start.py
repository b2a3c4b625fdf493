"""Heads started from a linear model: what scikit-learn would fit, the same in every run, and far below where a prior starts."""

from types import SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from xbert.artifacts.errors import InputError  # noqa: E402
from xbert.artifacts.sparse import Sparse  # noqa: E402
from xbert.stages.match.neural import Neural, NeuralConfig  # noqa: E402
from xbert.stages.neural import head_start  # noqa: E402
from xbert.stages.neural.devices import Arithmetic  # noqa: E402
from xbert.stages.neural.heads.cls import Cls  # noqa: E402
from xbert.stages.neural.names import BCE, EAGER, FP32, MEAN, SQUARED_HINGE  # noqa: E402
from xbert.stages.neural.network import Network  # noqa: E402
from xbert.stages.neural.ranks import Ranks  # noqa: E402
from xbert.stages.neural.tokens import Reading  # noqa: E402

WIDTH, N_TARGETS = 12, 6


def problem(n_docs=300, seed=0):
    """Vectors far from the origin, and targets that depend on them, but for one that no document has."""
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(n_docs, WIDTH)) * 0.3 + 2
    margins = (vectors - 2) @ np.random.default_rng(9).normal(size=(WIDTH, N_TARGETS)) * 3 - [0, 1, 2, 3, 3, 99]
    has = rng.random(margins.shape) < 1 / (1 + np.exp(-margins))
    return vectors.astype(np.float16), has


def rows(has):
    return Sparse.of_rows([np.flatnonzero(row).tolist() for row in has], has.shape[1])


def started(has, loss=BCE):
    torch.manual_seed(0)
    head = Cls(WIDTH, has.shape[1], loss, MEAN)
    head.start(torch.from_numpy(has.mean(0).astype(np.float32)))
    return head


def loss_of(head, vectors, has):
    with torch.no_grad():
        return float(head.criterion.of(head.margins(torch.from_numpy(vectors).float()), torch.from_numpy(has).float()))


@pytest.mark.parametrize("loss", [BCE, SQUARED_HINGE])
def test_it_starts_far_below_the_prior_on_documents_it_has_not_seen(loss):
    (vectors, has), (others, others_have) = problem(), problem(seed=1)
    head = started(has, loss)
    prior = loss_of(head, others, others_have)
    head_start.fit(head, vectors, rows(has))
    assert loss_of(head, others, others_have) < 0.8 * prior


def test_the_output_layer_is_the_one_scikit_learn_fits():
    linear_model = pytest.importorskip("sklearn.linear_model")
    vectors, has = problem()
    head = started(has)
    head_start.fit(head, vectors, rows(has))
    X = vectors.astype(np.float64)
    X = (X - X.mean(0)) / np.sqrt(np.square(X - X.mean(0)).mean())
    found = head.margins(torch.from_numpy(vectors).float()).detach().numpy()
    for target in range(N_TARGETS - 1):
        model = linear_model.LogisticRegression(C=1 / head_start._PENALTY[BCE], tol=1e-8, max_iter=1000)
        wanted = model.fit(X, has[:, target]).decision_function(X)
        assert np.allclose(found[:, target], wanted, atol=0.02), target
        assert np.corrcoef(np.argsort(np.argsort(found[:, target])), np.argsort(np.argsort(wanted)))[0, 1] > 0.999


def test_a_target_no_document_has_stays_as_it_was():
    vectors, has = problem()
    before, head = started(has), started(has)
    head_start.fit(head, vectors, rows(has))
    assert not has[:, -1].any()
    assert torch.equal(head.output.weight[-1], before.output.weight[-1])
    assert torch.equal(head.output.bias[-1], before.output.bias[-1])


def test_targets_are_fitted_on_their_own(monkeypatch):
    vectors, has = problem()
    together, apart = started(has), started(has)
    head_start.fit(together, vectors, rows(has))
    monkeypatch.setattr(head_start, "_TARGETS", 2)
    head_start.fit(apart, vectors, rows(has))
    assert torch.allclose(together.output.weight, apart.output.weight, atol=5e-3)


@pytest.fixture
def tiny(tiny_bert, documents):
    """tiny() -> a new network over a tiny BERT with two heads, and what it is to learn."""
    from xbert.stages.neural.encoders.transformer import Transformer

    docs = documents(60, 4)
    has = np.array([[f"L{label}" in doc["labels"] for label in range(4)] for doc in docs])

    def make():
        torch.manual_seed(0)
        encoder = Transformer.load(tiny_bert)
        network = Network(encoder, [Cls(encoder.width, 4, BCE, MEAN), Cls(encoder.width, 2, SQUARED_HINGE, MEAN)])
        pieces = Reading("truncate", 24).pieces([doc["text"] for doc in docs], encoder.tokenizer)
        return SimpleNamespace(network=network, pieces=pieces, targets=[rows(has), rows(has[:, :2])])

    return make


def start(tiny, work, documents=40):
    made = tiny()
    arithmetic = Arithmetic(FP32, EAGER)
    head_start.start_linear(made.network, made.pieces, made.targets, documents, torch.device("cpu"), arithmetic, work, Ranks())
    return [head.output.weight.detach().clone() for head in made.network.all_heads()]


def test_it_reads_only_so_many_documents_and_is_the_same_in_every_run(tiny, work, bench, tmp_path):
    found = start(tiny, work)
    assert [bar.total for bar in work.bars] == [bar.done for bar in work.bars] == [40, 6]
    again = start(tiny, bench(tmp_path / "again"))
    assert all(torch.equal(*pair) for pair in zip(found, again, strict=True))


def test_an_interrupted_run_starts_from_the_same_without_reading(tiny, work):
    found = start(tiny, work)
    work.bars.clear()
    again = start(tiny, work)
    assert not work.bars
    assert all(torch.equal(*pair) for pair in zip(found, again, strict=True))


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"head": "self_attention"}, "head_start = 'linear' is for head = 'cls'"),
        ({"encoder": "bilstm"}, "head_start = 'linear' is for pre-trained encoders"),
    ],
)
def test_settings_it_does_not_go_with_are_refused(settings, sentence):
    with pytest.raises(InputError, match=sentence):
        Neural.check(NeuralConfig(head_start="linear", **settings), {})
    Neural.check(NeuralConfig(**settings), {})
