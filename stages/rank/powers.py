"""How much the matchers' scores count beside the ranker's: powers in the product of scores, chosen on the validation split."""

from collections.abc import Callable, Mapping

from xbert.artifacts.errors import InputError
from xbert.artifacts.kinds.scores import Scores
from xbert.artifacts.sparse import Sparse
from xbert.stages.base import AUTO, Work
from xbert.stages.metrics.ranking import ndcg

Powers = tuple[float, float]  # of the matcher's score, and of the score of a linear matcher beside it
MATCHER = (0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0, 1.4, 2.0, 2.8)
BESIDE = (0.0, 0.1, 0.2, 0.35, 0.5, 0.7, 1.0, 1.4)
JUDGED = 5  # labels of a document that powers are chosen by
_START = (0.5, 0.5)


def settle(
    wanted: Mapping[str, float | str], held_out: Sparse | None, ranked: Callable[[Powers], Scores], work: Work
) -> Powers:
    """The powers of the settings; where one is 'auto', the one whose ranking of the held-out documents is best.

    `wanted` holds both settings by name, the matcher's first, and `held_out` the labels of the validation split.
    """
    matcher, beside = (
        ladder if value == AUTO else (float(value),) for value, ladder in zip(wanted.values(), (MATCHER, BESIDE), strict=True)
    )
    refuse_no_validation(wanted, held_out is not None)
    if held_out is None or AUTO not in wanted.values():
        return matcher[0], beside[0]
    powers, quality = choose(lambda powers: ndcg(ranked(powers), held_out, JUDGED), matcher, beside, _START)
    work.say(f"powers chosen on valid: matcher {powers[0]:g}, linear {powers[1]:g} (nDCG@{JUDGED} {quality:.2f})")
    return powers


def refuse_no_validation(wanted: Mapping[str, float | str], there: bool) -> None:
    """A power that is to be chosen needs documents to choose it on."""
    chosen = [name for name, value in wanted.items() if value == AUTO]
    if chosen and not there:
        raise InputError(
            f"[rank] {chosen[0]} = {AUTO!r} is chosen on a validation split, and there is none: give data.valid, or a number"
        )


def choose(
    quality: Callable[[Powers], float], matcher: tuple[float, ...], beside: tuple[float, ...], start: Powers
) -> tuple[Powers, float]:
    """The best powers and their quality: one power at a time, a step up or down its ladder while that helps.

    On the data looked at the quality rises to one summit, so that a dozen trials do for the whole grid. A ladder of one rung
    leaves a power as it is.

    >>> choose(lambda powers: -abs(powers[0] - 1.1) - powers[1], MATCHER, (0.5,), (0.3, 0.5))[0]
    (1.0, 0.5)
    """
    ladders = matcher, beside
    place = [_nearest(ladder, value) for ladder, value in zip(ladders, start, strict=True)]
    tried: dict[tuple[int, int], float] = {}

    def at(first: int, second: int) -> float:
        if (first, second) not in tried:
            tried[first, second] = quality((matcher[first], beside[second]))
        return tried[first, second]

    best, moved = at(*place), True
    while moved:
        moved = False
        for axis, ladder in enumerate(ladders):
            for step in (1, -1):
                while 0 <= place[axis] + step < len(ladder):
                    trial = list(place)
                    trial[axis] += step
                    if at(*trial) <= best:
                        break
                    best, place, moved = at(*trial), trial, True
    return (matcher[place[0]], beside[place[1]]), best


def _nearest(ladder: tuple[float, ...], value: float) -> int:
    return min(range(len(ladder)), key=lambda at: abs(ladder[at] - value))
