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

from dataclasses import asdict, dataclass
from math import hypot
from typing import TYPE_CHECKING, Any

from layoutkit.errors import DeviceNotFoundError, LayoutkitError, TechnologyError
from layoutkit.layout.cells import check_flat_size

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import klayout.db as kdb

    from layoutkit.technology import Technology

    Gates = Mapping[str, Sequence[kdb.Box]]


@dataclass(frozen=True)
class DeviceMetrics:
    """The channels of a device: their number, their area [um2] and the centre of that area [um]."""

    id: str
    gate_count: int
    gate_area: float
    centroid: tuple[float, float]


@dataclass(frozen=True)
class PairMetrics:
    """Matching of two devices.

    Attributes:
        pair: The two device ids.
        centroid_distance: Distance of the centres of their gate areas. [um]
        area_ratio: Gate area of the first over that of the second.
        matching_score: ``min(r, 1 / r) * (1 - centroid_distance / diagonal)``, where ``r`` is the area ratio over the
            wanted ratio and the diagonal that of the box around all gates of both. 1 is a common centroid and the
            wanted areas; two equal devices side by side come to about one half.
        symmetry_error: Part of their joint gate area that its mirror image about its own centre line (vertical or
            horizontal, whichever is better) does not cover. 0 is exact symmetry.
        wanted_ratio: The area ratio that the devices should have; None where none was stated, which means 1.
    """

    pair: tuple[str, str]
    centroid_distance: float
    area_ratio: float
    matching_score: float
    symmetry_error: float
    wanted_ratio: float | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the pair as JSON data, ``wanted_ratio`` only where it was stated."""
        data = asdict(self) | {"pair": list(self.pair)}
        return {name: value for name, value in data.items() if value is not None}


@dataclass(frozen=True)
class AreaComparison:
    """An area target and the area in the layout. [um2]"""

    name: str
    target: float
    actual: float
    ratio: float


@dataclass(frozen=True)
class WireMetrics:
    """The wires of a conductor: merged area [um2] and half its perimeter, about the length of the wires [um]."""

    layer: str
    area: float
    length: float


@dataclass(frozen=True)
class LayoutMetrics:
    """The metrics of a layout; areas in um2, lengths in um.

    ``straps`` are the losses of sources and drains, as ``layoutkit.extract.strap_loss`` measures them, and
    ``currents`` the verdicts on nets whose currents were stated.
    """

    cell_name: str
    total_area: float
    active_area: float
    utilization: float
    aspect_ratio: float
    width: float
    height: float
    devices: tuple[DeviceMetrics, ...]
    pairs: tuple[PairMetrics, ...]
    areas: tuple[AreaComparison, ...]
    wires: tuple[WireMetrics, ...]
    groups: tuple[Mapping[str, Any], ...] = ()
    straps: tuple[dict[str, Any], ...] = ()
    currents: tuple[dict[str, Any], ...] = ()
    """Figures of matched groups; see ``matched_groups.MatchingReport``."""
    notes: tuple[str, ...] = ()
    """What was not measured, and why."""

    def to_json(self) -> dict[str, Any]:
        """Return the metrics in the form of the answer of ``eval.compute_metrics``."""
        basic = ("total_area", "active_area", "utilization", "aspect_ratio", "width", "height")
        compared = [asdict(area) for area in self.areas]
        main = next(
            (area for area in compared if area["name"] in ("total", "total_area")), compared[0] if compared else None
        )
        return {
            "cell_name": self.cell_name,
            "metrics": {name: getattr(self, name) for name in basic} | {"device_count": len(self.devices)},
            "matching_metrics": [pair.to_json() for pair in self.pairs],
            "matched_groups": [dict(group) for group in self.groups],
            "area_comparison": None if main is None else {key: main[key] for key in ("target", "actual", "ratio")},
            "area_comparisons": compared,
            "devices": [asdict(device) | {"centroid": list(device.centroid)} for device in self.devices],
            "wires": [asdict(wire) for wire in self.wires],
            "straps": list(self.straps),
            **({"currents": list(self.currents)} if self.currents else {}),
        }


def compute(
    cell: kdb.Cell,
    technology: Technology,
    gates: Gates,
    *,
    matched_pairs: Iterable[tuple[str, str] | tuple[str, str, float]] = (),
    area_targets: Mapping[str, float] | None = None,
) -> LayoutMetrics:
    """Return the metrics of ``cell`` and everything below it.

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
    return LayoutMetrics(
        cell_name=cell.name,
        total_area=_rounded(total),
        active_area=_rounded(active),
        utilization=_rounded(active / total),
        aspect_ratio=_rounded(box.width() / box.height()),
        width=_rounded(box.width() * dbu_um),
        height=_rounded(box.height() * dbu_um),
        devices=tuple(_device(name, gates[name], dbu_um) for name in sorted(gates)),
        pairs=tuple(_pair(gates, dbu_um, *pair) for pair in matched_pairs),
        areas=tuple(_area(name, target, named_areas) for name, target in sorted((area_targets or {}).items())),
        wires=tuple(_wires(cell, technology)),
    )


