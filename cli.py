"""The command line: parse, call the pipeline, print. Results go to stdout, everything else to stderr."""

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from xbert import __version__
from xbert.artifacts.errors import XbertError

F = TypeVar("F", bound=Callable[..., Any])

_EPILOG = """\b
A first run:
  xbert init linear --train train.jsonl --test test.jsonl > e.toml
  xbert run e.toml
  xbert evaluate e.toml
  echo "some text" | xbert predict e.toml -

\b
Exit codes: 0 ok, 1 stale or a failed check, 2 usage, 3 input missing or broken, 4 busy."""


class _Commands(click.Group):
    """Commands in the order a person needs them, and errors as one sentence."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except XbertError as error:
            click.echo(f"xbert: {error}", err=True)
            ctx.exit(error.exit_code)
        except BrokenPipeError:
            raise  # whoever read us has had enough; click ends quietly
        except OSError as error:
            what = f"{error.filename}: " if error.filename else ""
            click.echo(f"xbert: {what}{error.strerror or error}", err=True)
            ctx.exit(3)
        except KeyboardInterrupt:
            again = " ".join(["xbert", *sys.argv[1:]])
            click.echo(f"\nxbert: stopped; what is finished is kept: `{again}` goes on from there", err=True)
            ctx.exit(130)


@click.group(cls=_Commands, epilog=_EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="xbert")
def main() -> None:
    """Give each document the few right labels out of very many: index the labels, match documents to clusters, rank."""


@main.command()
@click.argument("recipe", required=False)
@click.option("--train", help="Training documents: JSON lines, Annif TSV, fastText, a PECOS folder, or the sparse format.")
@click.option("--valid", help="Validation documents; without it a tenth of train is set aside.")
@click.option("--test", help="Test documents; without it a tenth of train is set aside.")
@click.option("--labels", help="Label file: ids, texts, alternatives, parents.")
@click.option("--format", "form", help="Format of the documents; by default found out.")
@click.option("--list", "listing", is_flag=True, help="List the recipes.")
def init(
    recipe: str | None, train: str | None, valid: str | None, test: str | None, labels: str | None, form: str | None,
    listing: bool,
) -> None:  # fmt: skip
    """Write a full, commented experiment file to stdout."""
    from xbert.pipeline import template

    if listing or recipe is None:
        for name, content in template.recipes().items():
            click.echo(f"{name:18} {content['about']}")
        return
    given = {"train": train, "valid": valid, "test": test, "labels": labels, "format": form}
    data = {key: value for key, value in given.items() if value is not None}
    click.echo(template.render(recipe, data, template.settings_for(data)), nl=False)


def _experiment(function: F) -> F:
    """What every command on an experiment takes."""
    function = click.option("-o", "overrides", multiple=True, metavar="KEY=VALUE", help="Set a value: -o index.clusters=512")(
        function
    )
    return click.argument("experiment", type=click.Path(path_type=Path))(function)


def _running(function: F) -> F:
    """What every command that runs stages takes."""
    function = click.option("--memory", metavar="SIZE", help="Most memory to use, like 8G; by default what is free.")(function)
    function = click.option("--quiet", is_flag=True, help="No progress on stderr.")(function)
    function = click.option("--dry-run", is_flag=True, help="Say what would run, and why; run nothing.")(function)
    function = click.option("--force", is_flag=True, help="Run this stage again even if it is up to date.")(function)
    return _experiment(function)


def _run(
    experiment: Path, overrides: Sequence[str], stages: Sequence[str], force: bool, dry_run: bool, quiet: bool,
    memory: str | None,
) -> Any:  # fmt: skip
    from xbert.pipeline.config import read
    from xbert.pipeline.console import Console
    from xbert.pipeline.processes import joined
    from xbert.pipeline.runner import Runner, follow

    given = [*overrides, f"run.memory={json.dumps(memory)}"] if memory is not None else overrides
    with joined() as processes:
        if not processes.leads:
            follow(lambda: Runner(read(experiment, given), Console(quiet=True), processes), processes)
        else:
            runner = Runner(read(experiment, given), Console(quiet), processes)
            runner.run(stages, force, dry_run)
    if not processes.leads:
        click.get_current_context().exit()  # the first process prints what there is to see
    return runner


def _stage_command(name: str, stage: str, about: str) -> None:
    @main.command(name, help=about)
    @_running
    def command(
        experiment: Path, overrides: tuple[str, ...], force: bool, dry_run: bool, quiet: bool, memory: str | None
    ) -> None:
        _run(experiment, overrides, (stage,), force, dry_run, quiet, memory)


_stage_command("prepare", "data", "Read and check the corpus, and make its splits.")
_stage_command("index", "index", "Stage 1: embed the labels and cluster them.")
_stage_command("match", "match", "Stage 2: train the matcher and find every document's clusters.")
_stage_command("rank", "rank", "Stage 3: train the rankers and order the labels inside those clusters.")
_stage_command("ensemble", "ensemble", "Combine the models of the experiment.")


@main.command()
@_running
def run(experiment: Path, overrides: tuple[str, ...], force: bool, dry_run: bool, quiet: bool, memory: str | None) -> None:
    """Run everything that is out of date, from the corpus to the report."""
    from xbert.pipeline.registry import STAGES
    from xbert.pipeline.results import is_evaluated

    runner = _run(experiment, overrides, STAGES, force, dry_run, quiet, memory)
    if not dry_run and is_evaluated(runner):
        _print_metrics(runner, False)


@main.command()
@_running
@click.option("--json", "as_json", is_flag=True, help="One JSON object: model, split, metric, in percent.")
def evaluate(
    experiment: Path, overrides: tuple[str, ...], force: bool, dry_run: bool, quiet: bool, memory: str | None, as_json: bool
) -> None:
    """Measure every model and the ensemble on every held-out split, and write the report."""
    runner = _run(experiment, overrides, ("evaluate",), force, dry_run, quiet, memory)
    if not dry_run:
        _print_metrics(runner, as_json)


def _print_metrics(runner: Any, as_json: bool) -> None:
    from xbert.pipeline.results import metrics, metrics_table, report_path

    if as_json:
        click.echo(json.dumps(metrics(runner), indent=1, ensure_ascii=False))
        return
    for line in metrics_table(runner):
        click.echo(line)
    click.echo(f"report: {report_path(runner)}")


@main.command()
@_experiment
@click.option("--verify", is_flag=True, help="Read every byte and compare it with its checksum.")
@click.option("--json", "as_json", is_flag=True, help="For machines.")
def status(experiment: Path, overrides: tuple[str, ...], verify: bool, as_json: bool) -> None:
    """Tell what is done, what is stale and why, time and size; exit code 1 unless all is up to date."""
    from xbert.pipeline import status as standing
    from xbert.pipeline.config import read
    from xbert.pipeline.console import Console
    from xbert.pipeline.runner import Runner

    rows = standing.rows(Runner(read(experiment, overrides), Console(quiet=True)), verify)
    if as_json:
        click.echo(json.dumps(standing.as_json(rows), indent=1, ensure_ascii=False))
    else:
        click.echo("\n".join(standing.lines(rows)))
    states = {row.state for row in rows}
    sys.exit(3 if standing.DAMAGED in states else 0 if states == {standing.DONE} else 1)


@main.command()
@click.argument("model", metavar="RUN", type=click.Path(path_type=Path))
@click.argument("source", metavar="FILE|-", type=click.Path(path_type=Path, allow_dash=True))
@click.option("-k", "k", default=5, show_default=True, type=click.IntRange(min=1), help="Labels per document.")
@click.option("--threads", default=0, type=click.IntRange(min=0), help="Cores to use; 0 for all.")
@click.option("--batch", default=512, show_default=True, type=click.IntRange(min=1), help="Documents tagged at a time.")
@click.option(
    "--device", default="auto", show_default=True, type=click.Choice(["auto", "cpu", "cuda", "mps"]), help="For an encoder."
)
@click.option(
    "--precision", default="auto", show_default=True, type=click.Choice(["auto", "fp32", "bf16", "int8"]),
    help="For an encoder: 'auto' is what it learnt in, where the device has that; 'int8' is for CPUs without bf16.",
)  # fmt: skip
def predict(model: Path, source: Path, k: int, threads: int, batch: int, device: str, precision: str) -> None:
    """Tag new text with the model of RUN (a run folder or an experiment file).

    FILE holds a text a line, or JSON lines with "text" and optionally "id"; - is standard input. Prints a JSON line for
    each: the labels' ids, texts and scores, best first.
    """
    from xbert.pipeline.predictions import tag_stream

    for line in tag_stream(model, source, k, threads, batch, device, precision):
        click.echo(line)


if __name__ == "__main__":
    main()
