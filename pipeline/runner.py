"""Runs what is out of date, in order, and says why."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from xbert.artifacts.atomic import make_folder, storage_errors
from xbert.artifacts.errors import InputError
from xbert.artifacts.fingerprint import FileDigests
from xbert.artifacts.kinds.base import Artifact
from xbert.artifacts.store import Pieces, Store
from xbert.pipeline import log, plan, pointer
from xbert.pipeline.config import Experiment
from xbert.pipeline.console import Console, duration
from xbert.pipeline.graph import Graph, Node, build
from xbert.pipeline.processes import Processes
from xbert.pipeline.work import LocalWork
from xbert.stages.base import Divisible, Shape


class Runner:
    """Brings the artifacts of an experiment up to date."""

    def __init__(self, experiment: Experiment, console: Console, processes: Processes | None = None) -> None:
        self.experiment, self.console = experiment, console
        self.processes = processes or Processes()
        self.store = Store(experiment.folder)
        digests = FileDigests(experiment.folder / ".digests.json")
        self.graph: Graph = build(experiment, digests)
        self._digests = digests
        self._loaded: dict[str, Any] = {}

    def run(self, stages: Iterable[str], force: bool = False, dry_run: bool = False) -> list[str]:
        """Make what is missing for those stages; with `force`, those stages themselves anew. Returns what was (to be) made."""
        asked = set(stages)
        made: list[str] = []
        if asked == {"ensemble"} and self.graph.ensemble is None:
            self.console.say("ensemble: the experiment has one model, so there is nothing to combine")
        planned = False
        if dry_run and not self.store.has(self.graph.nodes[0].recipe):
            self.console.say("plan: can be told once the data is prepared (`xbert prepare`)")
        for node in self.graph.upto(asked):
            if not planned and node.stage != "data" and self.store.has(self.graph.nodes[0].recipe):
                planned = True
                self._plan(asked, force)
            again = force and node.stage in asked
            if node.stage == "evaluate" and not dry_run:
                self._point()  # the models are whole by now, and can be used whatever comes of measuring them
                if len(asked) > 1 and not self.has_held_out():
                    self.console.say(f"{node.name}: left out, there is no valid or test split to measure on")
                    continue
            if self.store.has(node.recipe) and not again:
                self.console.say(f"{node.name}: up to date")
                continue
            why = "forced" if again and self.store.has(node.recipe) else self.store.why_not(node.recipe)
            if dry_run:
                self.console.say(f"{node.name}: would run ({why})")
            else:
                self.console.say(f"{node.name}: running ({why})")
                self._make(node, again)
            made.append(node.name)
        if not dry_run:
            self._point()
        return made

    def _plan(self, asked: set[str], force: bool) -> None:
        """Say what is to come, and refuse it if it cannot be done with this data, or in the memory or on the disk there is."""
        to_make = [
            node for node in self.graph.upto(asked) if not self.store.has(node.recipe) or (force and node.stage in asked)
        ]
        for node in self.graph.nodes:  # those of later stages too: who matches today ranks tomorrow
            node.choice.method.check_data(node.choice.config, self.artifact(self.graph.nodes[0]))
        planned: list[plan.Step] = []
        for made in self.graph.models.values():
            steps = plan.steps([node for node in made.values() if node in to_make], self._shape(made), self.experiment.threads)
            planned += [step for step in steps if all(step.node is not other.node for other in planned)]
        for line in plan.lines(planned, self.experiment.threads, self.experiment.memory):
            self.console.say(line)
        plan.refuse_what_does_not_fit(planned, self.experiment.memory, self.experiment.folder)

    def _shape(self, made: dict[str, Node]) -> Shape:
        """The data of a model, as far as it is known yet."""
        data, features, index = self.graph.nodes[0], made["features"], made["index"]
        done = {node.stage: self.artifact(node) for node in (data, features, index) if self.store.has(node.recipe)}
        ngrams = plan.ngrams_of(features.choice.config)
        return plan.shape_of(done["data"], done.get("features"), done.get("index"), ngrams)

    def _make(self, node: Node, force: bool) -> None:
        with storage_errors(self.experiment.folder):
            make_folder(self.experiment.folder)
            self._digests.save()
        method = node.choice.method()

        def compute(partial: Path, pieces: Pieces) -> Artifact:
            inputs, threads, memory = self._inputs(node), self.experiment.threads, self.experiment.memory
            if isinstance(method, Divisible) and not self.processes.alone:
                threads, memory = self._share()
                self.console.say(f"  {self.processes.world} processes with {threads} threads each")
                self.processes.order(node.recipe.fingerprint)
            with log.Log(self.experiment.folder / log.FOLDER, f"{node.stage}-{node.recipe.name}") as numbers:
                work = LocalWork(partial, threads, memory, _seed(node), pieces, self.console, numbers)
                return method.run(inputs, node.choice.config, work)

        self.store.make(node.recipe, method.gives, compute, force)
        self._loaded.pop(node.recipe.fingerprint, None)
        note = self.store.journal().get(f"{node.recipe.stage}/{node.recipe.name}", {})
        facts = ", ".join(f"{key} {_plain(value)}" for key, value in self.artifact(node).summary().items())
        self.console.say(f"{node.name}: done in {duration(note.get('seconds', 0))} ({facts})")

    def help(self, fingerprint: str) -> None:
        """In another process than the first: take part in making that artifact, and keep nothing."""
        node = next((each for each in self.graph.nodes if each.recipe.fingerprint == fingerprint), None)
        method = node.choice.method() if node is not None else None
        if node is None or not isinstance(method, Divisible):
            raise InputError(
                f"process {self.processes.rank} finds other files or settings than the first process: "
                "give every machine the same experiment file, data and version of xbert"
            )
        threads, memory = self._share()
        work = LocalWork.of_helper(self.store.partial(node.recipe), threads, memory, _seed(node))
        method.follow(self._inputs(node), node.choice.config, work)

    def _share(self) -> tuple[int, int]:
        """Threads and memory of this process while all are at work."""
        local = self.processes.local
        return self.experiment.threads_of_each(local), self.experiment.memory // local

    def _inputs(self, node: Node) -> dict[str, Any]:
        return {key: self.artifact(each) for key, each in node.inputs.items()}

    def artifact(self, node: Node) -> Any:
        """The node's artifact, opened once."""
        key = node.recipe.fingerprint
        if key not in self._loaded:
            self._loaded[key] = self.store.load(node.recipe, node.choice.method.gives)
        return self._loaded[key]

    def has_held_out(self) -> bool:
        """Whether there are documents to measure on; True as long as the data is not known."""
        data = self.graph.nodes[0]
        return not self.store.has(data.recipe) or bool(self.artifact(data).held_out)

    def _point(self) -> None:
        """Once every model is whole, say in the run folder which artifacts make it up."""
        needed = [node for made in self.graph.models.values() for node in made.values()]
        needed += [self.graph.ensemble] if self.graph.ensemble else []
        if all(self.store.has(node.recipe) for node in needed):
            with storage_errors(self.experiment.folder):
                pointer.write(self.experiment.folder, self.graph, self.store)


def follow(start: Callable[[], Runner], processes: Processes) -> None:
    """What every process but the first does: take part where that one asks for it. It reads nothing that was not checked."""
    runner: Runner | None = None
    for fingerprint in processes.orders():
        runner = runner or start()
        runner.help(fingerprint)


def _seed(node: Node) -> int:
    return int(getattr(node.choice.config, "seed", 0))


def _plain(value: Any) -> str:
    return (
        f"{value:,}"
        if isinstance(value, (int, float))
        else " ".join(map(str, value))
        if isinstance(value, list)
        else str(value)
    )
