import re
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from xbert.artifacts.kinds.neural_matcher import Clustering, NeuralMatcher
from xbert.artifacts.kinds.scores import Scores
from xbert.stages.ensemble.ensemble import Combine, EnsembleConfig
from xbert.stages.evaluate.comparison import Combination, groups, matchers_of, singles, table_of_matchers
from xbert.stages.evaluate.evaluate import Evaluate, EvaluateConfig

N_DOCS, N_LABELS, N_CLUSTERS, WIDTH = 40, 12, 4, 5
SHOWN = ("P@1", "P@3", "P@5", "nDCG@5")
PIFA, TEXT = Combination("pifa", "linear"), Combination("text", "linear")


def random_scores(rng, n_targets, width=WIDTH):
    """Some targets of each document, best first, with scores that never tie."""
    targets = np.array([rng.permutation(n_targets)[:width] for _ in range(N_DOCS)], np.int32)
    return Scores.of_top(targets, -np.sort(-rng.random((N_DOCS, width)), axis=1), n_targets)


@pytest.fixture
def four(dataset, embedded, matcher, ranker, work):
    """Two models of PIFA and two of text, with rankings drawn at random, and the ensemble that the run would make."""
    rng = np.random.default_rng(0)
    truth = [sorted(rng.permutation(N_LABELS)[: rng.integers(1, 5)].tolist()) for _ in range(N_DOCS)]
    inputs = {"data": dataset(N_LABELS, train=truth, valid=truth, test=truth)}
    for name, embedding in (("p0", "pifa"), ("p1", "pifa"), ("t0", "text"), ("t1", "text")):
        clusters = [int(label) % N_CLUSTERS for label in rng.permutation(N_LABELS)]
        inputs[f"{name}/index"] = embedded(clusters, embedding)
        inputs[f"{name}/match"] = matcher(N_CLUSTERS, **{s: random_scores(rng, N_CLUSTERS, 3) for s in ("valid", "test")})
        inputs[f"{name}/rank"] = ranker(N_LABELS, **{s: random_scores(rng, N_LABELS) for s in ("valid", "test")})
    return with_ensemble(inputs, work, "average")


def with_ensemble(inputs, work, way):
    members = {key: value for key, value in inputs.items() if key == "data" or key.endswith("/rank")}
    return inputs | {"ensemble": Combine().run(members, EnsembleConfig(combine=way), work)}


def evaluated(inputs, work, bootstrap=0):
    return Evaluate().run(inputs, EvaluateConfig(bootstrap=bootstrap), work)


def by_group(compared):
    return {(row["embedding"], row["matcher"]): row for row in compared["ensembles"]}


def dense(scores):
    """Documents x labels, 0 where nothing is scored."""
    S = np.zeros((scores.n_docs, scores.n_targets))
    S[np.repeat(np.arange(scores.n_docs), scores.S.row_lengths()), scores.S.indices] = scores.S.values()
    return S


def directly(members, Y):
    """The metrics of the mean of the score tables, by their definitions."""
    order = np.argsort(-np.mean([dense(member) for member in members], axis=0), axis=1, kind="stable")
    right = np.array([[label in Y.row(doc) for label in row] for doc, row in enumerate(order)])
    found = {f"P@{k}": 100 * right[:, :k].mean() for k in (1, 3, 5)}
    discount = 1 / np.log2(np.arange(5) + 2)
    ideal = np.array([discount[:n].sum() for n in np.minimum(Y.row_lengths(), 5)])
    return found | {"nDCG@5": 100 * ((right[:, :5] * discount).sum(axis=1) / ideal).mean()}


def test_sub_ensembles_are_those_calculated_directly(four, work):
    rows = by_group(evaluated(four, work).metrics["comparison"]["test"])
    Y = four["data"].splits["test"].Y
    for group, names in (
        (("pifa", None), ["p0", "p1"]),
        (("text", None), ["t0", "t1"]),
        ((None, None), ["p0", "p1", "t0", "t1"]),
    ):
        expected = directly([four[f"{name}/rank"].scores["test"] for name in names], Y)
        assert rows[group]["models"] == names
        assert {metric: rows[group][metric] for metric in SHOWN} == pytest.approx(expected, abs=0.006)


@pytest.mark.parametrize("way", ["average", "rank-average", "round-robin"])
def test_the_ensemble_of_all_is_the_runs_own(four, work, way):
    metrics = evaluated(with_ensemble(four, work, way), work).metrics
    for split in ("valid", "test"):
        everything = by_group(metrics["comparison"][split])[None, None]
        assert {m: everything[m] for m in SHOWN} == {m: metrics["ensemble"][split][m] for m in SHOWN}
        assert metrics["comparison"][split]["combine"] == way


def test_learnt_weights_are_not_taken_over(four, work):
    learnt = replace(four["ensemble"], combine="weighted", weights=[1.0, 0.0, 0.0, 0.0])
    average = evaluated(four, work).metrics["comparison"]["test"]["ensembles"]
    assert evaluated(four | {"ensemble": learnt}, work).metrics["comparison"]["test"]["ensembles"] == average


