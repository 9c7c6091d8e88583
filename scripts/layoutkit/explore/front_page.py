"""The result of a search as one HTML page: plots, pictures of the front, parameters, and every layout with its reason.

The page needs no script and loads nothing: a point of a plot is a link to the description of its layout. Links to
reports lead to the workspaces beside the page.

The scatter plots are SVG text: each layout is a point that leads to its description.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections import Counter
from itertools import combinations, product
from math import floor, log10
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import klayout.db as kdb
from markupsafe import Markup

from layoutkit.layout.workspace import Workspace
from layoutkit.templates import rendered
from layoutkit.view.render import ViewOptions, render

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


STYLE = Path(__file__).with_name("front_page.css")
PARAMETERS = "parameters"
MAX_PLOTS = 6
MAX_PICTURES = 60
SIDE = 480
"""Longer side of a picture. [pixels]"""


def front_page(
    result: Mapping[str, Any], folder: Path, unfinished: int = 0, pictures: dict[str, Markup] | None = None
) -> str:
    """Return the page as HTML text.

    Args:
        result: What ``exploration.json`` holds.
        folder: That of the search, in which the workspaces lie.
        unfinished: Number of layouts that the search has still to make.
        pictures: Pictures by folder of the layout: those of an earlier page of this search are taken, new ones added.
    """
    pictures = {} if pictures is None else pictures
    layouts, objectives = result["layouts"], result["objectives"]
    front = [each for each in layouts if each["status"] == "front"]
    for each in front[:MAX_PICTURES]:
        pictures[each["folder"]] = pictures.get(each["folder"]) or _picture(each, folder)
    style = STYLE.read_text(encoding="utf-8")
    page = rendered(
        "front_page.html",
        result=result,
        netlist=Path(result["netlist"]).name,
        front=front,
        unfinished=unfinished,
        counts=dict(sorted(Counter(each["status"] for each in layouts).items())),
        technologies=[Path(name).stem for name in result["axes"]["technology"]],
        colours=COLOURS,
        plots=_plots(layouts, objectives, result["axes"]["technology"]),
        max_plots=MAX_PLOTS,
        max_pictures=MAX_PICTURES,
        pictures=pictures,
        text=_text,
        in_json=lambda value: json.dumps(value, indent=1),
        parameters=PARAMETERS,
        style=style,
    )
    return str(page)


def _plots(
    layouts: Sequence[Mapping[str, Any]], objectives: Sequence[Mapping[str, Any]], technologies: Sequence[str]
) -> list[Markup]:
    """Return a plot for each two objectives; with one objective, over the number of the layout."""
    drawn = [each for each in layouts if each["status"] in ("front", "beaten")]
    pairs = list(combinations(objectives, 2))
    if not pairs:
        number = {"name": "number", "unit": "", "goal": "min"}
        drawn = [{**each, "figures": {**each["figures"], "number": each["number"]}} for each in drawn]
        pairs = [(number, objectives[0])]
    return [scatter(drawn, pair, technologies) for pair in pairs] if drawn else []


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _picture(layout: Mapping[str, Any], folder: Path) -> Markup:
    """Return a small picture of a layout, with its box in words."""
    workspace = Workspace(str(folder / layout["folder"]))
    drawn = workspace.read_layout()
    cell = drawn.top_cell()
    box = cell.dbbox()
    longer = max(box.width(), box.height())
    width, height = (max(60, round(SIDE * length / longer)) for length in (box.width(), box.height()))
    view = ViewOptions(width=width, height=height, legend=False, labels=False)
    data = b64encode(render(cell, workspace.technology(None), view).png).decode()
    words = f"Layout {layout['number']}, {box.width():g} by {box.height():g} micrometres"
    picture = Markup('<img src="data:image/png;base64,{}" width="{}" height="{}" alt="{}">')
    return picture.format(data, width, height, words)


WIDTH, HEIGHT = 460, 340
LEFT, RIGHT, TOP, BOTTOM = 64, 14, 12, 46
COLOURS = 4
"""Technologies that have a colour of their own; further ones share the last."""


DOT, LETTER, DIGIT = 5.0, 12.0, 7.5
"""Half a point that a number is not to cover; height and width of a digit. [px]"""
DIRECTIONS = ((1, -1), (1, 1), (-1, -1), (-1, 1), (0, -1), (0, 1), (1, 0), (-1, 0))
DISTANCES = (5, 14, 24, 36, 50)
"""Where a number may stand as seen from its point: tried in this order. [px]"""


class PlotAxis(NamedTuple):
    """One axis of a plot: its title, the figure that it shows, and the range of the figure."""

    title: str
    figure: str
    low: float
    high: float

    @classmethod
    def of(cls, objective: Mapping[str, Any], values: Sequence[float]) -> PlotAxis:
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
) -> Markup:
    """Return one plot of two objectives.

    Args:
        layouts: Those that have both figures.
        objectives: Two of them: that of the x axis and that of the y axis.
        technologies: In the order of their colours.
    """
    across, up = (PlotAxis.of(each, [layout["figures"][each["name"]] for layout in layouts]) for each in objectives)
    points = []
    for layout in sorted(layouts, key=lambda each: each["status"] == "front"):  # the front lies on top
        words = ", ".join(f"{axis.title} {layout['figures'][axis.figure]:g}" for axis in (across, up))
        points.append(
            {
                "number": layout["number"],
                "is_front": layout["status"] == "front",
                "x": _x(across.share(layout["figures"][across.figure])),
                "y": _y(up.share(layout["figures"][up.figure])),
                "colour": min(technologies.index(layout["point"]["technology"]), COLOURS - 1),
                "words": f"layout {layout['number']} ({layout['status']}): {words}",
            }
        )
    front = {each["number"]: (each["x"], each["y"]) for each in points if each["is_front"]}
    return rendered(
        "front_plot.html",
        width=WIDTH,
        height=HEIGHT,
        left=LEFT,
        top=TOP,
        right=WIDTH - RIGHT,
        bottom=HEIGHT - BOTTOM,
        across=across,
        up=up,
        across_ticks=[(_x(across.share(value)), f"{value:g}") for value in across.ticks()],
        up_ticks=[(_y(up.share(value)), f"{value:g}") for value in up.ticks()],
        points=points,
        numbers=_numbers(front, [(each["x"], each["y"]) for each in points]),
    )


def _numbers(front: Mapping[int, tuple[float, float]], points: Sequence[tuple[float, float]]) -> list[dict[str, Any]]:
    """Return the numbers of the front's points, none over another, each as near to its point as there is room.

    A number that is not beside its point is joined to it by a line. One that finds no room is left out.

    Args:
        front: Point by number of the layout.
        points: All points, which the numbers cover only where they must.
    """
    found: list[dict[str, Any]] = []
    taken: list[kdb.DBox] = []
    frame = kdb.DBox(LEFT, 0, WIDTH, HEIGHT - BOTTOM)
    circles = [kdb.DBox(x - DOT, y - DOT, x + DOT, y + DOT) for x, y in points]
    for number, (x, y) in sorted(front.items(), key=lambda item: (item[1], item[0])):
        half = kdb.DVector(DIGIT * len(str(number)) / 2, LETTER / 2)
        boxes = []
        for away, (dx, dy) in product(DISTANCES, DIRECTIONS):
            middle = kdb.DPoint(x + dx * (away + half.x), y + dy * (away + half.y))
            boxes.append(kdb.DBox(middle - half, middle + half))
        free = [box for box in boxes if box.inside(frame) and not any(map(box.overlaps, taken))]
        box = next((each for each in free if not any(map(each.overlaps, circles))), next(iter(free), None))
        if box is None:
            continue
        taken.append(box)
        end = (min(max(x, box.left), box.right), min(max(y, box.bottom), box.top))
        line = ((x, y), end) if boxes.index(box) >= len(DIRECTIONS) else None
        found.append({"number": number, "x": box.center().x, "y": box.top - 2, "line": line})
    return found


def _x(share: float) -> float:
    return LEFT + share * (WIDTH - LEFT - RIGHT)


def _y(share: float) -> float:
    return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)
