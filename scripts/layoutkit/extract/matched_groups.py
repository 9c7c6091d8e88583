"""Measure how equal the devices of a matched group are in a layout: positions, junctions, stress and surroundings.

Texts in the channels name the devices; nets and sizes come from extraction. All figures are measured on the finished
layout, with its wires and neighbours; none comes from the generators.

Where the circuit is known, it says which end of a channel is the drain. Otherwise the drain is the end on the gate's
net; if there is none, the end on a net that not all devices of the group share.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from math import hypot, sqrt
from typing import TYPE_CHECKING, Any

import klayout.db as kdb

from layoutkit.errors import DeviceNotFoundError
from layoutkit.extract.extracted import SourceDrain, latched_nets
from layoutkit.extract.predicted_offset import MeasuredDevice, predicted_offset
from layoutkit.extract.surroundings import equivalent_distances, mirror_image

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from layoutkit.extract.extracted import DrawnFinger, Extraction
    from layoutkit.extract.strap_loss import FingerLoss
    from layoutkit.extract.surroundings import ChannelSurroundings
    from layoutkit.technology import DeviceSpec

EQUAL_AREAS_PERCENT = 1.0
"""Largest spread of areas and perimeters of source and drain, per width, that counts as equal. [%]"""
EQUAL_DISTANCES_PERCENT = 2.0
"""Largest spread of sa and sb, finger by finger, that counts as equal. [%]"""
_AREAS = ("ad_um2", "as_um2", "pd_um", "ps_um")


@dataclass(frozen=True)
class MeasuredGroup:
    """Devices that should be equal, or in the ratio of their widths.

    Attributes:
        devices: Their ids; the reference first.
        name: What the report calls the group.
        drains: Number of the net of each device's drain, where the circuit is known.
    """

    devices: tuple[str, ...]
    name: str = ""
    drains: Mapping[str, int] = field(default_factory=dict)


class MatchingReport:
    """Measures matched groups of one layout.

    Args:
        extraction: What was extracted from ``cell``.
        cell: The layout.
        straps: What the metal on sources and drains costs each finger of ``cell``.
    """

    def __init__(self, extraction: Extraction, cell: kdb.Cell, straps: Iterable[FingerLoss]) -> None:
        self.extraction = extraction
        self.straps = {str(finger.box): finger for finger in straps}
        self.cell = cell
        self.dbu_um = cell.layout().dbu
        self.fingers: dict[str, list[DrawnFinger]] = {}
        self.on_diffusion: dict[int, list[tuple[ChannelSurroundings, DrawnFinger]]] = {}
        for finger in extraction.fingers:
            if finger.around is None:
                continue
            if finger.text:
                self.fingers.setdefault(finger.text, []).append(finger)
            self.on_diffusion.setdefault(finger.around.diffusion, []).append((finger.around, finger))

    def measure(self, groups: Iterable[MeasuredGroup]) -> list[dict[str, Any]]:
        """Return the figures of each group as JSON data.

        Raises:
            DeviceNotFoundError: If a group names a device that has no channels in the layout.
        """
        return [self._group(group) for group in groups]

    def _group(self, group: MeasuredGroup) -> dict[str, Any]:
        missing = [name for name in group.devices if name not in self.fingers]
        if missing:
            available = sorted(self.fingers)
            raise DeviceNotFoundError(
                f"Device '{missing[0]}' has no transistor in the layout; it has: {', '.join(available) or 'none'}",
                details={"param_name": "matched_groups", "provided_value": missing, "available_devices": available},
            )
        parts = {name: _Part(name, self.fingers[name]) for name in group.devices}
        roles = _Roles(parts, group.drains)
        devices = [self._device(part, roles) for part in parts.values()]
        for device in devices:
            device["drain_with_dummies_um2"] = self._drain_with_dummies(roles.drain[device["id"]], parts)
        centres = [part.centre for part in parts.values()]
        channels = {place.box: part.name for part in parts.values() for place in part.places}
        idle = {place.box for place, finger in self._beside(parts) if finger.text not in parts}
        image = mirror_image(self.cell, self.extraction.technology, channels, idle)
        return {
            "name": group.name or "_".join(group.devices),
            "devices": devices,
            "centroid_error_x_um": round((max(x for x, _ in centres) - min(x for x, _ in centres)) * self.dbu_um, 6),
            "centroid_error_y_um": round((max(y for _, y in centres) - min(y for _, y in centres)) * self.dbu_um, 6),
            **_spreads(devices, list(parts.values())),
            **image.to_json(),
            "predicted_offsets": [
                self._offset([parts[name] for name in names], roles) for names in _electrical(parts, roles)
            ],
        }

    def _beside(self, parts: Mapping[str, _Part]) -> list[tuple[ChannelSurroundings, DrawnFinger]]:
        """Return all channels on the diffusions of a group."""
        numbers = sorted({place.diffusion for part in parts.values() for place in part.places})
        return [entry for number in numbers for entry in self.on_diffusion[number]]

    def _device(self, part: _Part, roles: _Roles) -> dict[str, Any]:
        x, y = part.centre
        sa_um, sb_um = equivalent_distances(part.places, part.l_um)
        drain, source = roles.junction(part, "drain"), roles.junction(part, "source")
        wells = [place.well_um for place in part.places if place.well_um is not None]
        return {
            "id": part.name,
            "fingers": len(part.fingers),
            "w_um": round(part.w_um, 6),
            "l_um": part.l_um,
            "centroid": [round(x * self.dbu_um, 6), round(y * self.dbu_um, 6)],
            "dispersion_um": round(part.dispersion * self.dbu_um, 6),
            "ad_um2": round(drain.area_um2, 6),
            "as_um2": round(source.area_um2, 6),
            "pd_um": round(drain.perimeter_um, 6),
            "ps_um": round(source.perimeter_um, 6),
            "sa_um": sa_um,
            "sb_um": sb_um,
            "s_per_um": round(part.stress, 6),
            "distances": [
                {"near_um": near, "far_um": far, "fingers": count} for (near, far), count in part.distances.items()
            ],
            "current": self._current(part, roles),
            "well_um": min(wells) if wells else None,
            "dummies": self._dummies(part),
            "metal_above": self._metal_above(part),
            **self._straps(part, roles),
        }

    def _drain_with_dummies(self, net: int, parts: Mapping[str, _Part]) -> float:
        """Return the area of a drain's net on the diffusions of a group, the shares of dummies included. [um2]"""
        areas = (
            share.area_um2
            for _, finger in self._beside(parts)
            for terminal, share in finger.junctions.items()
            if finger.nets[terminal] == net
        )
        return round(sum(areas), 6)

    def _drains_after(self, part: _Part, roles: _Roles) -> list[bool]:
        """Return of each finger whether the drain lies right of the channel, or above it."""
        net = roles.drain[part.name]
        layer = "n_sd" if part.spec(self.extraction).type == "nmos" else "p_sd"
        drains = kdb.Shapes()
        drains.insert(self.extraction.shapes(net, layer))
        after = []
        for place in part.places:
            box, point = place.box, place.box.center()
            beside = kdb.Point(point.x, box.top + 2) if place.vertical else kdb.Point(box.right + 2, point.y)
            found = (shape.polygon for shape in drains.each_touching(kdb.Box(beside, beside)))
            after.append(any(polygon.inside(beside) for polygon in found))
        return after

    def _current(self, part: _Part, roles: _Roles) -> dict[str, Any]:
        """Return the axis of the current, and of how many fingers the drain lies right of (above) the channel."""
        after = sum(self._drains_after(part, roles))
        axes = {"y" if place.vertical else "x" for place in part.places}
        return {
            "axis": axes.pop() if len(axes) == 1 else "both",
            "forward": after,
            "backward": len(part.places) - after,
        }

    def _straps(self, part: _Part, roles: _Roles) -> dict[str, float | None]:
        """Return the mean resistance of the metal on the sources and drains of a device's fingers. [ohm]"""
        sources, drains = [], []
        for place, right in zip(part.places, self._drains_after(part, roles), strict=True):
            finger = self.straps.get(str(place.box))
            if finger is None or finger.left.ohm is None or finger.right.ohm is None:
                return {"strap_source_ohm": None, "strap_drain_ohm": None}
            sources.append(finger.left.ohm if right else finger.right.ohm)
            drains.append(finger.right.ohm if right else finger.left.ohm)
        means = [round(sum(ohms) / len(ohms), 6) for ohms in (sources, drains)]
        return {"strap_source_ohm": means[0], "strap_drain_ohm": means[1]}

    def _dummies(self, part: _Part) -> int:
        """Return the smallest number of dummies at an end of the diffusions that the device is on."""
        found = []
        for number in sorted({place.diffusion for place in part.places}):
            row = sorted(self.on_diffusion[number], key=lambda entry: (entry[0].box.left, entry[0].box.bottom))
            texts = [finger.text for _, finger in row]
            first = next(index for index, text in enumerate(texts) if text)
            last = next(index for index, text in enumerate(reversed(texts)) if text)
            found.append(min(first, last))
        return min(found)

    def _metal_above(self, part: _Part) -> dict[str, float]:
        """Return the part of the gate area that each conductor covers. [%]"""
        technology, layout = self.extraction.technology, self.cell.layout()
        gates = kdb.Region([kdb.Polygon(place.box) for place in part.places])
        covered = {}
        for conductor in technology.conductors:
            spec = technology.spec(conductor.layer)
            metal = kdb.Region()
            for name in (spec.name, *spec.fill):
                index = layout.find_layer(*technology.spec(name).gds)
                if index is not None:
                    for place in part.places:
                        metal += kdb.Region(self.cell.begin_shapes_rec_touching(index, place.box)) & kdb.Region(
                            place.box
                        )
            covered[conductor.name] = round(100 * metal.merged().area() / gates.area(), 3)
        return covered

    def _offset(self, parts: Sequence[_Part], roles: _Roles) -> dict[str, Any]:
        spec = parts[0].spec(self.extraction)
        mirror = len({part.nets["g"] for part in parts}) == 1
        drains = [roles.drain[part.name] for part in parts]
        measured = [
            MeasuredDevice(
                id=part.name,
                width_um=part.fingers[0].w_um,
                total_width_um=part.w_um,
                length_um=part.l_um,
                stress=part.stress,
                junction_ff=self.junction_ff.get(drain),
                saturation_ma=self._saturation_ma(part),
                **self._straps(part, roles),
            )
            for part, drain in zip(parts, drains, strict=True)
        ]
        x, y = parts[0].centre
        apart_um = round(max(hypot(part.centre[0] - x, part.centre[1] - y) for part in parts) * self.dbu_um, 6)
        clocked = frozenset(drains) in self._latched
        return predicted_offset(spec, measured, mirror=mirror, clocked=clocked, apart_um=apart_um)

    def _saturation_ma(self, part: _Part) -> float | None:
        """Return the saturation current of one finger, which falls with its length; None if none is stated. [mA]"""
        spec = part.spec(self.extraction)
        if not spec.saturation_ma_um:
            return None
        shortest_um = self.extraction.technology.to_um(spec.min_l)
        return spec.saturation_ma_um * part.fingers[0].w_um * shortest_um / part.l_um

    @cached_property
    def junction_ff(self) -> dict[int, float]:
        """Capacitance of the junctions on each net, of all devices and dummies. [fF]"""
        found: dict[int, float] = {}
        for finger in self.extraction.fingers:
            spec = self.extraction.technology.devices.get(finger.device)
            data = None if spec is None else spec.matching.junction
            if data is None:
                continue
            for terminal, share in finger.junctions.items():
                value = data.capacitance_ff(share.area_um2, share.perimeter_um, finger.w_um)
                found[finger.nets[terminal]] = found.get(finger.nets[terminal], 0.0) + value
        return found

    @cached_property
    def _latched(self) -> set[frozenset[int]]:
        return latched_nets(self.extraction.devices)


