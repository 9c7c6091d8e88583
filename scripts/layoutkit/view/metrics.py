"""Measure a layout: its size, its wires and how well matched devices match, from the geometry alone.

The layout itself states which gate belongs to which device: the generators write the device's id on the technology's
``device_text`` layer inside each channel (the overlap of poly and active)::

        poly
       +----+
    +--|    |--+
    |  | M1 |  |  active       the text "M1" makes this channel one of M1's
    +--|    |--+
       +----+

Channels without a text (dummies) belong to no device.
"""

from __future__ import annotations

from math import hypot
from typing import TYPE_CHECKING, Any

import klayout.db as kdb

from layoutkit.errors import DeviceNotFoundError, LayoutkitError, TechnologyError
from layoutkit.layout.cells import check_flat_size

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from layoutkit.technology import Technology

    Gates = Mapping[str, Sequence[kdb.Box]]


def compute(
    cell: kdb.Cell,
    technology: Technology,
    gates: Gates,
    *,
    matched_pairs: Iterable[tuple[str, str] | tuple[str, str, float]] = (),
    area_targets: Mapping[str, float] | None = None,
) -> dict[str, Any]:
    """Return the metrics of ``cell`` and everything below it, in the form of the answer of ``eval.compute_metrics``.

    Lengths are in micrometres, areas in square micrometres. ``wires`` has the merged area of each conductor and half
    its perimeter, about the length of its wires. ``straps`` and ``matched_groups`` are left for the caller.

    Args:
        cell: What to measure; its layout must be kept referenced.
        technology: Defines the active and conductor layers.
        gates: Channels of each device in ``cell``'s coordinates, as ``labelled_gates`` finds them. [dbu]
        matched_pairs: Pairs of device ids that should match, perhaps with the wanted ratio of their gate areas.
        area_targets: Wanted areas [um2] of "total", "active", a device (its gate area) or a cell (its bounding box).

    Raises:
        LayoutkitError: If the cell is empty, or an area target has an unknown name.
        DeviceNotFoundError: If a pair names a device without gates; the message lists the devices with gates.
    """
    box = cell.bbox()
    if box.empty() or not box.area():
        raise LayoutkitError(f"cell '{cell.name}' is empty; there is nothing to measure")
    check_flat_size(cell)
    dbu_um = cell.layout().dbu
    total = box.area() * dbu_um**2
    active = _active(cell, technology).area() * dbu_um**2
    named_areas = _named_areas(cell, gates) | {"total": total, "total_area": total}
    named_areas |= {"active": active, "active_area": active}
    compared = [_area(name, target, named_areas) for name, target in sorted((area_targets or {}).items())]
    main = next((each for each in compared if each["name"] in ("total", "total_area")), next(iter(compared), None))
    return {
        "cell_name": cell.name,
        "metrics": {
            "total_area": round(total, 6),
            "active_area": round(active, 6),
            "utilization": round(active / total, 6),
            "aspect_ratio": round(box.width() / box.height(), 6),
            "width": round(box.width() * dbu_um, 6),
            "height": round(box.height() * dbu_um, 6),
            "device_count": len(gates),
        },
        "matching_metrics": [_pair(gates, dbu_um, *pair) for pair in matched_pairs],
        "matched_groups": [],
        "area_comparison": main and {key: main[key] for key in ("target", "actual", "ratio")},
        "area_comparisons": compared,
        "devices": [_device(name, gates[name], dbu_um) for name in sorted(gates)],
        "wires": list(_wires(cell, technology)),
        "straps": [],
    }


def _layer(technology: Technology, role: str) -> str:
    name = technology.role(role)
    if name is None:
        raise TechnologyError(f"technology {technology.name} has no layer for the role '{role}'")
    return name


def _active(cell: kdb.Cell, technology: Technology) -> kdb.Region:
    """Return all diffusion, taps included, merged."""
    region = technology.region(cell, _layer(technology, "active"))
    tap = technology.role("tap")
    return (region if tap is None else region + technology.region(cell, tap)).merged()


def _centroid(boxes: Sequence[kdb.Box]) -> tuple[float, float]:
    """Return the centre of the area of ``boxes``. [dbu]"""
    area = sum(box.area() for box in boxes)
    x = sum(box.area() * (box.left + box.right) for box in boxes) / (2 * area)
    y = sum(box.area() * (box.bottom + box.top) for box in boxes) / (2 * area)
    return x, y


