"""Draw two or more matched transistors: as the figures choose, or in a stated pattern, side by side or in rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from layoutkit.draw.group import GroupSpec, check_alike, draw_group
from layoutkit.draw.pattern import AUTO, INTERDIGITATED, LETTERS, STACKED, parse_pattern
from layoutkit.draw.ring import FULL_RING, RingStyle
from layoutkit.errors import DrcViolationError

if TYPE_CHECKING:
    import klayout.db as kdb

    from layoutkit.draw.module import Module
    from layoutkit.draw.mos import Transistor
    from layoutkit.technology import Technology

Axis = Literal["vertical", "horizontal"]


@dataclass(frozen=True)
class PairSpec:
    """A matched pair to be drawn.

    Attributes:
        name: Name of the cell.
        first: Device A.
        second: Device B.
        arrangement: ``auto``, ``interdigitated``, ``stacked``, or a pattern such as ``AB/BA``, see ``pattern``.
        axis: Direction of the symmetry axis. ``vertical``: units side by side; ``horizontal``: one row per unit.
        spacing: Distance between diffusions that are not shared. [dbu]
        interdigitate: Whether neighbouring units share diffusion.
        dummies: Dummy fingers at each end of each row.
        labels: Whether pins carry net names.
        ring: Which taps surround it.
        others: Devices C, D and so on, for a group of more than two.
    """

    name: str
    first: Transistor
    second: Transistor
    arrangement: str = AUTO
    axis: Axis = "vertical"
    spacing: int = 500
    interdigitate: bool = True
    dummies: int = 2
    labels: bool = True
    ring: RingStyle = FULL_RING
    others: tuple[Transistor, ...] = ()


def draw_pair(layout: kdb.Layout, tech: Technology, spec: PairSpec) -> Module:
    """Draw the pair and return its module with units ``<id>_A1``, ``<id>_B1``, ``<id>_B2``, ``<id>_A2`` and so on.

    Raises:
        GeometryError: If the devices differ in type, or the arrangement cannot be drawn.
        DrcViolationError: If ``spacing`` is smaller than the process allows.
    """
    devices = (spec.first, spec.second, *spec.others)
    check_alike(devices)
    least = max(tech.dim("active_space", spec.first.spec), tech.grid)
    if spec.spacing < least:
        raise DrcViolationError(
            f"Spacing {tech.to_um(spec.spacing):g} violates min spacing {tech.to_um(least):g}",
            details={"spacing_um": tech.to_um(spec.spacing), "min_spacing_um": tech.to_um(least)},
        )
    group = GroupSpec(
        spec.name,
        devices,
        _arrangement(spec),
        spec.dummies,
        spec.labels,
        separate=not spec.interdigitate,
        gap=tech.snap_up(spec.spacing),
        tags={device.id: letter for device, letter in zip(devices, LETTERS, strict=False)},
        ring=spec.ring,
    )
    module = draw_group(layout, tech, group)
    return replace(module, warnings=(*_differences(spec), *module.warnings))


def _arrangement(spec: PairSpec) -> str:
    """Return the pattern: one row per unit if the axis is horizontal."""
    if spec.axis == "vertical" or "/" in spec.arrangement:
        return spec.arrangement
    if spec.arrangement in {AUTO, INTERDIGITATED, STACKED}:
        return STACKED
    devices = [device.id for device in (spec.first, spec.second, *spec.others)]
    ((*units,),) = parse_pattern(spec.arrangement, devices)
    return "/".join(LETTERS[devices.index(unit)] for unit in units)


def _differences(spec: PairSpec) -> list[str]:
    a, b = spec.first, spec.second
    differences = []
    if spec.others:
        return []  # a group of a ratio; its plan states what is unequal
    if a.width != b.width:
        differences.append(f"{a.id} and {b.id} differ in total width; they do not match")
    elif (a.finger_width, a.fingers) != (b.finger_width, b.fingers):
        differences.append(f"{a.id} and {b.id} differ in finger width; they match less well")
    if a.length != b.length:
        differences.append(f"{a.id} and {b.id} differ in length; they do not match")
    return differences
