"""The numbers of labels while documents are read."""

import numpy as np

from xbert.artifacts.arrays import Array
from xbert.artifacts.errors import InputError
from xbert.stages.corpus.lines import TextFile
from xbert.stages.corpus.notes import Notes


class Vocabulary:
    """Label ids and their numbers: given by a label file, or growing as documents bring new ones."""

    def __init__(self, notes: Notes, known: list[str] | None = None, label_file: str = "") -> None:
        self._notes, self._label_file = notes, label_file
        self._numbers = {label: number for number, label in enumerate(known or [])}
        self._growing = known is None
        self._missing: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._numbers)

    def numbers(self, labels: list[str], file: TextFile, line: int) -> list[int]:
        """The numbers of a document's labels, each once."""
        known = self._numbers
        numbers = [known[label] if label in known else self._new_number(label, file, line) for label in labels]
        unique = set(numbers)
        if len(unique) < len(numbers):
            self._notes.repeated_labels += len(labels) - len(set(labels))
        return sorted(unique)

    def _new_number(self, label: str, file: TextFile, line: int) -> int:
        if self._growing:
            file.encoded(line, label)
            return self._numbers.setdefault(label, len(self._numbers))
        # Read on to the end, so that the person hears at once how many there are.
        self._missing.setdefault(label, f"{file.name} line {line}")
        return 0

    def check(self) -> None:
        """Raise if documents use labels that the label file lacks."""
        if self._missing:
            label, where = next(iter(self._missing.items()))
            many = f" ({len(self._missing)} labels are missing in all)" if len(self._missing) > 1 else ""
            raise InputError(
                f"{where}: label {label!r} is not in {self._label_file}{many}; "
                f"add what is missing there, or leave data.labels out"
            )

    def in_order(self) -> tuple[list[str], Array | None]:
        """The ids in final order, and the final number of each number given out; None where they are final already."""
        if not self._growing:
            return list(self._numbers), None
        ids = sorted(self._numbers)
        final = np.empty(len(ids), np.int32)
        final[[self._numbers[label] for label in ids]] = np.arange(len(ids), dtype=np.int32)
        return ids, final