def test_gains_are_over_the_best_single_model_of_each_metric(four, work):
    metrics = evaluated(four, work, bootstrap=50).metrics
    compared = metrics["comparison"]["test"]
    for metric in SHOWN:
        values = {name: metrics[name]["test"][metric] for name in ("p0", "p1", "t0", "t1")}
        best = compared["single"]["best models"][metric]
        assert compared["single"]["best"][metric] == values[best] == max(values.values())
        assert compared["single"]["mean"][metric] == pytest.approx(sum(values.values()) / 4, abs=0.006)
        for row in compared["ensembles"]:
            low, high = row["gain"]["intervals"][metric]
            assert low <= row["gain"][metric] <= high
            assert row["gain"][metric] == pytest.approx(row[metric] - values[best], abs=0.006)


def test_the_table_of_matchers_has_means_over_seeds():
    entries = {
        "a": {"P@1": 50.0, "P@3": 40.0, "P@5": 30.0, "matcher": {"P@1": 90.0, "P@3": 70.0, "P@5": 60.0}},
        "b": {"P@1": 51.0, "P@3": 42.0, "P@5": 33.0, "matcher": {"P@1": 92.0, "P@3": 71.0, "P@5": 61.0}},
        "c": {"P@1": 60.0, "P@3": 50.0, "P@5": 40.0, "matcher": {"P@1": 95.0, "P@3": 80.0, "P@5": 70.0}},
    }
    models = {"c": Combination("pifa", "transformer"), "a": PIFA, "b": PIFA}
    first, second = table_of_matchers(models, entries)
    assert (first["embedding"], first["matcher"], first["models"]) == ("pifa", "linear", ["a", "b"])
    assert first["ranking"] == {"P@1": 50.5, "P@3": 41.0, "P@5": 31.5}
    assert first["matching"] == {"P@1": 91.0, "P@3": 70.5, "P@5": 60.5}
    assert second["models"] == ["c"]


def test_matchers_stand_in_the_papers_order_and_unknown_ones_last():
    models = [Combination("pifa", family) for family in ("new", "transformer", "x-ttention", "linear", "bilstm")]
    assert matchers_of(models) == ["linear", "bilstm", "x-ttention", "transformer", "new"]


def found_groups(**models):
    return {(group.embedding, group.matcher): "".join(group.members) for group in groups(models)}


def test_seeds_of_one_combination_are_one_ensemble():
    assert found_groups(a=PIFA, b=PIFA, c=PIFA) == {(None, None): "abc"}


def test_embeddings_are_groups_where_there_are_several_and_a_group_has_two_members():
    assert found_groups(a=PIFA, b=PIFA, c=TEXT, d=TEXT) == {("pifa", None): "ab", ("text", None): "cd", (None, None): "abcd"}
    assert found_groups(a=PIFA, b=PIFA, c=TEXT) == {("pifa", None): "ab", (None, None): "abc"}
    assert found_groups(a=PIFA, b=TEXT) == {(None, None): "ab"}


def test_with_several_matchers_each_embedding_and_each_matcher_is_a_group():
    neural = [each._replace(matcher="transformer") for each in (PIFA, TEXT)]
    assert found_groups(a=PIFA, b=TEXT, c=neural[0], d=neural[1]) == {
        ("pifa", None): "ac", ("text", None): "bd", (None, "linear"): "ab", (None, "transformer"): "cd", (None, None): "abcd",
    }  # fmt: skip
    two = found_groups(a=PIFA, b=PIFA, c=neural[0], d=TEXT)
    assert two == {("pifa", None): "abc", (None, "linear"): "abd", ("pifa", "linear"): "ab", (None, None): "abcd"}


def test_a_set_of_models_is_combined_once():
    neural = TEXT._replace(matcher="transformer")
    assert found_groups(a=PIFA, b=PIFA, c=neural, d=neural) == {
        ("pifa", None): "ab", ("text", None): "cd", (None, None): "abcd",
    }  # fmt: skip


def test_of_equally_good_models_the_first_is_the_best():
    entry = dict.fromkeys(SHOWN, 50.0)
    assert set(singles({"a": entry, "b": entry})["best models"].values()) == {"a"}


def test_a_single_model_is_compared_with_nothing(four, work):
    one = {key: value for key, value in four.items() if key == "data" or key.startswith("p0/")}
    made = evaluated(one, work)
    assert "comparison" not in made.metrics
    assert "Label embeddings and matchers" not in made.report


def test_models_without_an_ensemble_are_not_combined(four, work):
    four.pop("ensemble")
    made = evaluated(four, work)
    assert list(made.metrics["comparison"]["test"]) == ["matchers"]
    assert "Single models and ensembles" not in made.report


def encoder(family, indices, scores):
    """A fine-tuned encoder with a head for each index."""
    clusterings = [Clustering(index.digest(), index.n_clusters) for index in indices]
    return NeuralMatcher(Path(), {"encoder": family, "head": "clusters"}, clusterings, scores, {}, 10, "none", [])


