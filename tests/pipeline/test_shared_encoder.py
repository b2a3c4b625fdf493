"""Several clusterings with one fine-tuned encoder, from the experiment file to tags."""

import numpy as np
import pytest

pytest.importorskip("transformers")

from xbert.artifacts.errors import InputError
from xbert.pipeline.config import read
from xbert.pipeline.console import Console
from xbert.pipeline.runner import Runner
from xbert.pipeline.tagger import NO_KNOWN_WORD, Tagger
from xbert.stages.match import linear
from xbert.stages.match.linear import LinearConfig

MODELS = (
    '[[model]]\nname = "coarse"\nindex = { clusters = 3 }\n'
    '[[model]]\nname = "fine"\nindex = { clusters = 6, seed = 1 }\n'
    '[[model]]\nname = "again"\nindex = { clusters = 6, seed = 1 }\nrank = { matcher_weight = 0.5, linear_weight = 0.5 }\n'
)
DENSE = ["match.train_vectors=true", "rank.features=tfidf+dense"]
SHARED = ["match.shared=true", "match.train_scores=linear", "rank.negatives=tfn+man", *DENSE]


@pytest.fixture(scope="module")
def runner(write_neural, tmp_path_factory):
    path = write_neural(tmp_path_factory.mktemp("shared"))
    path.write_text(path.read_text() + MODELS)
    runner = Runner(read(path, SHARED), Console(quiet=True))
    runner.run(["evaluate"])
    return runner


def test_models_of_the_same_settings_share_a_matcher_with_a_head_for_each_clustering(runner):
    made = runner.graph.models
    assert made["coarse"]["match"] is made["fine"]["match"] is made["again"]["match"]
    assert [each.n_clusters for each in runner.artifact(made["fine"]["match"]).clusterings] == [3, 6]


def test_without_sharing_every_clustering_has_its_own_matcher(runner):
    alone = Runner(read(runner.experiment.path), Console(quiet=True)).graph.models
    assert alone["coarse"]["match"] is not alone["fine"]["match"]
    assert alone["fine"]["match"] is alone["again"]["match"]


@pytest.mark.parametrize("model", ["coarse", "fine"])
def test_every_clustering_has_honest_scores_of_its_own(runner, model, work):
    nodes = runner.graph.models[model]
    data, features, index = (runner.artifact(node) for node in (runner.graph.nodes[0], nodes["features"], nodes["index"]))
    found = runner.artifact(nodes["match"]).scores_of(index)["train"]
    targets = index.clusters_of(data.train.Y)
    expected = linear.out_of_fold(features.X["train"], targets, index, LinearConfig(), work)
    assert found.S.indices.tolist() == expected.S.indices.tolist()
    assert found.S.values().tolist() == pytest.approx(expected.S.values().tolist())


def test_a_linear_matcher_beside_the_encoder_is_made_of_the_same_clusters(runner):
    made = runner.graph.models["again"]
    beside = runner.artifact(made["linear"])
    assert beside.n_clusters == runner.artifact(made["index"]).n_clusters
    assert "linear" not in runner.graph.models["fine"]
    assert not np.array_equal(
        *(runner.artifact(runner.graph.models[m]["rank"]).scores["valid"].top(1)[1] for m in ("fine", "again"))
    )


def test_its_weight_can_be_changed_without_training_a_matcher_again(runner):
    overrides = [*SHARED, "model.again.rank.linear_weight=2.0"]
    changed = Runner(read(runner.experiment.path, overrides), Console(quiet=True))
    assert changed.run(["rank"], dry_run=True) == ["again/rank"]


@pytest.mark.parametrize("precision", ["auto", "fp32", "bf16", "int8"])
def test_a_tagger_says_of_a_text_what_the_run_found(runner, precision):
    data = runner.artifact(runner.graph.nodes[0])
    found, _ = runner.artifact(runner.graph.ensemble).scores["valid"].top(3)
    tags = Tagger.load(runner.experiment.folder, "cpu", precision).predict(list(data.splits["valid"].texts), k=3)
    pairs = [pair for row, best in zip(tags, found, strict=True) for pair in zip(row, best, strict=False)]
    same = sum(tag.id == data.labels.ids[int(label)] for tag, label in pairs)
    assert same >= 0.95 * sum(map(len, tags))  # near ties may swap: the batches are others


@pytest.mark.parametrize(("setting", "value"), [("precision", "int4"), ("device", "abacus")])
def test_a_tagger_refuses_what_no_network_can_run_in(runner, setting, value):
    with pytest.raises(InputError, match=f"{setting} = '{value}': must be one of 'auto', "):
        Tagger.load(runner.experiment.folder, **{setting: value})


def test_rankers_that_take_vectors_have_something_to_go_by_without_any_known_word(runner):
    (tags,) = Tagger.load(runner.experiment.folder).predict(["nobody ever wrote this"])
    assert tags.note is None


def test_rankers_of_terms_alone_say_that_they_know_none_of_them(write_neural, tmp_path):
    path = write_neural(tmp_path)
    terms = Runner(read(path), Console(quiet=True))
    terms.run(["rank"])
    (tags,) = Tagger.load(path).predict(["nobody ever wrote this"])
    assert tags.note == NO_KNOWN_WORD
