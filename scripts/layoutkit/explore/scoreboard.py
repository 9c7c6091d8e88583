"""The figures of one finished layout, a board of many, and what got worse from one board to the next.

Every figure is read from the files of a workspace: the layout itself, and ``summary.json`` of the build.

The page of a board is self-contained and readable on light and dark screens.
"""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import klayout.db as kdb

from layoutkit.flow.summary import largest_offset
from layoutkit.layout.workspace import Workspace
from layoutkit.templates import rendered

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from layoutkit.technology import Technology


FORMAT = 1
TOLERANCE = 0.03
CPU_TOLERANCE = 0.25
"""CPU time, over that of a fixed computation in the same run, varies with what else the machine does."""
EDGE_UM = 0.5
"""A port is at the edge if its metal ends at most this far from the box around the layout. [um]"""
CORE_ROLES = ("active", "tap", "poly", "nwell")


@dataclass(frozen=True)
class Figure:
    """A column of the board.

    Attributes:
        name: Its name in a row.
        title: Its heading.
        text: What it is.
        floor: A change of at most this much is never worse.
        judged: Whether a larger value is worse.
    """

    name: str
    title: str
    text: str
    floor: float = 0.0
    judged: bool = True


STATED: dict[str, Any] = json.loads(Path(__file__).with_name("figures.json").read_text("utf-8"))
"""What the columns of the board and the objectives of a search are."""
FIGURES = tuple(Figure(**each) for each in STATED["board"])


def row(workspace: Path) -> dict[str, Any]:
    """Return the figures of the finished build in ``workspace``."""
    report = json.loads((workspace / "summary.json").read_text(encoding="utf-8"))
    technology = Workspace(str(workspace)).technology(None)
    layout = kdb.Layout()
    layout.read(str(workspace / "layout.gds"))
    cell = layout.top_cell()
    placement, routing = report["placement"], report["routing"]
    groups = report["matching"]["groups"]
    pairs = [each for each in routing["mirrored"] if len(each["nets"]) > 1]
    circuit = json.loads((workspace / "circuit.json").read_text())["circuit"]
    ports, inside = ports_at_edge(cell, technology, circuit["ports"])
    width, height = cell.dbbox().width(), cell.dbbox().height()
    drc = report["drc"]
    return {
        "devices": report["circuit"]["device_count"],
        "area_um2": round(device_box(cell, technology).area() * layout.dbu**2, 2),
        "area_over_modules": _ratio(1, placement["core_utilisation"]),
        "aspect": _ratio(max(width, height), min(width, height)),
        "wire_um": routing["total_wire_length"],
        "wire_over_bound": _ratio(routing["total_wire_length"], routing["wire_length_bound"]),
        "vias": routing["via_count"],
        "single_cuts": len(routing["single_cuts"]),
        "mirror_error": asymmetry(cell, technology),
        "unmirrored_pairs": sum(not each["exact"] for each in pairs),
        "pair_error": max((each["mirror_error"] for each in pairs), default=None),
        "offset_mv": _rounded(largest_offset(groups, "mV")),
        "mirror_percent": _rounded(largest_offset(groups, "%")),
        "ports": ports,
        "ports_inside": inside,
        "unrouted": len(routing["failed"]),
        "drc": drc["total_violations"] + len(drc["rules_unchecked"]) + len(drc["layers_unchecked"]),
        "lvs": int(not (report["lvs"]["matched"] and report["lvs"]["complete"])),
        "review_must": report.get("review", {}).get("must"),
        "review_should": report.get("review", {}).get("should"),
        "stages": {
            each["name"]: {"cpu_s": round(each["cpu_ms"] / 1000, 2), "peak_mb": each["peak_mb"]}
            for each in report["stages"]
        },
    }


def _ratio(value: float, base: float) -> float | None:
    return round(value / base, 3) if base else None


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def device_box(cell: kdb.Cell, technology: Technology) -> kdb.Box:
    """Return the box of what devices are made of; supply rails and pin stubs do not count. [dbu]"""
    names = [technology.role(role) for role in CORE_ROLES]
    names += [passive.parts.get("plate") for passive in technology.passives.values()]
    box = kdb.Box()
    for name in {name for name in names if name is not None}:
        box += technology.region(cell, name).merged().bbox()
    return box


def asymmetry(cell: kdb.Cell, technology: Technology) -> float:
    """Return which part of the metal is not its mirror image about the middle of the gates; 0 is exact."""
    middle = technology.region(cell, "active").merged() & technology.region(cell, "poly").merged()
    twice = middle.bbox().left + middle.bbox().right
    wrong = total = 0.0
    for conductor in technology.conductors:
        metal = technology.region(cell, conductor.layer).merged()
        wrong += (metal ^ metal.transformed(kdb.Trans(kdb.Trans.M90)).moved(twice, 0)).area() / 2
        total += metal.area()
    return round(wrong / total, 4) if total else 0.0


