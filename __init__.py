"""xbert: give each document the few right labels out of very many, in three stages: index, match, rank.

>>> from xbert import Tagger                                       # doctest: +SKIP
>>> Tagger.load("runs/demo").predict(["some text"], k=5)           # doctest: +SKIP
"""

from typing import Any

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """`Tagger`, imported when it is first asked for: importing xbert itself must stay free."""
    if name == "Tagger":
        from xbert.pipeline.tagger import Tagger

        return Tagger
    raise AttributeError(f"module 'xbert' has no attribute {name!r}")
