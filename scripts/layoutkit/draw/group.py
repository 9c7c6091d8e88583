"""Any group of matched transistors in one common-centroid row: N devices, any ratio."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from layoutkit.draw.arrange import Unit, arranged_row
from layoutkit.draw.mos import with_dummies
from layoutkit.draw.pattern import Pattern, centroid_error, matched_units
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
        transistors: Of one type and bulk net.
        dummies: Dummy fingers at each end.
        labels: Whether pins carry net names.
        halve: Whether fingers may be halved where only that makes the centroids coincide.
    """

    name: str
    transistors: tuple[Transistor, ...]
    dummies: int = 1
    labels: bool = True
    halve: bool = True


def draw_group(layout: kdb.Layout, tech: Technology, spec: GroupSpec) -> Module:
    """Draw the matched group ``spec`` and return its module; its warnings tell the centroid error that remains.

    Raises:
        GeometryError: If the transistors differ in type or bulk net, or cannot be drawn.
    """
    check_alike(spec.transistors)
    transistors, warnings = spec.transistors, [text for t in spec.transistors for text in t.warnings]
    size, pattern = matched_units(_fingers(transistors))
    if centroid_error(pattern) and spec.halve:
        try:
            halves = tuple(transistor.in_halves() for transistor in transistors)
        except GeometryError:
            halves = ()
        if halves:
            transistors = halves
            size, pattern = matched_units(_fingers(transistors))
            warnings.append(halved_text(halves, tech))
    row = arranged_row(pattern_units(pattern, transistors, size))
    first = transistors[0]
    rows = (with_dummies(row, spec.dummies, first.bulk),)
    module = draw_row_module(layout, tech, RowStack(spec.name, first.spec, first.bulk, rows, labels=spec.labels))
    return replace(module, warnings=(*warnings, *centroid_warnings(module, tech)))


def check_alike(transistors: Sequence[Transistor]) -> None:
    """Refuse transistors that cannot share a tap ring.

    Raises:
        GeometryError: If there is none, an id is used twice, or type, flavour or bulk net differ.
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
        raise GeometryError(f"matched devices share one bulk, got the bulk nets {', '.join(bulks)}")


def pattern_units(
    pattern: Pattern, transistors: Sequence[Transistor], size: int, tags: Mapping[str, str] | None = None
) -> tuple[Unit, ...]:
    """Return ``pattern`` as units of ``size`` fingers, called ``<device>_<tag><number>``."""
    by_id = {transistor.id: transistor for transistor in transistors}
    numbers: Counter[str] = Counter()
    units = []
    for device in pattern:
        numbers[device] += 1
        units.append(Unit(f"{device}_{(tags or {}).get(device, '')}{numbers[device]}", by_id[device], size))
    return tuple(units)


def centroid_warnings(module: Module, tech: Technology, devices: Sequence[str] | None = None) -> tuple[str, ...]:
    """Return the warning that tells how far the drawn centroids of ``devices`` are apart; none where they coincide."""
    error = module.centroid_error(devices)
    if error == 0:
        return ()
    return (f"the channel centroids are {tech.to_um(error):g} um apart; this pattern does not allow less",)


def halved_text(halves: Sequence[Transistor], tech: Technology) -> str:
    """Return the warning that fingers were halved."""
    widths = ", ".join(f"{t.id} as {t.fingers} x {tech.to_um(t.finger_width):g} um" for t in halves)
    return f"fingers were halved so that every device splits into equal units: {widths}"


def _fingers(transistors: Sequence[Transistor]) -> dict[str, int]:
    return {transistor.id: transistor.fingers for transistor in transistors}
