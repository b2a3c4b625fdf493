"""The corpus stage: files in one of the field's formats become a dataset."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from xbert.artifacts.errors import InputError
from xbert.artifacts.kinds.dataset import SPLITS, Dataset, Labels, Split
from xbert.stages.base import AUTO, Config, Method, Work, setting
from xbert.stages.corpus.checks import describe, find_facts
from xbert.stages.corpus.documents import Documents, DocumentsWriter
from xbert.stages.corpus.notes import Notes
from xbert.stages.corpus.reading import Reading
from xbert.stages.corpus.sources import FORMATS, Corpus, find_corpus
from xbert.stages.corpus.split import assign, deal_out, settle
from xbert.stages.corpus.text_formats import Keys

_SCRATCH = "scratch"


@dataclass(frozen=True)
class PrepareConfig(Config):
    """Where the documents are, how to read them, and how to split them."""

    train: str = setting("", "file with the training documents, or an X-Transformer / PECOS folder", path=True)
    valid: str = setting("", "file with validation documents; empty: a part of train is held out", path=True)
    test: str = setting("", "file with test documents; empty: a part of train is held out if train is all there is", path=True)
    labels: str = setting("", "file with label ids, texts and parents; empty: the labels are those that occur", path=True)
    format: str = setting(AUTO, "format of the documents; auto: by name and first line", choices=(AUTO, *FORMATS))
    text_key: str = setting("text", "JSON key of the text; several, divided by commas, are joined: title,abstract")
    labels_key: str = setting("labels", "JSON key of the list of labels")
    label_prefix: str = setting("__label__", "what a label starts with in a fastText file")
    valid_fraction: float = setting(0.1, "share of train held out if no validation file is given; 0: none", low=0, high=0.9)
    test_fraction: float = setting(0.1, "share of train held out if only train is given; 0: none", low=0, high=0.9)
    group: str = setting("", "JSON key whose documents of one value stay in one split, such as an author; empty: none")
    seed: int = setting(0, "another number holds out other documents")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.valid_fraction + self.test_fraction >= 1:
            raise InputError("valid_fraction and test_fraction add up to 1 or more: nothing is left to train on")


class Prepare(Method[PrepareConfig]):
    """Read, check and split a corpus."""

    stage: ClassVar[str] = "data"
    name: ClassVar[str] = "corpus"
    version: ClassVar[int] = 1
    config: ClassVar[type[Config]] = PrepareConfig
    needs: ClassVar[tuple[str, ...]] = ()
    gives: ClassVar[type[Dataset]] = Dataset

    @classmethod
    def reads(cls, config: PrepareConfig) -> dict[str, Path]:
        """Every file that `run` will read; a missing one is an error."""
        return _corpus(config).files()

    def run(self, inputs: dict[str, Any], config: PrepareConfig, work: Work) -> Dataset:
        """Read every file once, front to back; texts go straight to disk."""
        corpus = _corpus(config)
        wanted = _fractions(config, corpus)
        keys = Keys(config.text_key, config.labels_key, config.group if wanted else "", config.label_prefix)
        notes = Notes()
        _remove_leftovers(work.folder)
        with _scratch(work.folder) as scratch:
            total = sum(source.content.stat().st_size for source in corpus.sources)
            with work.progress("reading documents", total, "bytes") as progress:
                reading = Reading(corpus, keys, notes, progress)
                tables = _read_all(reading, scratch if wanted else work.folder, work.folder, scratch)
            labels, final = reading.labels()
            splits: dict[str, Documents] = {}
            for name, table in tables.items():
                if name == "train" and wanted:
                    sizes = {split: max(1, round(share * len(table))) for split, share in wanted.items()}
                    split_of = assign(table.units, sizes, config.seed)
                    splits |= deal_out(table, ["train", *sizes], split_of, final, len(labels), work.folder)
                else:
                    splits[name] = settle(table, name, final, len(labels), work.folder)
        facts = {"format": corpus.format, **find_facts(labels, splits, notes)}
        for line in describe(facts):
            work.say(line)
        return _dataset(labels, splits, facts)


def _corpus(config: PrepareConfig) -> Corpus:
    paths = {"train": config.train, "valid": config.valid, "test": config.test}
    return find_corpus(paths, config.labels, config.format, config.label_prefix)


def _fractions(config: PrepareConfig, corpus: Corpus) -> dict[str, float]:
    """The splits to be made from train. Test draws first, so that it stays the same whatever valid's share is."""
    given = {source.split for source in corpus.sources}
    wanted = {"test": config.test_fraction if given == {"train"} else 0.0}
    wanted["valid"] = config.valid_fraction if "valid" not in given else 0.0
    wanted = {split: share for split, share in wanted.items() if share > 0}
    if config.group and wanted and corpus.format != "jsonl":
        raise InputError(f"data.group = {config.group!r}: only JSON lines have keys, and data.train is {corpus.format}")
    return wanted


def _read_all(reading: Reading, train_at: Path, others_at: Path, scratch: Path) -> dict[str, Documents]:
    tables = {}
    for source in reading.corpus.sources:
        writer = DocumentsWriter(source.split, train_at if source.split == "train" else others_at, scratch)
        for block in reading.documents(source):
            writer.append(block)
        if writer.length == 0:
            raise InputError(f"{source.content.name} holds no documents")
        tables[source.split] = writer.close()
    return tables


def _dataset(labels: Labels, splits: dict[str, Documents], facts: dict[str, Any]) -> Dataset:
    ordered = {name: splits[name] for name in SPLITS if name in splits}
    return Dataset(labels, {name: Split(part.Y, part.texts, part.X) for name, part in ordered.items()}, facts)


def _remove_leftovers(folder: Path) -> None:
    """A run that was killed may have left files that this one would not write again."""
    for split in SPLITS:
        for path in folder.glob(f"{split}.*.npy"):
            path.unlink()


@contextmanager
def _scratch(folder: Path) -> Iterator[Path]:
    scratch = folder / _SCRATCH
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    try:
        yield scratch
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