def _layer(technology: Technology, role: str) -> str:
    name = technology.role(role)
    if name is None:
        raise TechnologyError(f"technology {technology.name} has no layer for the role '{role}'")
    return name


def _region(cell: kdb.Cell, technology: Technology, role: str) -> kdb.Region:
    return technology.region(cell, _layer(technology, role))


def _active(cell: kdb.Cell, technology: Technology) -> kdb.Region:
    """Return all diffusion, taps included, merged."""
    region = _region(cell, technology, "active")
    if technology.role("tap") is not None:
        region += _region(cell, technology, "tap")
    return region.merged()


def _centroid(boxes: Sequence[kdb.Box]) -> tuple[float, float]:
    """Return the centre of the area of ``boxes``. [dbu]"""
    area = sum(box.area() for box in boxes)
    x = sum(box.area() * (box.left + box.right) for box in boxes) / (2 * area)
    y = sum(box.area() * (box.bottom + box.top) for box in boxes) / (2 * area)
    return x, y


def _device(name: str, boxes: Sequence[kdb.Box], dbu_um: float) -> DeviceMetrics:
    x, y = _centroid(boxes)
    return DeviceMetrics(
        id=name,
        gate_count=len(boxes),
        gate_area=_rounded(sum(box.area() for box in boxes) * dbu_um**2),
        centroid=(_rounded(x * dbu_um), _rounded(y * dbu_um)),
    )


def _pair(gates: Gates, dbu_um: float, first: str, second: str, wanted: float | None = None) -> PairMetrics:
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
    extent = _bounding_box([*ours, *theirs])
    ratio = sum(box.area() for box in ours) / sum(box.area() for box in theirs)
    of_wanted = ratio / (wanted or 1)
    nearness = 1 - distance / hypot(extent.width(), extent.height())
    return PairMetrics(
        pair=(first, second),
        centroid_distance=_rounded(distance * dbu_um),
        area_ratio=_rounded(ratio),
        matching_score=_rounded(min(of_wanted, 1 / of_wanted) * nearness),
        symmetry_error=_rounded(_symmetry_error([*ours, *theirs])),
        wanted_ratio=wanted,
    )


def _symmetry_error(boxes: Sequence[kdb.Box]) -> float:
    import klayout.db as kdb

    extent = _bounding_box(boxes)
    whole = kdb.Region()
    for box in boxes:
        whole.insert(box)
    whole.merge()
    across = kdb.Trans(2, True, extent.left + extent.right, 0)  # x -> left + right - x
    along = kdb.Trans(0, True, 0, extent.bottom + extent.top)
    return min(float((whole - whole.transformed(mirror)).area()) / whole.area() for mirror in (across, along))


def _bounding_box(boxes: Sequence[kdb.Box]) -> kdb.Box:
    extent = boxes[0]
    for box in boxes[1:]:
        extent = extent + box
    return extent


def _named_areas(cell: kdb.Cell, gates: Gates) -> dict[str, float]:
    """Return the areas [um2] that an area target may name, except "total" and "active"."""
    layout = cell.layout()
    areas = {
        layout.cell(index).name: layout.cell(index).bbox().area() * layout.dbu**2
        for index in {cell.cell_index(), *cell.called_cells()}
    }
    return areas | {name: sum(box.area() for box in boxes) * layout.dbu**2 for name, boxes in gates.items()}


def _area(name: str, target: float, named_areas: Mapping[str, float]) -> AreaComparison:
    if name not in named_areas:
        known = sorted(named_areas)
        raise LayoutkitError(
            f"area_targets: there is no '{name}'; use one of: {', '.join(known)}",
            details={"param_name": "area_targets", "provided_value": name, "available": known},
        )
    actual = named_areas[name]
    return AreaComparison(name=name, target=target, actual=_rounded(actual), ratio=_rounded(actual / target))


def _wires(cell: kdb.Cell, technology: Technology) -> Iterable[WireMetrics]:
    layout = cell.layout()
    for conductor in technology.conductors:
        metal = technology.region(cell, conductor.layer).merged()
        if not metal.is_empty():
            area, length = metal.area() * layout.dbu**2, metal.perimeter() / 2 * layout.dbu
            yield WireMetrics(layer=conductor.name, area=_rounded(area), length=_rounded(length))


def _rounded(value: float) -> float:
    """Return ``value`` rounded to six decimals."""
    return round(value, 6)