@dataclass(frozen=True)
class _Part:
    """The fingers of one device of a group."""

    name: str
    fingers: Sequence[DrawnFinger]

    @cached_property
    def places(self) -> list[ChannelSurroundings]:
        return [finger.around for finger in self.fingers if finger.around is not None]

    @property
    def nets(self) -> Mapping[str, int]:
        return self.fingers[0].nets

    @property
    def l_um(self) -> float:
        return self.fingers[0].l_um

    @property
    def w_um(self) -> float:
        return sum(finger.w_um for finger in self.fingers)

    @property
    def stress(self) -> float:
        """Mean of S over the fingers. [1/um]"""
        return sum(place.stress(self.l_um) for place in self.places) / len(self.places)

    @property
    def centre(self) -> tuple[float, float]:
        """Centre of the area of the channels. [dbu]"""
        boxes = [place.box for place in self.places]
        area = sum(box.area() for box in boxes)
        x = sum(box.area() * (box.left + box.right) for box in boxes) / (2 * area)
        return x, sum(box.area() * (box.bottom + box.top) for box in boxes) / (2 * area)

    @property
    def dispersion(self) -> float:
        """Root mean square of the distance of the channels from their centre. [dbu]"""
        x, y = self.centre
        middles = [
            ((place.box.left + place.box.right) / 2, (place.box.bottom + place.box.top) / 2) for place in self.places
        ]
        return sqrt(sum(hypot(a - x, b - y) ** 2 for a, b in middles) / len(middles))

    @property
    def distances(self) -> dict[tuple[float, float], int]:
        """Number of fingers by their smaller and larger distance to the ends of the diffusion. [um]"""
        pairs = Counter((min(p.sa_um, p.sb_um), max(p.sa_um, p.sb_um)) for p in self.places)
        return dict(sorted(pairs.items()))

    def spec(self, extraction: Extraction) -> DeviceSpec:
        return extraction.technology.devices[self.fingers[0].device]


