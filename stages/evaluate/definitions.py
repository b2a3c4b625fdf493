"""What each metric says, in one sentence."""


def definitions(a: float, b: float, few: int, medium: int) -> list[tuple[str, str]]:
    """The terms of the report and their sentences, in the order of its tables."""
    return [
        (
            "P@k",
            "Precision: of the first k labels named for a document, the share that is right, averaged over documents; "
            "a document with fewer than k true labels cannot reach 100.",
        ),
        ("R@k", "Recall: of a document's true labels, the share among the first k named, averaged over documents."),
        (
            "nDCG@k",
            "Like precision, but an earlier place counts more (1/log2(place + 1)), divided by what a perfect order of "
            "the document's true labels reaches, averaged over documents.",
        ),
        (
            "PSP@k",
            "Precision in which a right label counts 1/propensity, so that rare labels count more, summed over all "
            "documents and divided by the best reachable sum; the propensity of a label in n of N training documents "
            f"is 1/(1 + C (n + B)^-A) with C = (ln N - 1)(B + 1)^A, here A = {a:g} and B = {b:g}.",
        ),
        (
            "RP@k",
            "R-Precision: precision at min(k, number of true labels), averaged over documents, so that 100 can always "
            "be reached.",
        ),
        (
            "coverage@5",
            "Of the labels that are true somewhere in the split, the share that is rightly named among the first 5 of "
            "at least one document.",
        ),
        (
            "seen labels",
            "The metric with labels that no training document has taken out of the truth: comparable with figures of "
            "benchmarks that drop them.",
        ),
        (
            "macro P@5, R@5, F@5",
            "For each label: how often it is right when named among the first 5, how often it is named when true, and "
            "the harmonic mean of both; then the plain mean over the labels of the class that are true somewhere in "
            "the split (a label never named has precision 0; labels never true in the split are left out).",
        ),
        (
            "few, medium, many",
            f"Labels with 1 to {few}, {few + 1} to {medium}, and more than {medium} training documents; labels with "
            "none are counted as unseen.",
        ),
        (
            "head and tail recall@5",
            "Of the true assignments (document, label) of many (head) or few (tail) labels, the share found among the first 5.",
        ),
        (
            "matcher recall",
            "Share of the true assignments (document, label) whose cluster is among the first b clusters the matcher "
            "proposes: an upper bound of what its ranker can find.",
        ),
        (
            "matcher P@k",
            "Of the first k clusters proposed for a document, the share that holds at least one of its true labels.",
        ),
        (
            "label embedding",
            "What labels are clustered by: PIFA, the training documents of a label; text, the label's own words; contextual, "
            "the label's words as a language model reads them.",
        ),
        (
            "matching and ranking stage",
            "Matching finds clusters for a document and is measured by matcher P@k; ranking finds labels in these clusters "
            "and is measured by P@k.",
        ),
        ("[low, high]", "A bootstrap interval: the range in which the metric falls when the documents are drawn anew."),
    ]
