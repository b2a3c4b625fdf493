import json

import pytest

from xbert.pipeline import plan
from xbert.stages.base import Estimate, Shape
from xbert.stages.features.given import Given, GivenConfig
from xbert.stages.features.tfidf import Tfidf, TfidfConfig
from xbert.stages.index.kmeans import KMeans, KMeansConfig
from xbert.stages.match.linear import Linear as Match
from xbert.stages.match.linear import LinearConfig as MatchConfig
from xbert.stages.match.linear import level_widths
from xbert.stages.rank.linear import Linear as Rank
from xbert.stages.rank.linear import LinearConfig as RankConfig

STAGES = [
    (Tfidf, TfidfConfig()),
    (Given, GivenConfig()),
    (KMeans, KMeansConfig()),
    (Match, MatchConfig()),
    (Rank, RankConfig()),
]


def shape(scale=1):
    """About that of eurlex57k, or a multiple of it."""
    labels = {"n_labels": 4_108 * scale, "pairs": 228_000 * scale, "n_clusters": 64 * scale}
    terms = {"text_bytes": 214_000_000 * scale, "entries": 8_000_000 * scale, "n_terms": 39_000 * scale}
    return Shape(n_docs=45_000 * scale, n_held_out=6_000, **labels, **terms)


@pytest.mark.parametrize(("method", "config"), STAGES)
def test_more_data_takes_more_of_everything(method, config):
    small, large = (method.estimate(config, shape(scale), 2) for scale in (1, 10))
    for name in ("seconds", "disk"):
        assert 0 < getattr(small, name) < getattr(large, name)
    assert 0 < small.memory <= large.memory
    assert small.least <= small.memory


def test_honest_scores_of_the_training_documents_cost_a_matcher_a_fold():
    once = Match.estimate(MatchConfig(train_scores="none"), shape(), 2)
    folds = Match.estimate(MatchConfig(folds=3), shape(), 2)
    assert folds.seconds == pytest.approx(3 * once.seconds)


@pytest.mark.parametrize(("clusters", "widths"), [(2, [2]), (64, [64]), (512, [23, 512]), (16_384, [25, 645, 16_384])])
def test_the_levels_are_guessed_from_the_clusters(clusters, widths):
    assert level_widths(clusters) == widths


def test_a_run_tells_its_plan_first(experiment, xbert):
    result = xbert("run", experiment, "--memory", "4G")
    assert result.exit_code == 0, result.stderr
    lines = result.stderr.splitlines()
    told = next(i for i, line in enumerate(lines) if line.startswith("plan, roughly, for"))
    assert "4.0 GB of memory" in lines[told]
    assert [line.split()[0] for line in lines[told + 1 : told + 6]] == ["features", "index", "match", "rank", "all"]
    assert told < next(i for i, line in enumerate(lines) if line.startswith("features: running"))


def test_a_dry_run_of_prepared_data_tells_the_plan(experiment, xbert):
    assert xbert("prepare", experiment).exit_code == 0
    result = xbert("run", experiment, "--dry-run")
    assert "plan, roughly" in result.stderr
    assert "features: would run" in result.stderr


def test_a_dry_run_before_there_is_data_says_that_the_plan_comes_later(experiment, xbert):
    result = xbert("run", experiment, "--dry-run")
    assert "plan: can be told once the data is prepared" in result.stderr


def test_memory_can_be_set_in_the_file(experiment, xbert):
    result = xbert("run", experiment, "-o", 'run.memory="1500M"', "--dry-run")
    assert result.exit_code == 0, result.stderr
    result = xbert("run", experiment, "-o", "run.memory=true", "--dry-run")
    assert result.exit_code == 2
    assert "must be a size like '8G'" in result.stderr


def test_a_wrong_size_is_one_sentence(experiment, xbert):
    result = xbert("run", experiment, "--memory", "lots")
    assert result.exit_code == 2
    assert "memory = 'lots': must be a size like 8G or 500M" in result.stderr


def test_what_cannot_fit_is_refused_before_it_runs(experiment, xbert, monkeypatch):
    assert xbert("prepare", experiment).exit_code == 0
    monkeypatch.setattr(Rank, "estimate", classmethod(lambda cls, config, shape, threads: Estimate(1, 9e9, 5e9, 1)))
    result = xbert("run", experiment, "--memory", "4G")
    assert result.exit_code == 3
    assert "rank needs about 5.2 GB of memory, and the run may use 4.0 GB" in result.stderr
    assert "features: running" not in result.stderr


def test_a_full_disk_is_seen_before_it_is_full(experiment, xbert, monkeypatch):
    assert xbert("prepare", experiment).exit_code == 0
    monkeypatch.setattr(Rank, "estimate", classmethod(lambda cls, config, shape, threads: Estimate(1, 1, 1, 1e18)))
    result = xbert("run", experiment)
    assert result.exit_code == 3
    assert "on disk, and" in result.stderr


def test_a_smaller_budget_gives_the_same_model(experiment, xbert, tmp_path):
    evaluated = []
    for memory, folder in (("4G", "a"), ("250M", "b")):
        result = xbert("evaluate", experiment, "-o", f'run.folder="{tmp_path / folder}"', "--memory", memory, "--json")
        assert result.exit_code == 0, result.stderr
        evaluated.append(json.loads(result.stdout))
    assert evaluated[0] == evaluated[1]


def test_a_method_that_cannot_say_is_left_out_of_the_plan():
    assert plan.lines([], 2, 10**9) == []
