"""Which files a corpus consists of, and in which format each is."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from xbert.artifacts.errors import InputError
from xbert.artifacts.kinds.dataset import SPLITS
from xbert.stages.base import AUTO
from xbert.stages.corpus.lines import TextFile
from xbert.stages.corpus.pecos import find_names, find_part
from xbert.stages.corpus.text_formats import TEXT_FORMATS
from xbert.stages.corpus.xmc import HEADER

FORMATS = (*TEXT_FORMATS, "pecos", "xmc")
_SUFFIXES = {".jsonl": "jsonl", ".json": "jsonl", ".tsv": "annif"}


@dataclass(frozen=True)
class Source:
    """The documents of one split as the user has them."""

    split: str
    format: str
    content: Path  # texts, or features
    matrix: Path | None = None  # the labels, where they are in a file of their own

    def files(self) -> dict[str, Path]:
        """Every file of it, by a name of its own."""
        if self.matrix is None:
            return {self.split: self.content}
        return {f"{self.split}.texts": self.content, f"{self.split}.labels": self.matrix}


@dataclass(frozen=True)
class Corpus:
    """All files of a corpus."""

    sources: tuple[Source, ...]
    labels: Path | None  # the label file the user gave
    names: Path | None  # the labels' names in a PECOS folder

    @property
    def format(self) -> str:
        """The format of the training documents."""
        return self.sources[0].format

    @property
    def numbered(self) -> bool:
        """Whether labels are numbered columns, not named."""
        return self.format not in TEXT_FORMATS

    def files(self) -> dict[str, Path]:
        """Every file that is read, by a name of its own."""
        files = {name: path for source in self.sources for name, path in source.files().items()}
        for name, path in (("labels", self.labels), ("label_names", self.names)):
            if path is not None:
                files[name] = path
        return files


def find_corpus(paths: dict[str, str], labels: str, format: str, prefix: str) -> Corpus:
    """Look where the settings point; "" is a file not given. A missing file or a doubtful format is an error."""
    if not paths["train"]:
        raise InputError("data.train is not set: name the file (or PECOS folder) with the training documents")
    for name, path in {**paths, "labels": labels}.items():
        if path and not Path(path).exists():
            raise InputError(f"data.{name}: {path} does not exist")
    if labels and not Path(labels).is_file():
        raise InputError(f"data.labels: {labels} is not a file")
    sources = tuple(_find_sources({name: Path(path) for name, path in paths.items() if path}, format, prefix))
    formats = dict.fromkeys(source.format for source in sources)
    if len(formats) > 1 and not set(formats) <= set(TEXT_FORMATS):
        raise InputError(f"the splits are in the formats {' and '.join(formats)}, whose labels cannot be matched")
    train = Path(paths["train"])
    names = find_names(train) if train.is_dir() and not labels else None
    return Corpus(sources, Path(labels) if labels else None, names)


def _find_sources(paths: dict[str, Path], format: str, prefix: str) -> Iterator[Source]:
    for split in SPLITS:
        if split in paths:
            found = detect(split, paths[split], format, prefix)
            if found != "pecos":
                yield Source(split, found, paths[split])
                continue
            part = find_part(paths[split], split)
            if part is None:
                raise InputError(f"data.{split}: {paths[split]} has no {split} part of X-Transformer or PECOS (X.trn.txt ...)")
            yield Source(split, found, *part)
        elif paths["train"].is_dir() and (part := find_part(paths["train"], split)) is not None:
            yield Source(split, "pecos", *part)


def detect(split: str, path: Path, format: str, prefix: str) -> str:
    """The format as set, or by the kind of path, its name, or its first line."""
    if format != AUTO and path.is_dir() != (format == "pecos"):
        raise InputError(f"data.{split}: {path} is {'a folder' if path.is_dir() else 'a file'}, which format {format} is not")
    if format != AUTO:
        return format
    if path.is_dir():
        return "pecos"
    by_name = _SUFFIXES.get(Path(path.name.removesuffix(".gz")).suffix)
    return by_name or _by_content(split, path, prefix)


def _by_content(split: str, path: Path, prefix: str) -> str:
    line = TextFile(path).first_line()
    matches = {
        "jsonl": line.lstrip().startswith("{"),
        "xmc": HEADER.fullmatch(line) is not None,
        "fasttext": bool(prefix) and line.startswith(prefix),
        "annif": "\t" in line.strip(),
    }
    found = [format for format, fits in matches.items() if fits]
    if len(found) == 1:
        return found[0]
    why = f"may be {' or '.join(found)}" if found else "is in no format known by its name or first line"
    raise InputError(f"data.{split}: {path} {why}; set data.format to one of {', '.join(FORMATS)}")
