"""How good the scores are: metrics, intervals, and a page to look at."""
