"""Small charts as SVG text: axes, lines, bars. Colours come from the page, so that they follow light and dark."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Self

WIDTH, HEIGHT = 480, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 50, 14, 30, 48
COLOURS = 8  # the page has classes c0..c7; a ninth series begins anew with another dash
_DASHES = ("", "7 4", "2 3", "10 3 2 3")


@dataclass(frozen=True)
class Axis:
    """One direction of a chart: what it shows, from where to where, and the values that are written beside it."""

    label: str
    low: float
    high: float
    ticks: Sequence[tuple[float, str]]
    log: bool = False

    def at(self, value: float) -> float:
        """Where a value lies, 0 at the low end and 1 at the high end."""
        low, high = (math.log(self.low), math.log(self.high)) if self.log else (self.low, self.high)
        value = math.log(value) if self.log else value
        return (value - low) / (high - low)

    @classmethod
    def linear(cls, label: str, low: float, high: float) -> Self:
        """Widened to round numbers, about five ticks."""
        step = _round_step((high - low) / 5 or 1.0)
        first, last = math.floor(low / step + 1e-9), max(math.ceil(high / step - 1e-9), math.floor(low / step) + 1)
        return cls(label, first * step, last * step, [(i * step, _number(i * step)) for i in range(first, last + 1)])

    @classmethod
    def powers(cls, label: str, high: float) -> Self:
        """Logarithmic from 1, a tick at every power of ten."""
        top = max(1, math.ceil(math.log10(max(high, 1)) - 1e-9))
        return cls(label, 1, 10.0**top, [(10.0**i, _number(10.0**i)) for i in range(top + 1)], log=True)

    @classmethod
    def named(cls, label: str, names: Sequence[str]) -> Self:
        """One place for each name: 0, 1, 2 and so on."""
        return cls(label, -0.5, max(len(names), 1) - 0.5, list(enumerate(names)))


def _round_step(step: float) -> float:
    power = 10.0 ** math.floor(math.log10(step))
    return next(power * nice for nice in (1, 2, 2.5, 5, 10) if step <= power * nice * (1 + 1e-9))


def _number(value: float) -> str:
    for size, unit in ((1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:g}{unit}"
    return f"{round(value, 6):g}"


@dataclass(frozen=True)
class Bars:
    """The bars of one series: a value for every named place, a note for each, and perhaps intervals."""

    name: str
    series: int
    values: Sequence[float | None]
    notes: Sequence[str]
    intervals: Sequence[Sequence[float]] = ()


@dataclass
class Chart:
    """A chart that is drawn mark by mark; `svg` gives its text."""

    key: str  # unique on the page
    title: str
    about: str  # what is seen, for those who do not see it
    x: Axis
    y: Axis
    _marks: list[str] = field(default_factory=list)

    def line(self, points: Sequence[tuple[float, float]], series: int, notes: Sequence[str] = ()) -> None:
        """A line through the points, with a dot and a note on each one where notes are given."""
        path = " ".join(f"{self._x(x):.1f},{self._y(y):.1f}" for x, y in points)
        self._marks.append(f'<polyline class="line {colour(series)}"{dash(series)} points="{path}"/>')
        for (x, y), note in zip(points, notes, strict=False):
            place = f'cx="{self._x(x):.1f}" cy="{self._y(y):.1f}" r="3"'
            self._marks.append(f'<circle class="dot {colour(series)}" {place}><title>{escape(note)}</title></circle>')

    def bars(self, row: Bars, slot: int, n_slots: int) -> None:
        """One bar for every named place, in its slot beside those of the other rows; none where a value is missing."""
        width = 0.8 / n_slots
        for place, (value, note) in enumerate(zip(row.values, row.notes, strict=True)):
            if value is None:
                continue
            left, right = (self._x(place - 0.4 + at * width) for at in (slot, slot + 1))
            top, bottom = sorted((self._y(value), self._y(0)))
            box = f'x="{left + 0.5:.1f}" y="{top:.1f}" width="{right - left - 1:.1f}" height="{bottom - top:.1f}"'
            self._marks.append(f'<rect class="bar {colour(row.series)}" {box}><title>{escape(note)}</title></rect>')
            if row.intervals:
                low, high = row.intervals[place]
                self._whisker((left + right) / 2, self._y(high), self._y(low))
                top, bottom = min(top, self._y(high)), max(bottom, self._y(low))
            if right - left >= 28:  # else numbers would run into one another
                self._marks.append(_text((left + right) / 2, top - 5 if value >= 0 else bottom + 14, f"{value:.1f}", "value"))

    def _whisker(self, x: float, top: float, bottom: float) -> None:
        self._marks.append(f'<path class="whisker" d="M{x - 4:.1f} {top:.1f}h8m-4 0V{bottom:.1f}m-4 0h8"/>')

    def rule(self, value: float, words: str) -> None:
        """A dashed line across, with a word on it."""
        y = self._y(value)
        self._marks.append(f'<line class="rule" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        self._marks.append(_text(WIDTH - _RIGHT - 2, y - 4, words, "end"))

    def svg(self) -> str:
        """The chart as text."""
        ids = f"{self.key}-title {self.key}-about"
        parts = [
            f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-labelledby="{ids}">',
            f'<title id="{self.key}-title">{escape(self.title)}</title>',
            f'<desc id="{self.key}-about">{escape(self.about)}</desc>',
            *self._axes(),
            *self._marks,
            "</svg>",
        ]
        return "\n".join(parts)

    def _axes(self) -> list[str]:
        parts = [_text(2, 14, self.y.label, "axis start"), _text(WIDTH - _RIGHT, HEIGHT - 8, self.x.label, "axis end")]
        for value, words in self.y.ticks:
            y = self._y(value)
            kind = "zero" if value == 0 and not self.y.log else "grid"
            parts.append(f'<line class="{kind}" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
            parts.append(_text(_LEFT - 7, y + 4, words, "end"))
        parts += [_text(self._x(value), HEIGHT - _BOTTOM + 18, words, "") for value, words in self.x.ticks]
        return parts

    def _x(self, value: float) -> float:
        return _LEFT + self.x.at(value) * (WIDTH - _LEFT - _RIGHT)

    def _y(self, value: float) -> float:
        return HEIGHT - _BOTTOM - self.y.at(value) * (HEIGHT - _TOP - _BOTTOM)


def colour(series: int) -> str:
    """The page's class for a series."""
    return f"c{series % COLOURS}"


def dash(series: int) -> str:
    """Every series has a colour and a dash, so that it is known without colours too."""
    pattern = _DASHES[(series + series // COLOURS) % len(_DASHES)]
    return f' stroke-dasharray="{pattern}"' if pattern else ""


def _text(x: float, y: float, words: str, kind: str) -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}">{escape(words)}</text>'


def legend(series: Sequence[tuple[int, str]], solid: bool = False) -> str:
    """The names of the series beside a sample of their lines, or of their bars; "" for a single one."""
    if len(series) < 2:
        return ""
    items = []
    for number, name in series:
        line = f'<line class="line {colour(number)}"{dash(number)} x1="1" x2="27" y1="6" y2="6"/>'
        sample = f'<rect class="bar {colour(number)}" x="8" width="12" height="12"/>' if solid else line
        items.append(f'<li><svg class="key" viewBox="0 0 28 12" aria-hidden="true">{sample}</svg>{escape(name)}</li>')
    return f'<ul class="legend">{"".join(items)}</ul>'
