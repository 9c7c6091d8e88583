"""The result of a search as one HTML page: plots, pictures of the front, parameters, and every layout with its reason.

The page needs no script and loads nothing: a point of a plot is a link to the description of its layout. Links to
reports lead to the workspaces beside the page.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections import Counter
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from layoutkit.explore.front_plots import COLOURS, scatter
from layoutkit.view.html_parts import digest, rendered, table

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
        cards=[_card(each, result, folder, pictures) for each in front],
        all_layouts=_all_layouts(layouts, objectives),
        axes=table("Axes", ["axis", "values"], [[k, ", ".join(map(_text, v))] for k, v in result["axes"].items()]),
        options=table(
            "Options of all layouts", ["option", "value"], [[k, _text(v)] for k, v in result["options"].items()]
        ),
        parameters=PARAMETERS,
        style=style,
        style_digest=digest(style),
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


def _card(
    layout: Mapping[str, Any], result: Mapping[str, Any], folder: Path, pictures: dict[str, Markup]
) -> dict[str, Any]:
    """Return the parts of the description of one layout of the front."""
    number = layout["number"]
    wanted = {each["name"]: each for each in result["objectives"]}
    rows = [
        [Markup("<b>{}</b>").format(name) if name in wanted else name, value, wanted.get(name, {}).get("unit", "")]
        for name, value in sorted(layout["figures"].items(), key=lambda item: item[0] not in wanted)
        if value is not None
    ]
    picture = Markup("")
    if number in result["front"][:MAX_PICTURES]:
        picture = pictures[layout["folder"]] = pictures.get(layout["folder"]) or _picture(layout, folder)
    return {
        "layout": layout,
        "picture": picture,
        "figures": table(f"Figures of layout {number}", ["figure", "value", "unit"], rows),
        "point": table(
            f"Point of layout {number}", ["axis", "value"], [[name, _text(v)] for name, v in _varied(layout, result)]
        ),
        "parameters": json.dumps(layout["parameters"], indent=1),
    }


def _varied(layout: Mapping[str, Any], result: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Return the values of the axes that vary; all where none does."""
    point = layout["point"].items()
    return [item for item in point if len(result["axes"][item[0]]) > 1] or list(point)


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _picture(layout: Mapping[str, Any], folder: Path) -> Markup:
    """Return a small picture of a layout, with its box in words."""
    from layoutkit.layout.workspace import Workspace
    from layoutkit.view.render import View, render

    workspace = Workspace(str(folder / layout["folder"]))
    drawn = workspace.read_layout()
    cell = drawn.top_cell()
    box = cell.dbbox()
    longer = max(box.width(), box.height())
    width, height = (max(60, round(SIDE * length / longer)) for length in (box.width(), box.height()))
    view = View(width=width, height=height, legend=False, labels=False)
    data = b64encode(render(cell, workspace.technology(None), view).png).decode()
    words = f"Layout {layout['number']}, {box.width():g} by {box.height():g} micrometres"
    picture = Markup('<img src="data:image/png;base64,{}" width="{}" height="{}" alt="{}">')
    return picture.format(data, width, height, words)


def _all_layouts(layouts: Sequence[Mapping[str, Any]], objectives: Sequence[Mapping[str, Any]]) -> Markup:
    """Return a table of all layouts with what became of them."""
    names = [each["name"] for each in objectives]
    rows = []
    for each in layouts:
        kind = {"front": "good", "beaten": "plain"}.get(each["status"], "bad")
        target = Markup("") if each["status"] == "front" else Markup(' id="layout-{}"').format(each["number"])
        status = Markup('<span class="{}"{}>{}</span>').format(kind, target, each["status"])
        report = Markup('<a href="{}/report.html">report</a>').format(each["folder"]) if "folder" in each else ""
        figures = [each.get("figures", {}).get(name) for name in names]
        point = ", ".join(f"{name} {_text(value)}" for name, value in each["point"].items())
        rows.append([str(each["number"]), status, *figures, report, each.get("reason", ""), point])
    heads = [f"{each['name']}{' ' + each['unit'] if each['unit'] else ''}" for each in objectives]
    return table("All layouts", ["layout", "status", *heads, "report", "reason", "point"], rows)
