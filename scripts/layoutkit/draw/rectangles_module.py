"""The texts, pins and module of a device of equal rectangles: the plates of a capacitor, the junctions of a diode."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from layoutkit.draw.module import Gate, Instance, Module, Pin
from layoutkit.layout.cells import fresh_cell

if TYPE_CHECKING:
    from collections.abc import Sequence

    import klayout.db as kdb

    from layoutkit.draw.passive import EqualRectangles
    from layoutkit.draw.sketch import Area, Sketch
    from layoutkit.technology import Conductor, Technology


@dataclass(frozen=True)
class DrawnRectangles:
    """A device whose shapes are in a sketch.

    Attributes:
        device: The device.
        areas: Its rectangles, in the order of its units ``<id>_1``, ``<id>_2``, ... [dbu]
        pins: Net and area of each rail. [dbu]
        labels: Whether pins carry their net's name.
        owners: Device of each rectangle, where several in parallel are drawn as one.
        conductor: That of the pins; None for the second.
        joined: Whether the pins of one net are connected.
    """

    device: EqualRectangles
    areas: Sequence[Area]
    pins: Sequence[tuple[str, Area]]
    labels: bool
    owners: Sequence[str] = ()
    conductor: Conductor | None = None
    joined: bool = True

    @property
    def units(self) -> list[tuple[str, str]]:
        """Device and name of each unit."""
        owners, count, found = self.owners or [self.device.id] * len(self.areas), Counter[str](), []
        for owner in owners:
            count[owner] += 1
            found.append((owner, f"{owner}_{count[owner]}"))
        return found


def rectangles_module(
    layout: kdb.Layout, tech: Technology, name: str, sketch: Sketch, drawn: DrawnRectangles
) -> Module:
    """Return the module of ``drawn``, in the cell ``name`` of ``layout`` with its lower left corner at (0, 0)."""
    _draw_texts(tech, sketch, drawn)
    device, rail = drawn.device, drawn.conductor or tech.conductors[1]
    cell = fresh_cell(layout, name)
    moved = sketch.write_at_origin(cell, tech)
    boxes = {unit: moved(area) for unit, area in zip(drawn.units, drawn.areas, strict=True)}
    pins = sorted(drawn.pins, key=lambda pin: (pin[1].bottom, pin[1].left, pin[0]))
    return Module(
        name=name,
        cell=cell,
        layout=layout,
        pins=tuple(Pin(net, rail.name, moved(area)) for net, area in pins),
        devices=tuple(dict.fromkeys(owner for owner, _ in boxes)),
        instances=tuple(
            Instance(unit, owner, (box.left + box.right) / 2, (box.bottom + box.top) / 2, "R0")
            for (owner, unit), box in boxes.items()
        ),
        symmetry_axis_x=None,
        bbox=moved(sketch.extent()),
        gates=tuple(Gate(owner, unit, box) for (owner, unit), box in boxes.items()),
        warnings=device.warnings,
        joined=drawn.joined,
    )


def _draw_texts(tech: Technology, sketch: Sketch, drawn: DrawnRectangles) -> None:
    rail, layer = drawn.conductor or tech.conductors[1], tech.role("device_text")
    for net, area in drawn.pins:
        if rail.pin_layer:
            sketch.box(rail.pin_layer, area)
        if drawn.labels:
            sketch.text(rail.label_layer, net, (area.left + area.right) // 2, (area.bottom + area.top) // 2)
    for (owner, _), area in zip(drawn.units, drawn.areas, strict=True) if layer else ():
        sketch.text(str(layer), owner, (area.left + area.right) // 2, (area.bottom + area.top) // 2)
