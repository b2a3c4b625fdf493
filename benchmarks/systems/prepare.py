"""The shared data: labels and TF-IDF rows by scikit-learn, made once, read by every system.

Runs in scikit-learn's environment: python -m systems.prepare REQUEST ANSWER
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.feature_extraction.text import TfidfVectorizer

SETTINGS: dict[str, Any] = {"sublinear_tf": True, "min_df": 2, "dtype": np.float32}


def read(path: Path) -> tuple[list[str], list[list[str]]]:
    """Texts and labels of a JSON-lines file."""
    texts, labels = [], []
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            try:
                document = json.loads(line)
                # Half a surrogate pair is a legal string and no legal UTF-8, which most systems read.
                texts.append(document["text"].encode("utf-8", "replace").decode("utf-8"))
                labels.append(document["labels"])
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                sys.exit(f'{path} line {number}: not a document like {{"text": ..., "labels": [...]}} ({error!r})')
    return texts, labels


def label_matrix(documents: list[list[str]], number: dict[str, int]) -> tuple[Any, int]:
    """Documents x labels, and how many assignments name a label that is not known."""
    known = [sorted({number[label] for label in labels if label in number}) for labels in documents]
    unknown = sum(label not in number for labels in documents for label in set(labels))
    indptr = np.cumsum([0, *map(len, known)])
    indices = np.array([label for labels in known for label in labels], np.int32)
    shape = (len(documents), len(number))
    return scipy.sparse.csr_matrix((np.ones(len(indices), np.float32), indices, indptr), shape=shape), unknown


def write_xmc(path: Path, X: Any, Y: Any) -> None:
    """The Extreme Classification Repository's text format, for systems that train from a file."""
    with path.open("w", encoding="ascii") as out:
        out.write(f"{X.shape[0]} {X.shape[1]} {Y.shape[1]}\n")
        for i in range(X.shape[0]):
            terms, names = slice(X.indptr[i], X.indptr[i + 1]), Y.indices[Y.indptr[i] : Y.indptr[i + 1]]
            pairs = (f"{term}:{value:.7g}" for term, value in zip(X.indices[terms], X.data[terms], strict=True))
            out.write(f"{','.join(map(str, names))} {' '.join(pairs)}\n")


def prepare(source: Path, data: Path) -> dict[str, Any]:
    """Fill the folder `data`; returns the facts a reader should know."""
    texts, named = {}, {}
    for split in ("train", "test"):
        texts[split], named[split] = read(source / f"{split}.jsonl")
    names = sorted({label for labels in named["train"] for label in labels})
    number = {name: i for i, name in enumerate(names)}
    vectorizer = TfidfVectorizer(**SETTINGS)
    X = {"train": vectorizer.fit_transform(texts["train"]), "test": vectorizer.transform(texts["test"])}
    facts: dict[str, Any] = {}
    for split in ("train", "test"):
        Y, unknown = label_matrix(named[split], number)
        usable = np.flatnonzero((np.diff(X[split].indptr) > 0) & (np.diff(Y.indptr) > 0))
        kept, truth = scipy.sparse.csr_matrix(X[split][usable]), Y[usable]
        kept.sort_indices()
        chosen = [texts[split][i] for i in usable]
        scipy.sparse.save_npz(data / f"{split}.X.npz", kept, compressed=False)
        scipy.sparse.save_npz(data / f"{split}.Y.npz", truth, compressed=False)
        (data / f"{split}.texts.json").write_text(json.dumps(chosen), "utf-8")
        if split == "train":
            write_xmc(data / "train.xmc", kept, truth)
        facts[split] = {
            "documents": len(usable), "left out": len(texts[split]) - len(usable), "unseen assignments dropped": unknown,
            "terms per document": kept.nnz / max(len(usable), 1), "labels per document": truth.nnz / max(len(usable), 1),
            "MB": sum(len(text.encode("utf-8")) for text in chosen) / 1e6,
        }  # fmt: skip
    (data / "labels.json").write_text(json.dumps(names), "utf-8")
    vocabulary = {term: int(at) for term, at in vectorizer.vocabulary_.items()}
    (data / "vocabulary.json").write_text(json.dumps(vocabulary), "utf-8")
    np.save(data / "idf.npy", vectorizer.idf_)
    return {**facts, "labels": len(names), "terms": len(vocabulary)}


def fitted(data: Path) -> TfidfVectorizer:
    """The same vectorizer again, in another process."""
    vocabulary = json.loads((data / "vocabulary.json").read_text("utf-8"))
    vectorizer = TfidfVectorizer(**SETTINGS, vocabulary=vocabulary)
    vectorizer.idf_ = np.load(data / "idf.npy")
    return vectorizer


if __name__ == "__main__":
    asked = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    Path(sys.argv[2]).write_text(json.dumps(prepare(Path(asked["source"]), Path(asked["data"]))), "utf-8")
