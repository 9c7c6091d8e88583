"""Draw a group of matched transistors as one common-centroid module: any number of devices in any ratio."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from layoutkit.draw.arrange import Unit, arranged_row
from layoutkit.draw.mos import with_dummies
from layoutkit.draw.pattern import centroid_error, matched_units
from layoutkit.draw.stack import RowStack, draw_row_module
from layoutkit.errors import GeometryError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import klayout.db as kdb

    from layoutkit.draw.module import Module
    from layoutkit.draw.mos import Transistor
    from layoutkit.technology import Technology


@dataclass(frozen=True)
class GroupSpec:
    """Matched transistors to be drawn as one module.

    Attributes:
        name: Name of the cell.
        transistors: Transistors of the same type and bulk net.
        dummies: Dummy fingers at each end.
        labels: Whether pins carry net names.
        halve: Whether fingers may be halved if the centroids coincide in no other way.
        rows: Number of rows; the number of fingers of each device must be a multiple of it.
    """

    name: str
    transistors: tuple[Transistor, ...]
    dummies: int = 1
    labels: bool = True
    halve: bool = True
    rows: int = 1


def draw_group(layout: kdb.Layout, tech: Technology, spec: GroupSpec) -> Module:
    """Draw the matched group ``spec`` and return its module; a warning states the remaining centroid error.

    Raises:
        GeometryError: If the transistors differ in type or bulk net, or cannot be drawn.
    """
    check_alike(spec.transistors)
    transistors, warnings = spec.transistors, [text for t in spec.transistors for text in t.warnings]
    uneven = [f"{t.id} ({t.fingers})" for t in transistors if t.fingers % spec.rows]
    if spec.rows < 1 or uneven:
        raise GeometryError(f"fingers do not divide into {spec.rows} equal rows: {', '.join(uneven) or 'no row'}")
    size, pattern = matched_units(_fingers(transistors, spec.rows))
    if centroid_error(pattern) and spec.halve and spec.rows % 2:
        halves = _halved(transistors)
        if halves:
            transistors = halves
            size, pattern = matched_units(_fingers(transistors, spec.rows))
            warnings.append(halved_text(halves, tech))
    first = transistors[0]
    patterns = [pattern if row % 2 == 0 else tuple(reversed(pattern)) for row in range(spec.rows)]
    units = pattern_units([device for row in patterns for device in row], transistors, size)
    rows = tuple(
        with_dummies(arranged_row(units[i * len(pattern) : (i + 1) * len(pattern)]), spec.dummies, first.bulk)
        for i in range(spec.rows)
    )
    module = draw_row_module(layout, tech, RowStack(spec.name, first.spec, first.bulk, rows, labels=spec.labels))
    return replace(module, warnings=(*warnings, *centroid_warnings(module, tech)))


def _halved(transistors: Sequence[Transistor]) -> tuple[Transistor, ...]:
    """Return the transistors with fingers of half the width; an empty result if one of them cannot be halved."""
    try:
        return tuple(transistor.in_halves() for transistor in transistors)
    except GeometryError:
        return ()


def check_alike(transistors: Sequence[Transistor]) -> None:
    """Check that the transistors can share a tap ring.

    Raises:
        GeometryError: If the list is empty, an id is used twice, or types, flavours or bulk nets differ.
    """
    if not transistors:
        raise GeometryError("a matched group needs at least one transistor")
    twice = sorted(name for name, count in Counter(t.id for t in transistors).items() if count > 1)
    if twice:
        raise GeometryError(f"device ids must differ, got {', '.join(twice)} more than once")
    flavours = sorted({t.spec.name for t in transistors})
    if len(flavours) > 1:
        raise GeometryError("Devices must be same type for matching", details={"types": flavours})
    bulks = sorted({t.bulk for t in transistors})
    if len(bulks) > 1:
        raise GeometryError(f"matched devices must have the same bulk net, got {', '.join(bulks)}")


def pattern_units(
    pattern: Sequence[str], transistors: Sequence[Transistor], size: int, tags: Mapping[str, str] | None = None
) -> tuple[Unit, ...]:
    """Return ``pattern`` as units of ``size`` fingers, named ``<device>_<tag><number>``."""
    by_id = {transistor.id: transistor for transistor in transistors}
    numbers: Counter[str] = Counter()
    units = []
    for device in pattern:
        numbers[device] += 1
        units.append(Unit(f"{device}_{(tags or {}).get(device, '')}{numbers[device]}", by_id[device], size))
    return tuple(units)


def centroid_warnings(module: Module, tech: Technology, devices: Sequence[str] | None = None) -> tuple[str, ...]:
    """Return a warning with the distance between the drawn centroids of ``devices``; empty if they coincide."""
    error = module.centroid_error(devices)
    if error == 0:
        return ()
    return (f"the channel centroids are {tech.to_um(error):g} um apart; no order of these units brings them closer",)


def halved_text(halves: Sequence[Transistor], tech: Technology) -> str:
    """Return the warning that fingers were halved."""
    widths = ", ".join(f"{t.id} as {t.fingers} x {tech.to_um(t.finger_width):g} um" for t in halves)
    return f"fingers were halved so that every device splits into equal units: {widths}"


def _fingers(transistors: Sequence[Transistor], rows: int) -> dict[str, int]:
    return {transistor.id: transistor.fingers // rows for transistor in transistors}
