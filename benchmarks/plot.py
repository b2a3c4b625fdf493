"""Accuracy against training time: one labelled point a system, as an SVG file that stands by itself.

The report's own charts take their colours from the page around them; this one is shown as an image, on any page, so it
brings its colours and paints its background.
"""

import math
from dataclasses import dataclass
from html import escape

from xbert.stages.evaluate.svg import Axis

WIDTH, HEIGHT = 720, 420
LEFT, RIGHT, TOP, BOTTOM = 56, 24, 58, 56
PAPER, INK, SOFT, RULE = "#ffffff", "#1b1f24", "#57606a", "#d5dae0"
COLOURS = ("#0b5cad", "#0e7490", "#c2410c", "#15803d", "#7e22ce", "#b4155b", "#8a6100", "#76818e")
LETTER, LINE = 7.2, 15  # about the size of a letter at 13 px
Box = tuple[float, float, float, float]  # left, top, right, bottom


@dataclass(frozen=True)
class Point:
    """A system: seconds of training, accuracy, and its range over the rounds."""

    name: str
    x: float
    y: float
    low: float
    high: float


def draw(title: str, x_label: str, y_label: str, points: list[Point]) -> str:
    """The SVG's text."""
    x = log_axis(x_label, min(point.x for point in points), max(point.x for point in points))
    low, high = min(point.low for point in points), max(point.high for point in points)
    margin = max(high - low, 0.5) * 0.1  # so that no point sits on the frame
    y = Axis.linear(y_label, low - margin, high + margin)
    places = [(across(x, point.x), up(y, point.y)) for point in points]
    taken: list[Box] = [(px - 7, py - 7, px + 7, py + 7) for px, py in places]
    taken += [(px - 3, up(y, point.high), px + 3, up(y, point.low)) for point, (px, _) in zip(points, places, strict=True)]
    marks = []
    for number, (point, (px, py)) in enumerate(zip(points, places, strict=True)):
        colour = COLOURS[number % len(COLOURS)]
        marks.append(f'<path d="M{px:.1f} {up(y, point.low):.1f}V{up(y, point.high):.1f}" stroke="{colour}" stroke-width="2"/>')
        note = f"{point.name}: {point.x:.3g} s, {point.y:.2f}"
        marks.append(f'<circle cx="{px:.1f}" cy="{py:.1f}" r="5.5" fill="{colour}"><title>{escape(note)}</title></circle>')
        marks.append(label(point.name, px, py, colour, taken))
    return "\n".join([*frame(title, x, y), *marks, "</svg>"]) + "\n"


def log_axis(title: str, low: float, high: float) -> Axis:
    """Logarithmic, ticks at 1, 2 and 5 of every power of ten, wide enough for all."""
    powers = range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 2)
    steps = [nice * 10.0**power for power in powers for nice in (1, 2, 5)]
    first, last = max(step for step in steps if step < low / 1.1), min(step for step in steps if step > high * 1.1)
    return Axis(title, first, last, [(step, f"{step:g}") for step in steps if first <= step <= last], log=True)


def across(axis: Axis, value: float) -> float:
    """Pixels from the left."""
    return LEFT + axis.at(value) * (WIDTH - LEFT - RIGHT)


def up(axis: Axis, value: float) -> float:
    """Pixels from the top."""
    return HEIGHT - BOTTOM - axis.at(value) * (HEIGHT - TOP - BOTTOM)


def label(name: str, px: float, py: float, colour: str, taken: list[Box]) -> str:
    """The name beside its point: the first place where it hides no other point or name."""
    width = LETTER * len(name)
    nearby = [
        (px + side, py + lift)
        for lift in (0, -LINE, LINE, -2 * LINE, 2 * LINE, -3 * LINE, 3 * LINE)
        for side in (10, -10 - width, -width / 2)
        if lift or side != -width / 2
    ]
    inside = [at for at in nearby if at[0] >= LEFT and at[0] + width <= WIDTH - 4] or nearby
    free = [at for at in inside if not any(overlap(box_of(at, width), other) for other in taken)] or inside
    taken.append(box_of(free[0], width))
    return text(free[0][0], free[0][1] + 4.5, name, colour, "start", "600")


def box_of(at: tuple[float, float], width: float) -> Box:
    """What a name covers whose middle left is there."""
    return at[0], at[1] - LINE / 2, at[0] + width, at[1] + LINE / 2


def overlap(one: Box, other: Box) -> bool:
    """Whether two boxes share any place."""
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def frame(title: str, x: Axis, y: Axis) -> list[str]:
    """Background, title, grid and axes."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img"'
        f' font-family="system-ui, sans-serif" font-size="13"><title>{escape(title)}</title>',
        f'<rect width="{WIDTH}" height="{HEIGHT}" rx="6" fill="{PAPER}"/>',
        text(LEFT, 22, title, INK, "start", "600"),
        text(WIDTH - RIGHT, HEIGHT - 12, x.label, INK, "end"),
        text(LEFT, 42, y.label, INK, "start"),
    ]
    for value, words in y.ticks:
        at = up(y, value)
        parts.append(f'<path d="M{LEFT} {at:.1f}H{WIDTH - RIGHT}" stroke="{RULE}"/>')
        parts.append(text(LEFT - 8, at + 4.5, words, SOFT, "end"))
    for value, words in x.ticks:
        at = across(x, value)
        parts.append(f'<path d="M{at:.1f} {TOP}V{HEIGHT - BOTTOM}" stroke="{RULE}"/>')
        parts.append(text(at, HEIGHT - BOTTOM + 18, words, SOFT, "middle"))
    return parts


def text(x: float, y: float, words: str, colour: str, anchor: str, weight: str = "400") -> str:
    """A line of text."""
    where = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f'<text {where} fill="{colour}" font-weight="{weight}">{escape(words)}</text>'
