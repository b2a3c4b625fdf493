"""The whole way: a matcher is fine-tuned, kept, and its network built again from the folder alone."""

import json

import numpy as np
import pytest
import torch

from xbert.artifacts.arrays import Strings
from xbert.artifacts.errors import ArtifactError
from xbert.artifacts.kinds.dataset import Dataset, Labels, Split
from xbert.artifacts.kinds.neural_matcher import WEIGHTS, NeuralMatcher
from xbert.artifacts.sparse import Sparse
from xbert.stages.match.neural import Neural, NeuralConfig
from xbert.stages.neural.answering import answer_all
from xbert.stages.neural.building import restore_network
from xbert.stages.neural.devices import Arithmetic
from xbert.stages.neural.names import EAGER, FP32
from xbert.stages.neural.tokens import Reading

N_LABELS = 8
COMMON = {"max_tokens": 12, "epochs": 4, "batch": 8, "learning_rate": 0.01, "head_rate": 0.01, "train_scores": "in-sample"}
COMMON |= {"beam": 3, "precision": FP32, "device": "cpu", "long": "windows"}
SYSTEMS = {
    "x-bert": {"encoder": "transformer", "head": "cls", "loss": "squared_hinge"},
    "x-ttention": {"encoder": "bilstm", "head": "self_attention", "word_width": 8, "lstm_width": 8, "words": 200},
}


@pytest.fixture(scope="module")
def data(documents):
    splits = {}
    for split, n_docs in (("train", 120), ("valid", 20), ("test", 30)):
        made = documents(n_docs, N_LABELS, seed=n_docs)
        rows = [[int(label.removeprefix("L")) for label in each["labels"]] for each in made]
        splits[split] = Split(Sparse.of_rows(rows, N_LABELS), Strings.of([each["text"] for each in made]), None)
    blank = Strings.of([""] * N_LABELS)
    labels = Labels(Strings.of([f"L{i}" for i in range(N_LABELS)]), blank, blank, Sparse.of_rows([[]] * N_LABELS, N_LABELS))
    return Dataset(labels, splits, {})


@pytest.fixture(scope="module", params=SYSTEMS)
def matcher(request, data, index, tiny_bert, bench, tmp_path_factory):
    """A matcher of either system for two clusterings, as it is loaded from its folder."""
    folder = tmp_path_factory.mktemp(request.param)
    settings = SYSTEMS[request.param] | ({"model": str(tiny_bert)} if request.param == "x-bert" else {})
    inputs = {"data": data, "index/one": index([label % 4 for label in range(N_LABELS)]), "index/two": index([0, 1] * 4)}
    made = Neural().run(inputs, NeuralConfig(**COMMON, **settings), bench(folder, threads=1))
    made.save(folder)
    return NeuralMatcher.load(folder)


def sizes(matcher):
    return [clustering.n_clusters for clustering in matcher.clusterings]


def test_it_learns(matcher, data, index):
    truth = index([label % 4 for label in range(N_LABELS)]).clusters_of(data.splits["test"].Y)[0]
    best, _ = matcher.scores[0]["test"].top(1)
    assert np.mean([best[i, 0] in truth.row(i) for i in range(len(best))]) > 0.8
    losses = [epoch["loss"] for epoch in matcher.history]
    assert losses[-1] < losses[0]


def test_the_network_built_again_answers_as_it_did(matcher, data):
    random = torch.get_rng_state()
    network = restore_network(matcher.folder, matcher.network, sizes(matcher))
    assert torch.equal(torch.get_rng_state(), random)
    assert not network.training
    how = matcher.network
    pieces = Reading(how["long"], how["max_tokens"], how["windows"]).pieces(
        data.splits["test"].texts, network.encoder.tokenizer
    )
    _, answers = answer_all(network, pieces, matcher.beam, torch.device("cpu"), Arithmetic(FP32, EAGER))
    for kept, (ids, scores) in zip(matcher.scores, answers, strict=True):
        np.testing.assert_allclose(kept["test"].top(scores.shape[1])[1], scores, atol=1e-5)
        np.testing.assert_array_equal(kept["test"].top(1)[0][:, 0], ids[:, 0])


def test_the_folder_holds_nothing_that_runs(matcher):
    assert {path.suffix for path in matcher.folder.iterdir()} <= {".json", ".npy", ".txt", ".safetensors"}


def test_what_a_header_says_is_checked(matcher):
    for name in ("encoder", "head", "loss", "pooling"):
        with pytest.raises(ArtifactError, match=f"has {name} = 'of-the-future', which this version of xbert does not know"):
            restore_network(matcher.folder, matcher.network | {name: "of-the-future"}, sizes(matcher))


def test_weights_for_other_clusterings_are_refused(matcher):
    with pytest.raises(ArtifactError, match="of different architectures"):
        restore_network(matcher.folder, matcher.network, [size + 1 for size in sizes(matcher)])


def test_weights_that_are_gone_are_said(matcher, tmp_path):
    for path in matcher.folder.iterdir():
        if path.name != WEIGHTS:
            (tmp_path / path.name).symlink_to(path)
    with pytest.raises(ArtifactError, match=r"weights.safetensors is missing"):
        restore_network(tmp_path, matcher.network, sizes(matcher))


def test_a_header_is_plain_json(matcher):
    assert json.loads(json.dumps(matcher.network)) == matcher.network


def test_the_same_seed_gives_the_same_bytes_and_another_does_not(data, index, bench, tmp_path):
    found = []
    for place, seed in enumerate((0, 0, 1)):
        folder = tmp_path / str(place)
        config = NeuralConfig(**COMMON | {"epochs": 1, "seed": seed}, **SYSTEMS["x-ttention"])
        Neural().run({"data": data, "index": index([0, 1] * 4)}, config, bench(folder, threads=1, seed=seed))
        found.append((folder / WEIGHTS).read_bytes())
    assert found[0] == found[1] != found[2]
