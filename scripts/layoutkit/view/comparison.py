"""What differs between two layouts: shapes by layer, sizes, devices, figures, verdicts and findings, in words too."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import klayout.db as kdb

from layoutkit.errors import listed
from layoutkit.layout.cells import sorted_layers
from layoutkit.view.drawing_data import Marker
from layoutkit.view.render import Picture, ViewOptions, beside, render

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from layoutkit.technology import Technology

MOST_MARKERS = 60
MOST_MARKED = 0.25
MOVED_UM = 0.001
_MARGIN_UM = 0.25
_FEW = 4
_FIGURES = (  # path in the build's summary, name, unit
    ("metrics.metrics.width", "width", "um"),
    ("metrics.metrics.height", "height", "um"),
    ("metrics.metrics.total_area", "area", "um2"),
    ("placement.core_utilisation", "share of the core used by modules", ""),
    ("routing.total_wire_length", "length of routed wires", "um"),
    ("routing.via_count", "vias of routed wires", ""),
    ("routing.total_nets", "nets", ""),
    ("routing.routed", "routed nets", ""),
    ("constraints.obeyed", "constraints obeyed", ""),
    ("drc.total_violations", "violations of design rules", ""),
    ("review.must", "findings that must be mended", ""),
    ("review.should", "findings that should be mended", ""),
)
_VERDICTS = (  # path in the build's summary, name
    ("drc.passed", "DRC clean"),
    ("lvs.matched", "LVS matched"),
    ("lvs.verdict", "LVS verdict"),
    ("review.would_sign", "an engineer would sign"),
)


class Side(NamedTuple):
    """One of the two layouts.

    ``summary`` is the build's ``summary.json`` and ``circuit`` the devices of ``circuit.json``; both are empty where
    they are missing or belong to another layout.
    """

    cell: kdb.Cell
    summary: Mapping[str, Any]
    circuit: Mapping[str, Mapping[str, Any]]


class Shapes(NamedTuple):
    """The shapes of one layer that only one side has; both regions have the database unit of the first layout."""

    layer: str
    before_um2: float
    after_um2: float
    only_before: kdb.Region
    only_after: kdb.Region


def shape_differences(before: kdb.Cell, after: kdb.Cell, technology: Technology | None) -> list[Shapes]:
    """Return the layers whose flattened shapes differ, lowest first. Both layouts must have one database unit."""
    names = {spec.gds: spec.name for spec in technology.layers.values()} if technology else {}
    order = {gds: number for number, gds in enumerate(names)}
    used = {(info.layer, info.datatype) for cell in (before, after) for info in sorted_layers(cell.layout())}
    found = []
    dbu = before.layout().dbu
    for gds in sorted(used, key=lambda each: (order.get(each, len(order)), each)):
        first, second = (_flat(cell, gds) for cell in (before, after))
        only_before, only_after = first - second, second - first
        if only_before.is_empty() and only_after.is_empty():
            continue
        old, new = (round(region.area() * dbu * dbu, 4) for region in (first, second))
        found.append(Shapes(names.get(gds, f"{gds[0]}/{gds[1]}"), old, new, only_before, only_after))
    return found


def compare(before: Side, after: Side, shapes: Sequence[Shapes]) -> dict[str, Any]:
    """Return what differs: ``layers``, ``figures``, ``devices``, ``verdicts``, ``findings`` and ``words``. [um, um2]"""
    dbu = before.cell.layout().dbu
    layers = [
        {
            "layer": each.layer,
            "before": each.before_um2,
            "after": each.after_um2,
            "only_before": round(each.only_before.area() * dbu * dbu, 4),
            "only_after": round(each.only_after.area() * dbu * dbu, 4),
        }
        for each in shapes
    ]
    result: dict[str, Any] = {
        "same_shapes": not shapes,
        "layers": layers,
        "figures": list(_figures(before, after)),
        "devices": list(_devices(before, after)),
        "verdicts": list(_verdicts(before.summary, after.summary)),
        "findings": _findings(before.summary, after.summary),
    }
    return {**result, "words": list(_words(result))}


def picture(
    before: kdb.Cell, after: kdb.Cell, technology: Technology | None, shapes: Sequence[Shapes], view: ViewOptions
) -> tuple[Picture, int]:
    """Return a picture with both layouts beside each other at one scale, and how many places are marked as different.

    Nothing is marked where more than ``MOST_MARKERS`` places or ``MOST_MARKED`` of the area differ: these are two
    different layouts.
    """
    width, height = (
        max(1.0, *(getattr(cell.dbbox(), side)() for cell in (before, after))) * 1.03 for side in ("width", "height")
    )
    changed = kdb.Region()
    for each in shapes:
        changed += each.only_before + each.only_after
    dbu = before.layout().dbu
    margin = round(_MARGIN_UM / dbu)
    places = changed.sized(margin).merged()
    room = max(cell.bbox().area() for cell in (before, after))
    marked = (
        places if places.count() <= MOST_MARKERS and changed.merged().area() <= MOST_MARKED * room else kdb.Region()
    )
    markers = [Marker("different", (spot.to_dtype(dbu),), spot.bbox().to_dtype(dbu)) for spot in marked.each()]
    halves = []
    for name, cell in (("before", before), ("after", after)):
        centre = cell.dbbox().center()
        region = (centre.x - width / 2, centre.y - height / 2, centre.x + width / 2, centre.y + height / 2)
        box = cell.dbbox()
        size = "empty" if box.empty() else f"{box.width():.6g} x {box.height():.6g} um"
        title = f"{name}: {cell.name}   {size}"
        half = ViewOptions(view.width // 2, view.height, region, view.layers, view.legend, view.labels, title)
        halves.append(render(cell, technology, half, markers))
    return beside(*halves), len(markers)


def _flat(cell: kdb.Cell, gds: tuple[int, int]) -> kdb.Region:
    index = cell.layout().find_layer(*gds)
    return kdb.Region() if index is None else kdb.Region(cell.begin_shapes_rec(index)).merged()


def value_at(summary: Mapping[str, Any], path: str) -> Any:
    """Return the value at a path such as ``routing.via_count``; None where there is none."""
    value: Any = summary
    for name in path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _figures(before: Side, after: Side) -> Iterator[dict[str, Any]]:
    boxes = [side.cell.dbbox() for side in (before, after)]
    drawn = {
        name: [0.0 if box.empty() else getattr(box, name)() for box in boxes] for name in ("width", "height", "area")
    }
    for path, name, unit in _FIGURES:
        values = drawn.get(name) or [value_at(side.summary, path) for side in (before, after)]
        if all(isinstance(value, (int, float)) for value in values):
            first, second = (round(value, 6) for value in values)
            yield {"name": name, "unit": unit, "before": first, "after": second}


def _devices(before: Side, after: Side) -> Iterator[dict[str, Any]]:
    """Yield devices that only one side has, those with other values, and those that were moved."""
    centres = [
        {each["id"]: each["centroid"] for each in value_at(side.summary, "metrics.devices") or ()}
        for side in (before, after)
    ]
    for name in sorted({*before.circuit, *after.circuit}) if before.circuit and after.circuit else ():
        first, second = before.circuit.get(name), after.circuit.get(name)
        if first is None or second is None:
            yield {"device": name, "change": "added" if first is None else "removed"}
            continue
        old, new = _values_of(first), _values_of(second)
        changed = [key for key in sorted({*old, *new}) if old.get(key) != new.get(key)]
        if changed:
            values = [f"{key} {_quantity(key, old.get(key))} to {_quantity(key, new.get(key))}" for key in changed]
            yield {"device": name, "change": "other values", "what": ", ".join(values)}
    for name in sorted({*centres[0]} & {*centres[1]}):
        distance = math.dist(centres[0][name], centres[1][name])
        if distance >= MOVED_UM:
            yield {"device": name, "change": "moved", "distance": round(distance, 3)}


def _values_of(device: Mapping[str, Any]) -> dict[str, Any]:
    stated = {"model": device.get("model"), **(device.get("params") or {})}
    nets = device.get("terminals") or {}
    return {**stated, **{f"terminal {name}": net for name, net in nets.items()}}


def _quantity(key: str, value: object) -> str:
    if value is None:
        return "not stated"
    return f"{value * 1e6:g} um" if key in {"w", "l"} and isinstance(value, (int, float)) else str(value)


def _verdicts(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for path, name in _VERDICTS:
        first, second = value_at(before, path), value_at(after, path)
        if first is not None and second is not None:
            yield {"name": name, "before": first, "after": second}


def _findings(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """Return the findings of the review that are ``new`` or ``mended``, and how many were ``kept``."""
    first, second = (value_at(side, "review.findings") for side in (before, after))
    if first is None or second is None:
        return {"compared": False, "new": [], "mended": [], "kept": 0}
    old, new = ({_identity(each): each for each in found} for found in (first, second))
    return {
        "compared": True,
        "new": [_short(new[key]) for key in new if key not in old],
        "mended": [_short(old[key]) for key in old if key not in new],
        "kept": sum(key in old for key in new),
    }


def _identity(finding: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what a finding is about; one on many nets, such as all joints on a single cut, is about the layout."""
    about = tuple(finding["nets"]) or tuple(finding["devices"])
    return finding["id"], finding["severity"], about if len(about) <= _FEW else ()


