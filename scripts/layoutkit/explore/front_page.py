"""The result of a search as one HTML page: plots, pictures of the front, parameters, and every layout with its reason.

The page needs no script and loads nothing: a point of a plot is a link to the description of its layout. Links to
reports lead to the workspaces beside the page.
"""

from __future__ import annotations

import json
from base64 import b64encode
from hashlib import sha256
from html import escape
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

from layoutkit.explore.front_plots import COLOURS, scatter
from layoutkit.view.html_parts import Html, section, table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

STYLE = Path(__file__).with_name("front_page.css")
PARAMETERS = "parameters"
MAX_PLOTS = 6
MAX_PICTURES = 60
SIDE = 480
"""Longer side of a picture. [pixels]"""


def front_page(
    result: Mapping[str, Any], folder: Path, unfinished: int = 0, pictures: dict[str, str] | None = None
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
    netlist = Path(result["netlist"]).name
    title = f"Layouts of {netlist}: {len(front)} in the front of {len(layouts)}"
    style = STYLE.read_text(encoding="utf-8")
    digest = b64encode(sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; img-src data:; style-src 'sha256-{digest}'"
    cards = [_card(each, result, folder, pictures) for each in front]
    sections = [
        section("plots", "Plots", _legend(result), *_plots(layouts, objectives, result["axes"]["technology"])),
        section("front", "Front", _front_note(objectives, front), *cards),
        section("all", "All layouts", _all_layouts(layouts, objectives)),
        section("space", "Space", _space(result)),
        section("reproduce", "Reproduce", _reproduction(result)),
    ]
    names = ("plots", "front", "all", "space", "reproduce")
    links = "".join(f'<a href="#{name}">{name.capitalize()}</a>' for name in names)
    return "\n".join(
        [
            '<!doctype html>\n<html lang="en" data-ready="true">\n<head>\n<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            f"<title>{escape(title)}</title>\n<style>{style}</style>\n</head>\n<body>",
            f'<a class="skip" href="#front">To the front</a>\n<header><h1>{escape(title)}</h1>',
            f"{_unfinished(unfinished)}{_counts(layouts)}",
            f'<nav aria-label="Sections">{links}</nav></header>\n<main>',
            *sections,
            "</main>\n</body>\n</html>\n",
        ]
    )


def _unfinished(count: int) -> str:
    if not count:
        return ""
    layouts = "1 layout is" if count == 1 else f"{count} layouts are"
    return (
        f'<p role="status"><b>{layouts} not finished yet.</b> While the search runs, this file is written anew every '
        "few seconds: reload it. If the search was stopped, the same call with --resume continues it.</p>"
    )


def _counts(layouts: Sequence[Mapping[str, Any]]) -> str:
    counts: dict[str, int] = {}
    for each in layouts:
        counts[each["status"]] = counts.get(each["status"], 0) + 1
    items = "".join(f"<div><dt>{escape(name)}</dt><dd>{count}</dd></div>" for name, count in sorted(counts.items()))
    return f'<dl class="tiles">{items}</dl>'


def _legend(result: Mapping[str, Any]) -> str:
    """Return what the points mean."""
    swatches = "".join(
        f'<span class="name"><span class="swatch t{min(number, COLOURS - 1)}"></span>{escape(Path(name).stem)}</span> '
        for number, name in enumerate(result["axes"]["technology"])
    )
    return (
        '<p class="note">Filled points: the front, with numbers of layouts where there is room. Hollow points: layouts '
        "that another one beats or equals. Each point leads to the description of its layout. Layouts with faults are "
        f"not drawn; they are listed under All layouts. {swatches}</p>"
    )


def _plots(
    layouts: Sequence[Mapping[str, Any]], objectives: Sequence[Mapping[str, Any]], technologies: Sequence[str]
) -> list[str]:
    """Return a plot for each two objectives; with one objective, over the number of the layout."""
    drawn = [each for each in layouts if each["status"] in ("front", "beaten")]
    if not drawn:
        return ['<p class="note">No layout is clean and has all figures.</p>']
    pairs = list(combinations(objectives, 2))
    if not pairs:
        number = {"name": "number", "unit": "", "goal": "min"}
        drawn = [{**each, "figures": {**each["figures"], "number": each["number"]}} for each in drawn]
        pairs = [(number, objectives[0])]
    plots = "".join(f"<figure>{scatter(drawn, pair, technologies)}</figure>" for pair in pairs[:MAX_PLOTS])
    more = f'<p class="note">{len(pairs) - MAX_PLOTS} more pairs are not drawn.</p>' if len(pairs) > MAX_PLOTS else ""
    return [f'<div class="plots">{plots}</div>', more]


def _front_note(objectives: Sequence[Mapping[str, Any]], front: Sequence[Mapping[str, Any]]) -> str:
    goals = ", ".join(f"{'largest' if each['goal'] == 'max' else 'smallest'} {each['name']}" for each in objectives)
    more = f" The first {MAX_PICTURES} have pictures." if len(front) > MAX_PICTURES else ""
    return (
        f'<p class="note">Wanted: {escape(goals)}. No other layout is at least as good in all of these and better in '
        f"one.{more}</p>"
    )


def _card(layout: Mapping[str, Any], result: Mapping[str, Any], folder: Path, pictures: dict[str, str]) -> str:
    """Return the description of one layout of the front."""
    number, home = layout["number"], escape(layout["folder"])
    wanted = {each["name"]: each for each in result["objectives"]}
    rows = [
        [Html(f"<b>{escape(name)}</b>") if name in wanted else name, value, wanted.get(name, {}).get("unit", "")]
        for name, value in sorted(layout["figures"].items(), key=lambda item: item[0] not in wanted)
        if value is not None
    ]
    values = table(f"Figures of layout {number}", ["figure", "value", "unit"], rows)
    point = table(
        f"Point of layout {number}", ["axis", "value"], [[name, _text(v)] for name, v in _varied(layout, result)]
    )
    picture = ""
    if number in result["front"][:MAX_PICTURES]:
        picture = pictures[layout["folder"]] = pictures.get(layout["folder"]) or _picture(layout, folder)
    parameters = escape(json.dumps(layout["parameters"], indent=1))
    files = {"report": "report.html", "layout.gds": "layout.gds", "picture": "layout.png"}
    links = " ".join(f'<a href="{home}/{file}">{name}</a>' for name, file in files.items())
    return "\n".join(
        [
            f'<article id="layout-{number}" tabindex="-1"><h3>Layout {number}</h3>{picture}<div class="facts">',
            f"<p>{links}</p>",
            values,
            point,
            f"<details><summary>Parameters of flow.build_layout</summary><pre>{parameters}</pre></details>",
            f'<p class="small">layout_sha256 {escape(layout["layout_sha256"])}</p></div></article>',
        ]
    )


def _varied(layout: Mapping[str, Any], result: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Return the values of the axes that vary; all where none does."""
    point = layout["point"].items()
    return [item for item in point if len(result["axes"][item[0]]) > 1] or list(point)


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _picture(layout: Mapping[str, Any], folder: Path) -> str:
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
    return f'<img src="data:image/png;base64,{data}" width="{width}" height="{height}" alt="{escape(words)}">'


def _all_layouts(layouts: Sequence[Mapping[str, Any]], objectives: Sequence[Mapping[str, Any]]) -> str:
    """Return a table of all layouts with what became of them."""
    names = [each["name"] for each in objectives]
    rows = []
    for each in layouts:
        kind = {"front": "good", "beaten": "plain"}.get(each["status"], "bad")
        target = "" if each["status"] == "front" else f' id="layout-{each["number"]}"'
        status = Html(f'<span class="{kind}"{target}>{escape(each["status"])}</span>')
        report = Html(f'<a href="{escape(each["folder"])}/report.html">report</a>' if "folder" in each else "")
        figures = [each.get("figures", {}).get(name) for name in names]
        point = ", ".join(f"{name} {_text(value)}" for name, value in each["point"].items())
        rows.append([str(each["number"]), status, *figures, report, each.get("reason", ""), point])
    heads = [f"{each['name']}{' ' + each['unit'] if each['unit'] else ''}" for each in objectives]
    return table("All layouts", ["layout", "status", *heads, "report", "reason", "point"], rows)


def _space(result: Mapping[str, Any]) -> str:
    how = {
        "all": "all of them were tried",
        "sobol": f"tried in the order of a Sobol sequence with seed {result['seed']}",
    }[result["sampling"]]
    note = f'<p class="note">{result["space_size"]} points; {how}.</p>'
    rows = [[name, ", ".join(map(_text, values))] for name, values in result["axes"].items()]
    options = table(
        "Options of all layouts", ["option", "value"], [[k, _text(v)] for k, v in result["options"].items()]
    )
    return note + table("Axes", ["axis", "values"], rows) + (options if result["options"] else "")


def _reproduction(result: Mapping[str, Any]) -> str:
    first = next((each["number"] for each in result["layouts"] if each["status"] == "front"), 1)
    command = f"skillpack run flow.build_layout --params @{PARAMETERS}/{first}.json"
    return (
        "<p>The same parameters give the same bytes of layout.gds, in any workspace. Each layout has its file in the "
        f"folder {PARAMETERS} beside this page:</p><pre>{command}"
        '</pre><p class="note">A file names the copy of the netlist beside this page. Add a workspace to it, or the '
        "layout is made in ./workspace.</p>"
    )