class _Roles:
    """Which net is the drain of each device of a group, and which its source."""

    def __init__(self, parts: Mapping[str, _Part], drains: Mapping[str, int]) -> None:
        shared = set.intersection(*({part.nets["s"], part.nets["d"]} for part in parts.values()))
        self.drain: dict[str, int] = {}
        self.source: dict[str, int] = {}
        for part in parts.values():
            ends = [part.nets["d"], part.nets["s"]]
            wanted = [net for net in ends if net == drains.get(part.name)]
            wanted += [net for net in ends if net == part.nets["g"]]
            wanted += [net for net in ends if net not in shared]
            drain = [*wanted, ends[0]][0]
            self.drain[part.name] = drain
            self.source[part.name] = ends[1] if drain == ends[0] else ends[0]

    def junction(self, part: _Part, role: str) -> SourceDrain:
        """Return area and perimeter of the drain or the source, of all fingers."""
        net = self.drain[part.name] if role == "drain" else self.source[part.name]
        total = SourceDrain(0.0, 0.0)
        for finger in part.fingers:
            both = finger.nets["s"] == finger.nets["d"]
            terminal = {"drain": "d", "source": "s"}[role] if both else "d" if finger.nets["d"] == net else "s"
            total += finger.junctions[terminal]
        return total


