"""The label file: ids, texts, other names, and the broader labels of each."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from xbert.artifacts.arrays import Strings
from xbert.artifacts.errors import InputError
from xbert.artifacts.kinds.dataset import Labels
from xbert.artifacts.sparse import Sparse
from xbert.stages.corpus.lines import TextFile
from xbert.stages.corpus.notes import Notes
from xbert.stages.corpus.text_formats import read_object, without_brackets

_LONGEST_CYCLE_SHOWN = 8


@dataclass(frozen=True)
class LabelEntry:
    """One label as its line tells it."""

    id: str
    text: str = ""
    alternatives: tuple[str, ...] = ()
    parents: tuple[str, ...] = ()


def read_label_file(path: Path, notes: Notes, numbered: bool) -> Labels:
    """JSON lines or TSV; for a corpus whose labels are `numbered` columns, also plain names, one a line."""
    file = TextFile(path)
    first = file.first_line()
    if first.lstrip().startswith("{"):
        return _labels_of(_read_jsonl(file), file, notes)
    if "\t" in first:
        return _labels_of(_read_tsv(file), file, notes)
    if not first:
        raise InputError(f"{file.name} holds no labels")
    if numbered:
        return numbered_labels(read_names(path, notes))
    raise file.error(1, "neither a JSON object nor `id TAB text`, the two forms of a label file")


def read_names(path: Path, notes: Notes) -> list[str]:
    """One name a line. Published label maps are not always UTF-8: such a file is read as Latin-1, and that is told."""
    try:
        return [line for _, line in TextFile(path).lines()]
    except InputError as error:
        if "is not UTF-8" not in str(error):
            raise
    notes.warnings.append("the label names are not UTF-8 and were read as Latin-1: look whether they read well")
    lines = b"".join(TextFile(path).blocks()).removesuffix(b"\n").split(b"\n")
    return [line.decode("latin-1").rstrip("\r") for line in lines]


def numbered_labels(names: list[str]) -> Labels:
    """Labels known by the number of their column; names may stand twice or be empty, ids may not."""
    return unlinked_labels([str(number) for number in range(len(names))], names)


def unlinked_labels(ids: list[str], texts: list[str] | None = None) -> Labels:
    """Labels without parents or other names."""
    n_labels = len(ids)
    empty = Strings.of([""] * n_labels)
    texts_table = empty if texts is None else Strings.of(texts)
    return Labels(Strings.of(ids), texts_table, empty, Sparse.of_rows([[] for _ in ids], n_labels))


def _labels_of(entries: Iterator[tuple[int, LabelEntry]], file: TextFile, notes: Notes) -> Labels:
    numbers: dict[str, int] = {}
    lines: list[int] = []
    kept: list[LabelEntry] = []
    for line, entry in entries:
        if entry.id in numbers:
            raise file.error(line, f"label {entry.id!r} stands already on line {lines[numbers[entry.id]]}")
        numbers[entry.id] = len(kept)
        lines.append(line)
        kept.append(entry)
    if not kept:
        raise InputError(f"{file.name} holds no labels")
    parents = [sorted({numbers[parent] for parent in entry.parents if parent in numbers}) for entry in kept]
    notes.unknown_parents += sum(parent not in numbers for entry in kept for parent in entry.parents)
    cycle = find_cycle(parents)
    if cycle:
        shown = [repr(kept[number].id) for number in cycle[:_LONGEST_CYCLE_SHOWN]]
        shown += ["..."] if len(cycle) > _LONGEST_CYCLE_SHOWN else []
        raise file.error(lines[cycle[0]], f"parents go in a circle: {' -> '.join([*shown, shown[0]])}")
    return Labels(
        Strings.of(entry.id for entry in kept),
        Strings.of(entry.text for entry in kept),
        Strings.of("\n".join(entry.alternatives) for entry in kept),
        Sparse.of_rows(parents, len(kept)),
    )


def find_cycle(parents: list[list[int]]) -> list[int]:
    """The first circle of parents, as the labels along it; empty where there is none."""
    unseen, open_, closed = 0, 1, 2
    state = bytearray(len(parents))
    for start in range(len(parents)):
        if state[start] != unseen:
            continue
        path, todo = [start], [iter(parents[start])]
        state[start] = open_
        while path:
            parent = next(todo[-1], None)
            if parent is None:
                state[path.pop()] = closed
                todo.pop()
            elif state[parent] == open_:
                return path[path.index(parent) :]
            elif state[parent] == unseen:
                state[parent] = open_
                path.append(parent)
                todo.append(iter(parents[parent]))
    return []


def _read_jsonl(file: TextFile) -> Iterator[tuple[int, LabelEntry]]:
    for number, line in file.lines():
        if not line.strip():
            continue
        content = read_object(file, number, line)
        label, text = content.get("id"), content.get("text", "")
        if label is None or label == "":
            raise file.error(number, f"'id' is {'missing' if label is None else 'empty'}")
        if not isinstance(label, str) or not isinstance(text, str):
            raise file.error(number, f"'{'text' if isinstance(label, str) else 'id'}' must be a string")
        names = _strings(file, number, content, "alt") + _strings(file, number, content, "all_names")
        # An artifact keeps one name a line, so a name has none.
        others = dict.fromkeys(" ".join(name.split()) for name in names)
        parents = _strings(file, number, content, "parents")
        file.encoded(number, "".join([label, text, *others]))
        alternatives = tuple(name for name in others if name and name != text)
        yield number, LabelEntry(label, text, alternatives, tuple(parents))


def _strings(file: TextFile, number: int, content: dict[str, Any], key: str) -> list[str]:
    value = content.get(key)
    if value is None:
        return []
    values = [value] if isinstance(value, str) else value
    if not isinstance(values, list) or not all(isinstance(each, str) for each in values):
        raise file.error(number, f"{key!r} must be a list of strings")
    return values


def _read_tsv(file: TextFile) -> Iterator[tuple[int, LabelEntry]]:
    """`id TAB text`, or Annif's `<uri> TAB label TAB notation`; what follows the text is left aside."""
    for number, line in file.lines():
        if not line.strip():
            continue
        label, *rest = line.split("\t")
        label = without_brackets(label.strip())
        if not rest:
            raise file.error(number, "no TAB between the label's id and its text")
        if not label:
            raise file.error(number, "the label's id is empty")
        yield number, LabelEntry(label, rest[0].strip())
