"""The same checks over every registered method and recipe."""

import io
from dataclasses import fields

import pytest

from xbert.artifacts.kinds.base import Artifact
from xbert.pipeline import registry, template
from xbert.pipeline.config import read
from xbert.pipeline.console import Console
from xbert.pipeline.runner import Runner

METHODS = [(stage, name) for table in (registry.METHODS, registry.HELPERS) for stage in table for name in table[stage]]


@pytest.mark.parametrize(("stage", "name"), METHODS)
def test_a_method_says_what_it_is(stage, name):
    method = registry.companion(stage, name)
    assert (method.stage, method.name) == (stage, name)
    assert method.version >= 1
    assert issubclass(method.gives, Artifact)
    assert method.gives.format >= 1


@pytest.mark.parametrize(("stage", "name"), METHODS)
def test_every_setting_has_a_default_and_a_meaning(stage, name):
    config = registry.companion(stage, name).config
    config()
    for each in fields(config):
        assert len(each.metadata["help"]) > 10, each.name
        assert "\n" not in each.metadata["help"]


def test_kinds_have_names_of_their_own():
    kinds = {registry.companion(stage, name).gives for stage, name in METHODS}
    assert len({kind.kind for kind in kinds}) == len(kinds)


@pytest.mark.parametrize("recipe", template.recipes())
def test_a_recipe_becomes_a_file_that_can_be_read_and_says_what_its_settings_mean(recipe, tmp_path):
    path = tmp_path / "e.toml"
    path.write_text(template.render(recipe, {"train": "train.jsonl"}), encoding="utf-8")
    experiment = read(path)
    found = template.find(recipe)
    models = found.get("model", [{"name": found["match"]["method"]}])
    assert list(experiment.models) == [model["name"] for model in models]
    for stage in registry.STAGES:
        assert f"[{stage}]" in path.read_text()


def run(path, threads):
    runner = Runner(read(path, [f"run.threads={threads}", f"run.folder=threads{threads}"]), Console(stream=io.StringIO()))
    runner.run(registry.STAGES)
    return runner


def test_the_same_recipe_gives_the_same_bytes_on_any_number_of_threads(experiment):
    one, two = run(experiment, 1), run(experiment, 2)
    for node in one.graph.nodes:
        first, second = one.store.path(node.recipe), two.store.path(node.recipe)
        names = sorted(path.name for path in first.iterdir())
        assert names == sorted(path.name for path in second.iterdir())
        for name in names:
            assert (first / name).read_bytes() == (second / name).read_bytes(), f"{node.name}/{name}"


def test_every_artifact_comes_back_from_disk_as_it_was(experiment, tmp_path):
    runner = run(experiment, 2)
    for node in runner.graph.nodes:
        again = tmp_path / "again" / node.name
        again.mkdir(parents=True)
        runner.artifact(node).save(again)
        original = runner.store.path(node.recipe)
        for path in again.iterdir():
            assert path.read_bytes() == (original / path.name).read_bytes(), f"{node.name}/{path.name}"


def test_scores_are_proper_on_every_split(experiment):
    runner = run(experiment, 2)
    for stage in ("match", "rank"):
        artifact = runner.artifact(runner.graph.models["linear"][stage])
        assert set(artifact.scores) == ({"train", "valid", "test"} if stage == "match" else {"valid", "test"})
        for split, scores in artifact.scores.items():
            scores.check(f"{stage} {split}")
            assert scores.n_docs == runner.artifact(runner.graph.nodes[0]).splits[split].n_docs
