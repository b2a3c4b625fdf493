"""The metrics as a table for the terminal, in percent."""

from typing import Any

from xbert.artifacts.kinds.evaluation import COMPARISON, ENSEMBLE

_SPLITS = ("valid", "test")
_SHOWN = ("P@1", "P@3", "P@5", "nDCG@5", "PSP@1", "PSP@5", "R@5")
_CLASSES = ("few", "medium", "many")


def lines(metrics: dict[str, Any]) -> list[str]:
    """A row per model and split, the single models first and the ensemble apart.

    "seen" leaves labels without a training document out of the truth; F is macro F@5 by label frequency.
    """
    names = [name for name in metrics if name not in (ENSEMBLE, COMPARISON)]
    singles = [row for name in names for row in _rows(name, metrics[name])]
    together = _rows(ENSEMBLE, metrics.get(ENSEMBLE, {}))
    head = ["model", "split", *_SHOWN, "PSP@5 seen", *(f"F {name}" for name in _CLASSES)]
    widths = [max(map(len, column)) for column in zip(head, *singles, *together, strict=True)]
    text = [_line(head, widths), "  ".join("-" * width for width in widths)]
    text += [_line(row, widths) for row in singles]
    if together:
        text += ["", f"ensemble of the {len(names)} above", *(_line(row, widths) for row in together)]
    return text


def _rows(name: str, splits: dict[str, Any]) -> list[list[str]]:
    return [[name, split, *_cells(splits[split])] for split in _SPLITS if split in splits]


def _cells(found: dict[str, Any]) -> list[str]:
    values = (
        [found[name] for name in _SHOWN] + [found["seen"]["PSP@5"]] + [found["by_frequency"][name]["F@5"] for name in _CLASSES]
    )
    return ["-" if value is None else f"{value:.2f}" for value in values]


def _line(cells: list[str], widths: list[int]) -> str:
    """Names to the left, numbers to the right."""
    placed = [
        f"{cell:<{width}}" if i < 2 else f"{cell:>{width}}" for i, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]
    return "  ".join(placed).rstrip()
