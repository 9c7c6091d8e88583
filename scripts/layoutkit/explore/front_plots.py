"""Scatter plots of a search as SVG text: each layout is a point that leads to its description."""

from __future__ import annotations

from html import escape
from math import floor, log10
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

WIDTH, HEIGHT = 460, 340
LEFT, RIGHT, TOP, BOTTOM = 64, 14, 12, 46
COLOURS = 4
"""Technologies that have a colour of their own; further ones share the last."""


DOT, LETTER, DIGIT = 5.0, 12.0, 7.5
"""Half a point that a number is not to cover; height and width of a digit. [px]"""
DIRECTIONS = ((1, -1), (1, 1), (-1, -1), (-1, 1), (0, -1), (0, 1), (1, 0), (-1, 0))
DISTANCES = (5, 14, 24, 36, 50)
"""Where a number may stand as seen from its point: tried in this order. [px]"""


class Axis(NamedTuple):
    """One axis of a plot: its title, the figure that it shows, and the range of the figure."""

    title: str
    figure: str
    low: float
    high: float

    @classmethod
    def of(cls, objective: Mapping[str, Any], values: Sequence[float]) -> Axis:
        """Return the axis of an objective, with some room at its ends."""
        unit = f" [{objective['unit']}]" if objective["unit"] else ""
        best = ", larger is better" if objective["goal"] == "max" else ""
        low, high = min(values), max(values)
        room = (high - low) * 0.07 or abs(high) * 0.1 or 1.0
        return cls(f"{objective['name']}{unit}{best}", objective["name"], low - room, high + room)

    def share(self, value: float) -> float:
        """Return where a value lies, from 0 to 1."""
        return (value - self.low) / (self.high - self.low)

    def ticks(self) -> list[float]:
        """Return four to ten round numbers within the range."""
        rough = (self.high - self.low) / 5
        step = 10 ** floor(log10(rough))
        step *= next(factor for factor in (1, 2, 5, 10) if factor * step >= rough)
        first = int(-(-self.low // step))
        return [round(number * step, 12) for number in range(first, int(self.high // step) + 1)]


def scatter(
    layouts: Sequence[Mapping[str, Any]], objectives: Sequence[Mapping[str, Any]], technologies: Sequence[str]
) -> str:
    """Return one plot of two objectives.

    Args:
        layouts: Those that have both figures.
        objectives: Two of them: that of the x axis and that of the y axis.
        technologies: In the order of their colours.
    """
    across, up = (Axis.of(each, [layout["figures"][each["name"]] for layout in layouts]) for each in objectives)
    title = f"{up.title} over {across.title}"
    parts = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="group" aria-label="{escape(title)}">', *_frame(across, up)]
    ordered = sorted(layouts, key=lambda each: each["status"] == "front")  # the front lies on top
    points, front = [], {}
    for layout in ordered:
        x = _x(across.share(layout["figures"][across.figure]))
        y = _y(up.share(layout["figures"][up.figure]))
        points.append((x, y))
        colour = min(technologies.index(layout["point"]["technology"]), COLOURS - 1)
        kind = "front" if layout["status"] == "front" else "other"
        words = ", ".join(f"{axis.title} {layout['figures'][axis.figure]:g}" for axis in (across, up))
        name = f"layout {layout['number']} ({layout['status']}): {words}"
        parts.append(
            f'<a href="#layout-{layout["number"]}" aria-label="{escape(name)}"><title>{escape(name)}</title>'
            f'<circle class="{kind} t{colour}" cx="{x:.1f}" cy="{y:.1f}" r="{6 if kind == "front" else 4}"/></a>'
        )
        if kind == "front":
            front[layout["number"]] = (x, y)
    return "\n".join([*parts, *_numbers(front, points), "</svg>"])


def _numbers(front: Mapping[int, tuple[float, float]], points: Sequence[tuple[float, float]]) -> list[str]:
    """Return the numbers of the front's points, none over another, each as near to its point as there is room.

    A number that is not beside its point is joined to it by a line. One that finds no room is left out.

    Args:
        front: Point by number of the layout.
        points: All points, which the numbers cover only where they must.
    """
    parts, taken = [], list[_Box]()
    circles = [_Box(x - DOT, y - DOT, x + DOT, y + DOT) for x, y in points]
    for number, (x, y) in sorted(front.items(), key=lambda item: (item[1], item[0])):
        width = DIGIT * len(str(number))
        boxes = [_Box.about(x + dx * (away + width / 2), y + dy * (away + LETTER / 2), width)
                 for away in DISTANCES for dx, dy in DIRECTIONS]  # fmt: skip
        free = [box for box in boxes if box.is_inside() and not any(map(box.overlaps, taken))]
        box = next((each for each in free if not any(map(each.overlaps, circles))), next(iter(free), None))
        if box is None:
            continue
        taken.append(box)
        middle, base = (box.left + box.right) / 2, box.bottom - 2
        if boxes.index(box) >= len(DIRECTIONS):
            end_x, end_y = min(max(x, box.left), box.right), min(max(y, box.top), box.bottom)
            parts.append(f'<line class="leader" x1="{x:.1f}" y1="{y:.1f}" x2="{end_x:.1f}" y2="{end_y:.1f}"/>')
        parts.append(f'<text class="number" x="{middle:.1f}" y="{base:.1f}" text-anchor="middle">{number}</text>')
    return parts


class _Box(NamedTuple):
    """A rectangle of a plot. [px]"""

    left: float
    top: float
    right: float
    bottom: float

    @classmethod
    def about(cls, x: float, y: float, width: float) -> _Box:
        """Return that of a number about a point."""
        return cls(x - width / 2, y - LETTER / 2, x + width / 2, y + LETTER / 2)

    def overlaps(self, other: _Box) -> bool:
        """Return whether two rectangles share an area."""
        across = self.left < other.right and other.left < self.right
        return across and self.top < other.bottom and other.top < self.bottom

    def is_inside(self) -> bool:
        """Return whether it lies within the frame of the plot."""
        return self.left >= LEFT and self.right <= WIDTH and self.top >= 0 and self.bottom <= HEIGHT - BOTTOM


def _frame(across: Axis, up: Axis) -> list[str]:
    """Return grid, tick labels and titles."""
    bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    parts = []
    for value in across.ticks():
        x = _x(across.share(value))
        parts.append(f'<line class="grid" x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{bottom}"/>')
        parts.append(f'<text class="tick" x="{x:.1f}" y="{bottom + 16}" text-anchor="middle">{value:g}</text>')
    for value in up.ticks():
        y = _y(up.share(value))
        parts.append(f'<line class="grid" x1="{LEFT}" y1="{y:.1f}" x2="{right}" y2="{y:.1f}"/>')
        parts.append(f'<text class="tick" x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{value:g}</text>')
    middle = (LEFT + right) / 2
    parts.append(
        f'<text class="title" x="{middle:.1f}" y="{HEIGHT - 8}" text-anchor="middle">{escape(across.title)}</text>'
    )
    turned = f'transform="translate(14 {(TOP + bottom) / 2:.1f}) rotate(-90)"'
    return [*parts, f'<text class="title" {turned} text-anchor="middle">{escape(up.title)}</text>']


def _x(share: float) -> float:
    return LEFT + share * (WIDTH - LEFT - RIGHT)


def _y(share: float) -> float:
    return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)