def ports_at_edge(cell: kdb.Cell, technology: Technology, names: list[str]) -> tuple[int, int]:
    """Return how many ports have a label on metal, and how many of these do not reach the edge of the layout."""
    layout = cell.layout()
    found: dict[str, bool] = {}
    reach = round(EDGE_UM / layout.dbu)
    core = cell.bbox().enlarged(-reach, -reach)
    for conductor in technology.conductors:
        metal = technology.region(cell, conductor.layer).merged()
        for shape in cell.shapes(technology.layer(layout, conductor.label_layer)).each(kdb.Shapes.STexts):
            if shape.text_string in names:
                point = shape.text.position()
                here = metal.interacting(kdb.Region(kdb.Box(point.x - 1, point.y - 1, point.x + 1, point.y + 1)))
                at_edge = not here.is_empty() and not here.bbox().inside(core)
                found[shape.text_string] = found.get(shape.text_string, False) or at_edge
    return len(found), sum(not at_edge for at_edge in found.values())


def worse(board: Mapping[str, Any], committed: Mapping[str, Any]) -> list[str]:
    """Return a sentence for everything in ``board`` that is worse than in ``committed`` by more than the tolerance.

    Circuits of ``committed`` that ``board`` does not have are worse, others are not judged.
    """
    found = []
    for key, before in committed["rows"].items():
        now = board["rows"].get(key)
        if now is None:
            found.append(f"{key}: not in this board")
        elif now["status"] != "done":
            if before["status"] == "done":
                found.append(f"{key}: {now['status']}: {now.get('error', '')}"[:300])
        elif before["status"] == "done":
            found += [f"{key}: {text}" for text in _worse_figures(now, before)]
    return found


def _worse_figures(now: Mapping[str, Any], before: Mapping[str, Any]) -> list[str]:
    found = []
    for figure in FIGURES:
        old, new = before.get(figure.name), now.get(figure.name)
        if figure.judged and old is not None and new is not None and new - old > max(figure.floor, TOLERANCE * old):
            change = f", {(new / old - 1) * 100:+.1f} %" if old else ""
            found.append(f"{figure.title} {old:g} -> {new:g}{change}")
    return found


def slower(board: Mapping[str, Any], committed: Mapping[str, Any]) -> list[str]:
    """Return a sentence for each circuit that takes more CPU time, over that of the fixed computation of its run."""
    found = []
    for key, before in committed["rows"].items():
        now = board["rows"].get(key, {})
        if "cpu_s" in now and "cpu_s" in before:
            old, new = before["cpu_s"] / committed["reference_cpu_s"], now["cpu_s"] / board["reference_cpu_s"]
            if new > old * (1 + CPU_TOLERANCE) and now["cpu_s"] - before["cpu_s"] > 1:
                found.append(f"{key}: CPU {new / old:.2f} times that of the committed board")
    return found


STYLE = Path(__file__).with_name("board_page.css")
ZERO_IS_GOOD = frozenset({"unrouted", "drc", "lvs", "ports_inside", "unmirrored_pairs"})


def page(board: Mapping[str, Any]) -> str:
    """Return the board as HTML: a table for each technology, with the CPU time of the stages as bars."""
    technologies: dict[str, dict[str, Mapping[str, Any]]] = defaultdict(dict)
    for key, found in board["rows"].items():
        technology, _, name = key.partition(" ")
        technologies[technology][name] = found
    made = rendered(
        "board_page.html",
        technologies=technologies,
        figures=FIGURES,
        clean=sum(found["status"] == "done" and "error" not in found for found in board["rows"].values()),
        count=len(board["rows"]),
        longest=max((found.get("cpu_s", 0.0) for found in board["rows"].values()), default=0.0) or 1.0,
        zero_is_good=ZERO_IS_GOOD,
        text=_text,
        style=STYLE.read_text(encoding="utf-8"),
    )
    return str(made)


def _text(name: str, found: Mapping[str, Any]) -> str:
    value = found.get(name)
    if value is None:
        return "-"
    return f"{value:.0f}" if isinstance(value, float) and abs(value) >= 1000 else f"{value:.4g}"


def heading(shown: Sequence[str]) -> str:
    """Return the first line of the board as text."""
    titles = {figure.name: figure.title for figure in FIGURES}
    return f"{'circuit':<48} " + " ".join(f"{titles[name]:>14}" for name in shown)


def line(key: str, found: Mapping[str, Any], shown: Sequence[str]) -> str:
    """Return the line of a row as text."""
    if found["status"] != "done":
        return f"{key:<48} {found['status']}: {found.get('error', '')[:150]}"
    values = ["-" if found.get(name) is None else f"{found[name]:g}" for name in shown]
    return f"{key:<48} " + " ".join(f"{value:>14}" for value in values)
