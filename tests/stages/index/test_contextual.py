"""Label vectors from an encoder: the mean over the words of a label's text, read once for all indexes."""

import numpy as np
import pytest

pytest.importorskip("transformers")

import torch
from transformers import AutoModel, AutoTokenizer

from xbert.artifacts.errors import InputError
from xbert.artifacts.kinds.label_vectors import LabelVectors
from xbert.pipeline.config import read
from xbert.pipeline.console import Console
from xbert.pipeline.runner import Runner
from xbert.stages.index.contextual import chosen_layers


@pytest.fixture
def experiment_of(jsonl, documents, tiny_bert, tmp_path):
    """Write an experiment over labels with those texts; one label has none if asked."""

    def write(without_text=0, models=""):
        jsonl(tmp_path / "train.jsonl", documents(120, 12, 1))
        labels = [{"id": f"L{i}", "text": "" if i < without_text else f"w{i}x0 w{i}x1 common{i}"} for i in range(12)]
        jsonl(tmp_path / "labels.jsonl", labels)
        (tmp_path / "e.toml").write_text(
            '[run]\nthreads = 1\n[data]\ntrain = "train.jsonl"\nlabels = "labels.jsonl"\n'
            f'[index]\nclusters = 3\nembedding = "contextual"\nencoder = "{tiny_bert}"\n{models}'
        )
        return tmp_path / "e.toml"

    return write


def made(path, *settings):
    runner = Runner(read(path, settings), Console(quiet=True))
    runner.run(["index"])
    return runner


def vectors(runner):
    node = next(node for node in runner.graph.nodes if node.choice.method.gives is LabelVectors)
    return runner.artifact(node).vectors


def by_hand(folder, text, layers):
    """The mean of the states of the words alone, as transformers gives them."""
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()
    with torch.inference_mode():
        states = model(**tokenizer(text, return_tensors="pt"), output_hidden_states=True).hidden_states
    mean = torch.stack([states[layer] for layer in layers]).mean(0)[0, 1:-1].mean(0).numpy()
    return mean / np.linalg.norm(mean)


@pytest.mark.parametrize(("layers", "chosen"), [("last", [2]), ("all", [0, 1, 2]), ("0,-1", [0, 2])])
def test_a_label_is_the_mean_of_the_states_of_its_words(experiment_of, tiny_bert, layers, chosen):
    found = vectors(made(experiment_of(), f'index.layers="{layers}"'))
    assert found.shape == (12, 16)
    for label in (0, 7):
        expected = by_hand(tiny_bert, f"w{label}x0 w{label}x1 common{label}", chosen)
        np.testing.assert_allclose(found[label], expected, atol=1e-5)


def test_indexes_of_other_seeds_and_sizes_share_what_was_read(experiment_of):
    models = "".join(f'[[model]]\nname = "m{k}"\nindex = {{ clusters = {k}, seed = {k} }}\n' for k in (2, 3, 4))
    runner = made(experiment_of(models=models))
    assert sum(node.choice.method.gives is LabelVectors for node in runner.graph.nodes) == 1
    assert [runner.artifact(made["index"]).n_clusters for made in runner.graph.models.values()] == [2, 3, 4]
    assert len(list((runner.experiment.folder / "index").glob("label-vectors-*"))) == 1


def test_labels_of_like_texts_are_clustered_together(experiment_of):
    runner = made(experiment_of(), "index.clusters=2")
    index, Z = runner.artifact(runner.graph.models["linear"]["index"]), vectors(runner)
    cluster = index.chain[0].indices
    likeness = Z @ Z.T
    same = cluster[:, None] == cluster[None, :]
    assert likeness[same & ~np.eye(12, dtype=bool)].mean() > likeness[~same].mean()


def test_a_label_without_text_is_refused_by_name_or_described_by_its_documents(experiment_of):
    path = experiment_of(without_text=1)
    with pytest.raises(InputError, match="needs a text for every label, and 1 of 12 have none, like 'L0'"):
        made(path)
    runner = made(path, "index.without_text=pifa")
    assert not vectors(runner)[0].any()
    assert sorted(np.bincount(runner.artifact(runner.graph.models["linear"]["index"]).chain[0].indices)) == [4, 4, 4]


def test_labels_without_any_text_are_refused_as_soon_as_they_are_read(jsonl, documents, tmp_path, xbert):
    jsonl(tmp_path / "train.jsonl", documents(60, 12))
    (tmp_path / "e.toml").write_text('[data]\ntrain = "train.jsonl"\n[index]\nclusters = 3\nembedding = "contextual"\n')
    result = xbert("run", tmp_path / "e.toml")
    assert result.exit_code == 3
    assert "index.embedding = 'contextual' needs label texts, and this dataset has none" in result.stderr
    assert [folder.name for folder in (tmp_path / "runs/e").glob("[!.]*") if folder.is_dir()] == ["data"]


@pytest.mark.parametrize("layers", ["first", "1,", "0,3", "-4", ""])
def test_layers_that_are_none_are_one_sentence(layers):
    with pytest.raises(InputError, match="must be 'last', 'all', or numbers from 0 to 2"):
        chosen_layers(layers, 3)
