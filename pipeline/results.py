"""What an evaluated experiment has to show."""

from pathlib import Path
from typing import Any

from xbert.pipeline.graph import Node
from xbert.pipeline.runner import Runner
from xbert.stages.evaluate.table import lines


def _evaluation(runner: Runner) -> Node:
    return runner.graph.nodes[-1]


def is_evaluated(runner: Runner) -> bool:
    """Whether there are metrics; without held-out documents there are none."""
    return runner.store.has(_evaluation(runner).recipe)


def metrics(runner: Runner) -> dict[str, Any]:
    """model -> split -> metric -> percent."""
    found: dict[str, Any] = runner.artifact(_evaluation(runner)).metrics
    return found


def metrics_table(runner: Runner) -> list[str]:
    """The same as an aligned table."""
    return lines(metrics(runner))


def report_path(runner: Runner) -> Path:
    """The HTML page."""
    return runner.store.path(_evaluation(runner).recipe) / "report.html"
