"""What makes the devices of planned rows differ: centroids, junctions, stress, current direction; and their size.

The figures come from the planned positions of the channels and diffusions, before anything is drawn. The stress figure
is the mean over the fingers of ``S = 1/(sa + L/2) + 1/(sb + L/2)``, with ``sa`` and ``sb`` the distances from the gate
to the two ends of its diffusion (BSIM4.5 manual, chapter 13, stress effect model).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from layoutkit.draw.row import plan_row

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from layoutkit.draw.row import Finger, PlannedRow, Row, RowSizes


class Figures(NamedTuple):
    """How unequal the devices of a group are, and how large the group is.

    Attributes:
        centroid_error_x: Largest distance between two devices' centroids in x. [dbu]
        centroid_error_y: The same in y, with rows at equal distances. [dbu]
        junctions: Largest relative difference of AD, AS, PD or PS per gate width between two devices. [1]
        drain_load: The same of the area on the drain's net, the halves of dummies included. [1]
        drain_depth: That area divided by the gate width, averaged over the devices. It is half a column if two fingers
            share each drain. [dbu]
        drain_span: Distance from the first to the last drain of a device in a row, divided by the length of the rows,
            averaged over devices and rows. Rails of drains are at least as long. [1]
        stress: Mean S of each device. [1/dbu]
        stress_spread: Largest relative difference of it between two devices. [1]
        dispersion: How far the channels of a device lie from their centroid, relative to those of the whole group: the
            smallest of the devices' figures; 1 if all devices are spread like the group. [1]
        one_direction: Whether all devices have the same share of fingers with the source on the left.
        open_ends: Largest difference between two devices in the part of their gate edges that lie at the end of a row,
            with no gate beside them. [1]
        width: Estimate, without a ring. [dbu]
        height: Estimate, without a ring. [dbu]
    """

    centroid_error_x: float
    centroid_error_y: float
    junctions: float
    drain_load: float
    drain_depth: float
    drain_span: float
    stress: Mapping[str, float]
    stress_spread: float
    dispersion: float
    one_direction: bool
    open_ends: float
    width: int
    height: int


@dataclass
class _Device:
    """What the fingers of one device add up to."""

    places: list[tuple[float, float]] = field(default_factory=list)
    stress: float = 0.0
    width: int = 0
    forward: int = 0
    open_edges: int = 0  # those with no gate beside them in the row
    drains: dict[float, list[float]] = field(default_factory=dict)  # places of its drains in each row
    junctions: list[float] = field(default_factory=lambda: [0.0] * 5)  # AD, AS, PD, PS, area that loads the drain


def figures(rows: Sequence[Row], sizes: RowSizes, sources: Mapping[str, str]) -> Figures:
    """Return the figures of the devices in ``rows``, bottom row first.

    Args:
        rows: Rows with their dummies.
        sizes: Lengths that the rows are drawn with.
        sources: Device to the net of its source.
    """
    found: dict[str, _Device] = {}
    planned = [plan_row(row, sizes) for row in rows]
    pitch = max(plan.height for plan in planned) + row_overhead(rows, sizes)
    for number, plan in enumerate(planned):
        _add_row(found, plan, number * pitch, sources)
    centres = {name: _centre(device.places) for name, device in found.items()}
    spread = [_spread(device.places) for device in found.values()]
    whole = _spread([place for device in found.values() for place in device.places])
    stress = {name: device.stress / len(device.places) for name, device in found.items()}
    shares = {device.forward * 1_000_000 // len(device.places) for device in found.values()}
    unequal = [_relative(device.junctions[i] / device.width for device in found.values()) for i in range(5)]
    left = min(plan.left for plan in planned)
    right = max(plan.right for plan in planned)
    return Figures(
        centroid_error_x=_range(centre[0] for centre in centres.values()),
        centroid_error_y=_range(centre[1] for centre in centres.values()),
        junctions=max(unequal[:4]),
        drain_load=unequal[4],
        drain_depth=sum(each.junctions[4] for each in found.values()) / sum(each.width for each in found.values()),
        drain_span=_mean(_range(row) for each in found.values() for row in each.drains.values()) / (right - left),
        stress=stress,
        stress_spread=_relative(stress.values()),
        dispersion=min(spread) / whole if whole else 1.0,
        one_direction=len(shares) == 1,
        open_ends=_range(device.open_edges / (2 * len(device.places)) for device in found.values()),
        width=right - left,
        height=len(rows) * pitch,
    )


def row_overhead(rows: Sequence[Row], sizes: RowSizes) -> int:
    """Return what a row needs above and below its diffusion for gate contacts and gate rails, as an estimate. [dbu]"""
    gates = max(len({finger.gate for finger in row.fingers if finger.device}) for row in rows)
    return (
        2 * sizes.gate_contact_to_active
        + sizes.contact
        + sizes.gate_extension
        + gates * (sizes.rail + sizes.rail_space)
    )


def _add_row(found: dict[str, _Device], plan: PlannedRow, y: int, sources: Mapping[str, str]) -> None:
    islands = sorted(plan.diffusions)
    stripes = plan.stripes
    for i, stripe in enumerate(stripes):
        finger = stripe.finger
        if not finger.device:
            continue
        island = next(d for d in islands if d[0] <= stripe.left and d[2] >= stripe.right)
        device = found.setdefault(finger.device, _Device())
        half = finger.length / 2
        device.stress += 1 / (stripe.left - island[0] + half) + 1 / (island[2] - stripe.right + half)
        device.places.append(((stripe.left + stripe.right) / 2, y))
        device.width += finger.width
        source = sources[finger.device]
        device.forward += finger.left == source
        device.open_edges += (i == 0) + (i == len(stripes) - 1)
        off = [0 <= j < len(stripes) and not stripes[j].finger.device for j in (i - 1, i + 1)]
        left_inner = i > 0 and stripes[i - 1].left >= island[0]
        right_inner = i + 1 < len(stripes) and stripes[i + 1].right <= island[2]
        reach_left = stripe.left - (stripes[i - 1].right if left_inner else island[0])
        reach_right = (stripes[i + 1].left if right_inner else island[2]) - stripe.right
        sides = ((finger.left, reach_left, left_inner), (finger.right, reach_right, right_inner))
        for (net, reach, inner), beside_dummy in zip(sides, off, strict=True):
            _add_junction(device, finger, reach, inner=inner, source=net == source)
            if net != source:
                middle = stripe.left - reach_left / 2 if net == finger.left else stripe.right + reach_right / 2
                device.drains.setdefault(y, []).append(middle)
                device.junctions[4] += finger.width * (reach if beside_dummy or not inner else reach / 2)


def _add_junction(device: _Device, finger: Finger, reach: int, *, inner: bool, source: bool) -> None:
    """Add a diffusion beside a gate; one between two gates belongs half to each. Edges at gates count as extracted."""
    extent = reach / 2 if inner else float(reach)
    device.junctions[1 if source else 0] += extent * finger.width
    device.junctions[3 if source else 2] += 2 * extent + (1 if inner else 2) * finger.width


def _centre(places: Sequence[tuple[float, float]]) -> tuple[float, float]:
    return sum(x for x, _ in places) / len(places), sum(y for _, y in places) / len(places)


def _spread(places: Sequence[tuple[float, float]]) -> float:
    cx, cy = _centre(places)
    return float((sum((x - cx) ** 2 + (y - cy) ** 2 for x, y in places) / len(places)) ** 0.5)


def _mean(values: Iterable[float]) -> float:
    listed = list(values)
    return sum(listed) / len(listed) if listed else 0.0


def _range(values: Iterable[float]) -> float:
    listed = [round(float(value), 6) for value in values]
    return max(listed) - min(listed)


def _relative(values: Iterable[float]) -> float:
    listed = [float(value) for value in values]
    mean = sum(listed) / len(listed)
    return (max(listed) - min(listed)) / mean if mean else 0.0