def test_one_encoder_can_serve_several_clusterings(four, work):
    indices = [four["p0/index"], four["t0/index"]]
    found = [four["p0/match"].scores, four["t0/match"].scores]
    shared = encoder("transformer", indices, found)
    before = evaluated(four, work).metrics
    metrics = evaluated(four | {"p0/match": shared, "t0/match": shared}, work).metrics
    for name in ("p0", "t0"):
        assert metrics[name]["test"]["matcher"] == before[name]["test"]["matcher"]
    rows = [(row["embedding"], row["matcher"], row["models"]) for row in metrics["comparison"]["test"]["matchers"]]
    assert rows == [
        ("pifa", "linear", ["p1"]),
        ("pifa", "transformer", ["p0"]),
        ("text", "linear", ["t1"]),
        ("text", "transformer", ["t0"]),
    ]


def part_of(page, key):
    """The page from one heading to the next of its kind."""
    return re.split(r"<h[23]", page.split(f'id="{key}"')[1])[0]


def test_the_best_of_each_column_is_marked(four, work):
    made = evaluated(four, work)
    rows = made.metrics["comparison"]["test"]["matchers"]
    table = part_of(made.report, "test-matchers")
    best = [max(row[stage][m] for row in rows) for stage in ("matching", "ranking") for m in ("P@1", "P@3", "P@5")]
    assert sorted(re.findall(r"<strong>([\d.]+)</strong>", table)) == sorted(f"{value:.2f}" for value in best)
    assert re.findall(r'scope="colgroup" colspan="8">(.*?)<', table) == ["PIFA", "text"]


def test_the_ensembles_are_named_counted_and_drawn(four, work):
    page = evaluated(four, work).report
    names = re.findall(r'<th scope="row">(.*?)</th><td>(\d)', part_of(page, "test-ensembles"))
    assert names == [
        ("single models, mean", "4"),
        ("single models, best", "1"),
        ("ensemble of PIFA", "2"),
        ("ensemble of text", "2"),
        ("ensemble of all models", "4"),
    ]
    assert 'id="test-ensemble-gain-title"' in page


def test_where_only_one_ensemble_can_be_made_it_is_not_drawn_twice(example, work):
    page = evaluated(example, work).report
    assert "ensemble of all models" in page
    assert "ensemble-gain" not in page


def test_the_page_says_how_members_are_weighed(four, work):
    assert "combined as the run's own (average), all members counting the same" in evaluated(four, work).report
    learnt = with_ensemble(four, work, "weighted")
    assert "weights learnt on the validation split" in evaluated(learnt, work).report


def test_a_single_row_has_no_best(example, work):
    assert "<strong>" not in part_of(evaluated(example, work).report, "test-matchers")


def drawn(page):
    """The names in the legend of the figure of ensembles on test."""
    figure = page.split('id="test-ensemble-gain-title"')[1].split("</figure>")[0]
    return re.findall(r"</svg>ensemble of (.*?)</li>", figure)


def copies(four, families, embeddings):
    """Two models of each combination, all with the same scores."""
    inputs = {"data": four["data"]}
    for place, (family, embedding) in enumerate(product(families, embeddings)):
        for name in (f"{place}a", f"{place}b"):
            inputs[f"{name}/index"] = replace(four["p0/index"], facts={"embedding": embedding})
            inputs[f"{name}/match"] = encoder(family, [inputs[f"{name}/index"]], [four["p0/match"].scores])
            inputs[f"{name}/rank"] = four["p0/rank"]
    return inputs


def test_of_many_ensembles_the_finest_are_not_drawn(four, work):
    inputs = copies(four, ["bilstm", "transformer"], ["pifa", "text", "pifa+text"])
    page = evaluated(with_ensemble(inputs, work, "average"), work).report
    assert drawn(page) == ["PIFA", "text", "PIFA + text", "BiLSTM matchers", "transformer matchers", "all models"]
    assert "Drawn are 6 of 12 ensembles; the table has all." in page
    assert "ensemble of PIFA + text, BiLSTM" in part_of(page, "test-ensembles")


def test_the_ensemble_of_all_is_always_drawn(four, work):
    page = evaluated(with_ensemble(copies(four, ["bilstm"], "abcdefgh"), work, "average"), work).report
    assert drawn(page) == ["a", "b", "c", "d", "e", "f", "all models"]


def test_names_of_embeddings_are_escaped(four, work):
    for name in ("p0", "p1"):
        four[f"{name}/index"] = replace(four[f"{name}/index"], facts={"embedding": "<script>"})
    page = evaluated(four, work).report
    assert "<script" not in page
    assert "ensemble of &lt;script&gt;" in page


def test_a_split_without_true_labels_can_be_compared(four, work, dataset):
    empty = [[] for _ in range(N_DOCS)]
    four["data"] = dataset(N_LABELS, train=[[0]], valid=empty, test=empty)
    rows = evaluated(four, work, bootstrap=5).metrics["comparison"]["test"]["ensembles"]
    assert all(row["P@1"] == 0 for row in rows)