def _device(name: str, boxes: Sequence[kdb.Box], dbu_um: float) -> dict[str, Any]:
    return {
        "id": name,
        "gate_count": len(boxes),
        "gate_area": round(sum(box.area() for box in boxes) * dbu_um**2, 6),
        "centroid": [round(place * dbu_um, 6) for place in _centroid(boxes)],
    }


def _pair(gates: Gates, dbu_um: float, first: str, second: str, wanted: float | None = None) -> dict[str, Any]:
    """Return how well two devices match.

    ``matching_score`` is ``min(r, 1 / r) * (1 - centroid_distance / diagonal)``, where ``r`` is the area ratio over the
    wanted ratio and the diagonal that of the box around all gates of both. 1 is a common centroid and the wanted
    areas; two equal devices side by side come to about one half. ``symmetry_error`` is the part of their joint gate
    area that its mirror image about its own centre line (vertical or horizontal, whichever is better) does not cover.
    ``wanted_ratio`` is there only where it was stated; else it is 1.
    """
    for name in (first, second):
        if not gates.get(name):
            available = sorted(gates)
            raise DeviceNotFoundError(
                f"Device '{name}' not found in the layout; it has: {', '.join(available) or 'no labelled devices'}",
                details={"param_name": "matched_pairs", "provided_value": name, "available_devices": available},
            )
    ours, theirs = gates[first], gates[second]
    (x1, y1), (x2, y2) = _centroid(ours), _centroid(theirs)
    distance = hypot(x1 - x2, y1 - y2)
    extent = sum([*ours, *theirs], kdb.Box())
    ratio = sum(box.area() for box in ours) / sum(box.area() for box in theirs)
    of_wanted = ratio / (wanted or 1)
    nearness = 1 - distance / hypot(extent.width(), extent.height())
    return {
        "pair": [first, second],
        "centroid_distance": round(distance * dbu_um, 6),
        "area_ratio": round(ratio, 6),
        "matching_score": round(min(of_wanted, 1 / of_wanted) * nearness, 6),
        "symmetry_error": round(_symmetry_error([*ours, *theirs]), 6),
        **({} if wanted is None else {"wanted_ratio": wanted}),
    }


def _symmetry_error(boxes: Sequence[kdb.Box]) -> float:
    extent = sum(boxes, kdb.Box())
    whole = kdb.Region([kdb.Polygon(box) for box in boxes]).merged()
    across = kdb.Trans(2, True, extent.left + extent.right, 0)  # x -> left + right - x
    along = kdb.Trans(0, True, 0, extent.bottom + extent.top)
    return min(float((whole - whole.transformed(mirror)).area()) / whole.area() for mirror in (across, along))


def _named_areas(cell: kdb.Cell, gates: Gates) -> dict[str, float]:
    """Return the areas [um2] that an area target may name, except "total" and "active"."""
    layout = cell.layout()
    areas = {
        layout.cell(index).name: layout.cell(index).bbox().area() * layout.dbu**2
        for index in {cell.cell_index(), *cell.called_cells()}
    }
    return areas | {name: sum(box.area() for box in boxes) * layout.dbu**2 for name, boxes in gates.items()}


def _area(name: str, target: float, named_areas: Mapping[str, float]) -> dict[str, Any]:
    if name not in named_areas:
        known = sorted(named_areas)
        raise LayoutkitError(
            f"area_targets: there is no '{name}'; use one of: {', '.join(known)}",
            details={"param_name": "area_targets", "provided_value": name, "available": known},
        )
    actual = named_areas[name]
    return {"name": name, "target": target, "actual": round(actual, 6), "ratio": round(actual / target, 6)}


def _wires(cell: kdb.Cell, technology: Technology) -> Iterable[dict[str, Any]]:
    layout = cell.layout()
    for conductor in technology.conductors:
        metal = technology.region(cell, conductor.layer).merged()
        if not metal.is_empty():
            area, length = metal.area() * layout.dbu**2, metal.perimeter() / 2 * layout.dbu
            yield {"layer": conductor.name, "area": round(area, 6), "length": round(length, 6)}