def _short(finding: Mapping[str, Any]) -> dict[str, Any]:
    return {key: finding[key] for key in ("id", "severity", "why", "place")}


def _words(result: Mapping[str, Any]) -> Iterator[str]:
    """Yield the differences as sentences; the list is empty if nothing differs."""
    for each in result["verdicts"]:
        if each["before"] != each["after"]:
            yield f"{each['name']}: {_in_words(each['before'])} before, {_in_words(each['after'])} after"
    for kind in ("new", "mended"):
        for each in result["findings"][kind]:
            yield f"{kind} finding {each['id']} ({each['severity']}): {each['why']}"
    yield from _device_words(result["devices"])
    for each in result["figures"]:
        first, second = each["before"], each["after"]
        if first != second:
            share = f" ({(second - first) / abs(first):+.1%})" if first else ""
            unit = f" {each['unit']}" if each["unit"] else ""
            yield f"{each['name']}: {first:g}{unit} before, {second:g}{unit} after{share}"
    if result["layers"]:
        yield "other shapes on " + ", ".join(each["layer"] for each in result["layers"])


def _device_words(devices: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for change in ("added", "removed"):
        if names := [each["device"] for each in devices if each["change"] == change]:
            yield f"{change}: {listed(names)}"
    changed = [f"{each['device']} ({each['what']})" for each in devices if each["change"] == "other values"]
    if changed:
        yield f"other values: {listed(changed)}"
    moved = sorted((each for each in devices if each["change"] == "moved"), key=lambda each: -each["distance"])
    if moved:
        distances = [f"{each['device']} by {each['distance']:g} um" for each in moved]
        yield f"moved: {listed(distances)}"


def _in_words(value: object) -> str:
    return {"True": "yes", "False": "no"}.get(str(value), str(value))
