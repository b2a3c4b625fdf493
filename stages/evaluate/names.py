"""Names beside those of the models among the metrics; no model may be called so."""

from xbert.artifacts.kinds.evaluation import COMPARISON as COMPARISON

ENSEMBLE = "ensemble"
