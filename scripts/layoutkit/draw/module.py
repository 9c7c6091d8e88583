"""The result of drawing: a module with its cell, pins, channels, unit positions and symmetry.

The texts, pins and module of a device of equal rectangles: the plates of a capacitor, the junctions of a diode.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from layoutkit.layout.cells import fresh_cell

if TYPE_CHECKING:
    from collections.abc import Sequence

    import klayout.db as kdb

    from layoutkit.draw.figures import Figures
    from layoutkit.draw.passive import EqualRectangles
    from layoutkit.draw.sketch import Sketch
    from layoutkit.rectangle import Rectangle
    from layoutkit.technology import Conductor, Technology


@dataclass(frozen=True)
class Pin:
    """Drawn metal to which wires may connect.

    Attributes:
        net: Net it belongs to.
        layer: Name of a conductor of the technology's stack.
        box: The metal, in the cell's coordinates. [dbu]
        share: The part of the current between the net and the module's devices that enters here. In a module of
            transistors it is that of the fingers of the row that the rail belongs to.
    """

    net: str
    layer: str
    box: kdb.Box
    share: float = 1.0


@dataclass(frozen=True)
class Gate:
    """A drawn channel, resistive bar or capacitor plate, whose area determines the value of a device.

    Attributes:
        device: Id of the device; empty for a dummy.
        unit: Id of the instance it belongs to.
        box: Channel area (poly over active), core or plate, in the cell's coordinates. [dbu]
    """

    device: str
    unit: str
    box: kdb.Box


@dataclass(frozen=True)
class Instance:
    """One unit of a device.

    Attributes:
        id: Name of the unit, such as ``M1_A1``.
        parent: Id of the device it is a part of.
        x: Centre of its channels; may be half a database unit off the integers. [dbu]
        y: Centre of its channels in y. [dbu]
        orientation: ``R0``, ``MY`` (left and right exchanged), ``MX`` (upside down) or ``R180``.
    """

    id: str
    parent: str
    x: float
    y: float
    orientation: str


@dataclass(frozen=True)
class Keepout:
    """An area of one conductor or cut that no wire may enter, not even one of the module's own nets.

    Metal may touch its edges: no distance is kept to it.

    Attributes:
        layer: Name of a conductor or cut of the technology's stack.
        box: The area, in the cell's coordinates. [dbu]
        by_rule: Whether a design rule needs it. Otherwise it keeps the metal over matched gates equal, and is given up
            for a net that finds no other way.
    """

    layer: str
    box: kdb.Box
    by_rule: bool = False


@dataclass(frozen=True)
class DrawnDummy:
    """Equal dummy fingers, transistors that are always off, as a netlist of the drawing lists them.

    The dummies of an array of capacitors or of bipolar transistors are equal units whose nets are all one.

    Attributes:
        device: Flavour.
        gate: Net.
        first: Net of one side.
        second: Net of the other side.
        bulk: Net.
        width: Channel width of one finger. [dbu]
        length: Channel length. [dbu]
        count: Number of fingers.
    """

    device: str
    gate: str
    first: str
    second: str
    bulk: str
    width: int
    length: int
    count: int = 1


@dataclass(frozen=True)
class Module:
    """A drawn block, ready to be placed.

    Attributes:
        name: Name of its cell.
        cell: The cell, in ``layout``.
        layout: The layout of ``cell``. KLayout's cells do not outlive their layout, so this reference is kept.
        pins: Bottom pin first; ``joined`` states whether the pins of one net are connected inside the module.
        devices: Ids of the transistors it holds.
        instances: Units, bottom row first, left to right.
        symmetry_axis_x: Vertical line about which the drawn geometry is its own mirror image, or ``None``; the cuts
            that join the risers of twins, see ``risers``, do not count. [dbu]
        bbox: Bounding box, lower left corner at (0, 0). [dbu]
        gates: All channels, dummies included.
        mirrored_in_y: Whether the drawn geometry is its own mirror image about a horizontal line.
        warnings: Descriptions of what differs from the request.
        keepouts: Areas that no wire may enter, in addition to the spacing rules.
        joined: Whether the pins of one net are connected inside the module.
        pattern: The order of the units of a matched group, see ``pattern``; empty for other modules.
        figures: How unequal the devices of a matched group are by its plan.
        dummies: Dummy fingers and plates.
        excess: Penalty for disadvantages of this shape of a matched group, such as split fingers, as a fraction of its
            area: with 0.25, it counts as a quarter larger. [1]
    """

    name: str
    cell: kdb.Cell
    layout: kdb.Layout
    pins: tuple[Pin, ...]
    devices: tuple[str, ...]
    instances: tuple[Instance, ...]
    symmetry_axis_x: int | None
    bbox: kdb.Box
    gates: tuple[Gate, ...] = ()
    mirrored_in_y: bool = False
    warnings: tuple[str, ...] = field(default=())
    keepouts: tuple[Keepout, ...] = field(default=())
    joined: bool = True
    pattern: str = ""
    figures: Figures | None = None
    dummies: tuple[DrawnDummy, ...] = field(default=())
    excess: float = 0.0

    def in_layout(self, layout: kdb.Layout) -> Module:
        """Return the module as ``layout`` holds it, which has a cell of the same name."""
        return replace(self, cell=layout.cell(self.cell.name), layout=layout)

    def pins_of(self, net: str) -> tuple[Pin, ...]:
        """Return the pins of ``net``, bottom pin first."""
        return tuple(pin for pin in self.pins if pin.net == net)

    def centroid(self, device: str) -> tuple[float, float]:
        """Return the area-weighted centre of the drawn channels of ``device``. [dbu]"""
        return channel_centre([gate.box for gate in self.gates if gate.device == device])

    def centroid_error(self, devices: Sequence[str] | None = None) -> float:
        """Return the largest distance between the channel centroids of any two of ``devices`` (default: all). [dbu]"""
        points = [self.centroid(device) for device in (self.devices if devices is None else devices)]
        return max(
            (((a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2) ** 0.5 for i, a in enumerate(points) for b in points[:i]),
            default=0.0,
        )


def channel_centre(boxes: list[kdb.Box]) -> tuple[float, float]:
    """Return the area-weighted centre of ``boxes``, computed in integers so that equal centres compare equal. [dbu]"""
    area = sum(box.area() for box in boxes)
    x = sum(box.area() * (box.left + box.right) for box in boxes)
    y = sum(box.area() * (box.bottom + box.top) for box in boxes)
    return x / (2 * area), y / (2 * area)


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
    areas: Sequence[Rectangle]
    pins: Sequence[tuple[str, Rectangle]]
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