def _spreads(devices: Sequence[Mapping[str, Any]], parts: Sequence[_Part]) -> dict[str, Any]:
    """Return how much the figures of the devices differ, and whether they count as equal."""
    spread = {f"{name}_percent": _spread([device[name] / device["w_um"] for device in devices]) for name in _AREAS}
    spread["drain_with_dummies_percent"] = _spread([each["drain_with_dummies_um2"] / each["w_um"] for each in devices])
    spread["s_percent"] = _spread([device["s_per_um"] for device in devices])
    distances = _distance_spread(parts)
    wells = [device["well_um"] for device in devices]
    metals = [device["metal_above"] for device in devices]
    axes = {device["current"]["axis"] for device in devices}
    directions = {round(device["current"]["forward"] / device["fingers"], 6) for device in devices}
    return {
        "spread": spread,
        "distances_spread_percent": distances,
        "equal": {
            "areas": all(spread[f"{name}_percent"] <= EQUAL_AREAS_PERCENT for name in _AREAS),
            "drains_with_dummies": spread["drain_with_dummies_percent"] <= EQUAL_AREAS_PERCENT,
            "distances": distances is not None and distances <= EQUAL_DISTANCES_PERCENT,
            "current_direction": len(axes) == 1 and len(directions) == 1,
            "well_distance": len(set(wells)) == 1,
            "dummies": len({device["dummies"] for device in devices}) == 1,
            "metal_above": all(metal == metals[0] for metal in metals),
        },
    }


def _distance_spread(parts: Sequence[_Part]) -> float | None:
    """Return the largest difference of the distances of two devices, finger by finger, in percent of their mean.

    Devices with several times as many fingers are compared as if each finger of the other stood several times. None if
    the numbers of fingers allow no such comparison.
    """
    most = max(len(part.places) for part in parts)
    if any(most % len(part.places) for part in parts):
        return None
    columns = []
    for part in parts:
        times = most // len(part.places)
        columns.append([pair for pair, count in part.distances.items() for _ in range(count * times)])
    return max(_spread([pair[side] for pair in fingers]) for fingers in zip(*columns, strict=True) for side in (0, 1))


def _spread(values: Sequence[float]) -> float:
    """Return the difference of the largest and the smallest value in percent of their mean."""
    mean = sum(values) / len(values)
    return round(100 * (max(values) - min(values)) / mean, 4) if mean else 0.0


def _electrical(parts: Mapping[str, _Part], roles: _Roles) -> list[list[str]]:
    """Return the sets of devices of one type whose currents or gate voltages should agree, each in the group's order.

    Devices on one gate and one source net are a mirror; of the others those with one source net, and then those left,
    are pairs.
    """
    found: list[list[str]] = []
    left = list(parts)
    for key in (
        lambda name: (parts[name].fingers[0].device, parts[name].nets["g"], roles.source[name]),
        lambda name: (parts[name].fingers[0].device, parts[name].nets["g"]),
        lambda name: (parts[name].fingers[0].device, roles.source[name]),
        lambda name: (parts[name].fingers[0].device,),
    ):
        sets: dict[Any, list[str]] = {}
        for name in left:
            sets.setdefault(key(name), []).append(name)
        found += [names for names in sets.values() if len(names) > 1]
        left = [name for names in sets.values() if len(names) == 1 for name in names]
    return found
