"""What fp32, bf16 and int8 cost and save when a finished run tags text: documents a second, and the labels they find.

python benchmarks/precisions.py RUN test.jsonl [--documents 2000] [--rounds 3] [--threads 2] [--out FILE]

RUN is a run folder or an experiment file with a fine-tuned encoder. The precisions take turns in every round; speeds are
medians. "encoder" is what the network alone takes, "whole" the way from text to labels.
"""

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import machine

from xbert.pipeline.tagger import Tagger
from xbert.stages.neural.names import BF16, FP32, INT8

K = 5


def read(path: Path, most: int) -> tuple[list[str], list[set[str]]]:
    """Texts and labels of the first documents."""
    with path.open(encoding="utf-8") as lines:
        documents = [json.loads(line) for _, line in zip(range(most), lines, strict=False)]
    return [each["text"] for each in documents], [set(each["labels"]) for each in documents]


def seconds(work: Callable[[], Any]) -> float:
    """How long it takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def precision_at(k: int, found: list[list[str]], truth: list[set[str]]) -> float:
    """P@k in percent."""
    hits = sum(label in true for labels, true in zip(found, truth, strict=True) for label in labels[:k])
    return 100 * hits / (k * len(truth))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("test", type=Path)
    parser.add_argument("--documents", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, help="a JSON file for the figures")
    given = parser.parse_args()
    texts, truth = read(given.test, given.documents)
    taggers = {precision: Tagger.load(given.run, "cpu", precision) for precision in (FP32, BF16, INT8)}
    times: dict[str, dict[str, list[float]]] = {precision: {"encoder": [], "whole": []} for precision in taggers}
    for tagger in taggers.values():
        tagger.predict(texts[:64], K, given.threads)
    with machine.Noise() as noise:
        for _ in range(given.rounds):
            for precision, tagger in taggers.items():
                finders = list(tagger._finders().values())
                encode = seconds(lambda finders=finders: [each.find(texts, given.threads) for each in finders])
                times[precision]["encoder"].append(encode)
                whole = seconds(lambda tagger=tagger: tagger.predict(texts, K, given.threads))
                times[precision]["whole"].append(whole)
    found = {
        precision: [[tag.id for tag in tags] for tags in tagger.predict(texts, K, given.threads)]
        for precision, tagger in taggers.items()
    }
    figures = {}
    print(f"{len(texts):,} documents, {given.rounds} rounds, {given.threads} threads; others used {100 * noise.share:.0f} %")
    print(f"{'':6}{'encoder':>10}{'whole':>10}{'P@1':>8}{'P@5':>8}   top 5 as in fp32")
    for precision, labels in found.items():
        rate = {part: len(texts) / median(each) for part, each in times[precision].items()}
        same = sum(len(set(ours) & set(theirs)) for ours, theirs in zip(labels, found[FP32], strict=True))
        agreement = 100 * same / max(sum(map(len, found[FP32])), 1)
        at = {k: precision_at(k, labels, truth) for k in (1, K)}
        print(f"{precision:6}{rate['encoder']:>10.0f}{rate['whole']:>10.0f}{at[1]:>8.2f}{at[K]:>8.2f}{agreement:>16.2f} %")
        figures[precision] = {
            **{f"{part}_docs_per_s": each for part, each in rate.items()}, "P@1": at[1], f"P@{K}": at[K], "agreement": agreement
        }  # fmt: skip
    if given.out:
        facts = {"documents": len(texts), "rounds": given.rounds, "threads": given.threads, "noise": noise.share}
        given.out.write_text(json.dumps({"machine": machine.about(), **facts, "figures": figures}, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
