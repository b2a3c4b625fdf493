"""Fine-tuning by xbert's own loop, stages/neural/training.py."""

from systems import tuning
from systems.tuning import Curve, Settings


def xbert_curve(texts: list[str], targets: list[list[int]], settings: Settings) -> Curve:
    """One pass over the documents, in their order; the head begins with `tuning.head_start`, the rate is that of both parts."""
    raise NotImplementedError("xbert's side is not written yet: benchmarks/systems/tuning_xbert.py")


if __name__ == "__main__":
    tuning.serve(xbert_curve)
