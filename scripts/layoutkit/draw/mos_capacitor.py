"""MOS capacitors: gates over diffusion whose source, drain and body are one net, drawn as rows of fingers.

::

      n   p   n   p   n         n+ diffusion in a well (accumulation), or that of a transistor (inversion)
    | # |   | # |   | # |       contact columns between the fingers, all on one net with the tap ring around them
    | # | G | # | G | # |       G: gates, all on the other net
    | # |   | # |   | # |

The rows, their wires and the ring are those of a transistor (``draw_mos``).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from layoutkit.draw.module import Instance
from layoutkit.draw.mos import MAX_ASPECT, MosSpec, Transistor, folded_rows
from layoutkit.draw.passive import EqualRectangles, nets_of, rectangle_on_grid, spec_of_kind
from layoutkit.draw.ring import ring_sizes
from layoutkit.draw.row import row_sizes
from layoutkit.draw.stack import draw_row_module, module_size
from layoutkit.errors import GeometryError
from layoutkit.layout.cells import fresh_cell
from layoutkit.technology.passive_sizes import folded_gate

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import klayout.db as kdb

    from layoutkit.draw.module import Module
    from layoutkit.draw.stack import RowStack
    from layoutkit.technology import DeviceSpec, PassiveSpec, Technology
    from layoutkit.technology.passive_sizes import PassiveSize

_MOST_ROWS = 8


@dataclass(frozen=True)
class MosCapacitor(EqualRectangles):
    """A MOS capacitor: ``p`` is the net of the gates, ``n`` that of diffusion and body; ``m`` counts gates."""

    def farad(self, dbu_um: float) -> float:
        """Return the capacitance of the gates by their area. [F]"""
        return self.spec.value * self.width * self.length * dbu_um**2 * self.m


def mos_capacitor(
    tech: Technology, device_id: str, flavour: str, size: PassiveSize, nets: Mapping[str, str] | None = None
) -> MosCapacitor:
    """Return the MOS capacitor ``device_id`` with its gates on the grid of ``tech``, wide ones folded.

    Args:
        tech: Process.
        device_id: Instance name.
        flavour: ``mos_capacitor``, a device of the technology, or its model.
        size: As in the netlist: width and length of one gate.
        nets: Terminal (p, n) to net; a terminal left out is called ``<device_id>_<terminal>``.

    Raises:
        GeometryError: If a size is below or above what the process allows.
        TechnologyError: If the process has no such device.
    """
    spec = spec_of_kind(tech, flavour, "mos_capacitor")
    width, length, m, warnings = rectangle_on_grid(tech, device_id, spec, size)
    total = width * m
    width, m = folded_gate(tech, spec, width, m)
    if width * m != total:
        text = f"{device_id}: {m} gates of {tech.to_um(width):g} um are {tech.to_um(width * m):g} um wide in all"
        warnings = (*warnings, f"{text}, not {tech.to_um(total):g} um")
    return MosCapacitor(device_id, spec, width, length, m, *nets_of(device_id, nets), warnings)


def draw_mos_capacitor(
    layout: kdb.Layout,
    tech: Technology,
    name: str,
    device: MosCapacitor,
    *,
    labels: bool = True,
    parts: tuple[tuple[str, int], ...] = (),
) -> Module:
    """Draw the capacitor into the cell ``name`` and return its module.

    Args:
        layout: Receives the cell.
        tech: The process.
        name: Name of the cell.
        device: What to draw.
        labels: Whether pins carry net names.
        parts: Devices in parallel that it stands for, each with its number of gates; empty for itself.

    Raises:
        GeometryError: If a gate would lie too far from the taps.
        TechnologyError: If the technology lacks a dimension.
    """
    own, transistor = _drawn_as(tech, device.spec)
    storeys, rows = _rows(own, transistor, device)
    drawn = Transistor(
        device.id,
        transistor,
        device.width,
        device.length,
        device.m // storeys,
        1,
        drain=device.n,
        gate=device.p,
        source=device.n,
        bulk=device.n,
        warnings=device.warnings,
    )
    spec = MosSpec(drawn, name, rows=rows, labels=labels)
    names = [each for each, count in parts or ((device.id, device.m),) for _ in range(count)]
    per = device.m // storeys
    stacks = [
        _stack(own, replace(spec, parts=_counted(names[per * number : per * (number + 1)])), several=storeys > 1)
        for number in range(storeys)
    ]
    if storeys == 1:
        return replace(draw_row_module(layout, own, stacks[0]), warnings=device.warnings)
    return _above_each_other(layout, own, name, stacks, device)


def _counted(names: Sequence[str]) -> tuple[tuple[str, int], ...]:
    return tuple(Counter(names).items())


def _stack(tech: Technology, spec: MosSpec, *, several: bool) -> RowStack:
    stack = folded_rows(tech, spec)
    return replace(stack, bulk_rails="both") if several else stack


def _above_each_other(
    layout: kdb.Layout, tech: Technology, name: str, stacks: Sequence[RowStack], device: MosCapacitor
) -> Module:
    """Return the module of equal stacks of rows one above the other, with the ring between two of them in common."""
    import klayout.db as kdb

    _, height = module_size(tech, stacks[0])
    pitch = height - ring_sizes(tech, stacks[0].device, row_sizes(tech, stacks[0].device)).width
    modules = []
    cell = fresh_cell(layout, name)
    for number, stack in enumerate(stacks):
        module = draw_row_module(layout, tech, replace(stack, name=f"{name}_{number}"))
        for layer in layout.layer_indexes():
            for shape in module.cell.shapes(layer).each():
                cell.shapes(layer).insert(shape, kdb.Trans(0, number * pitch))
        layout.delete_cell(module.cell.cell_index())
        modules.append(module)
    first = modules[0]
    count: Counter[str] = Counter()
    gates = []
    for number, module in enumerate(modules):
        for gate in module.gates:
            count[gate.device] += 1
            box = gate.box.moved(0, number * pitch)
            gates.append(replace(gate, unit=f"{gate.device}_{count[gate.device]}", box=box))
    pins = [
        replace(pin, box=pin.box.moved(0, number * pitch), share=pin.share / len(stacks))
        for number, module in enumerate(modules)
        for pin in module.pins
    ]
    top = first.bbox.top + (len(stacks) - 1) * pitch
    return replace(
        first,
        name=name,
        cell=cell,
        pins=tuple(sorted(set(pins), key=lambda pin: (pin.box.bottom, pin.box.left, pin.net))),
        devices=tuple(dict.fromkeys(gate.device for gate in gates)),
        instances=tuple(
            Instance(gate.unit, gate.device, gate.box.center().x, gate.box.center().y, "R0") for gate in gates
        ),
        bbox=kdb.Box(first.bbox.left, first.bbox.bottom, first.bbox.right, top),
        gates=tuple(gates),
        joined=False,
        warnings=device.warnings,
    )


def _drawn_as(tech: Technology, spec: PassiveSpec) -> tuple[Technology, DeviceSpec]:
    """Return the technology and the transistor that draw a MOS capacitor.

    Where the gate accumulates, diffusion and taps are of one type: they share one implant, and one layer.
    """
    transistor = spec.diffusion_of
    if transistor is None:
        raise GeometryError(f"{spec.name} does not say as which transistor it is drawn")
    covers = (*transistor.covers, *spec.covers)
    tap = tech.role("tap")
    if spec.accumulates:
        covers = (*covers, spec.parts["implant"])
        tech = tech if tap is None else replace(tech, roles={**tech.roles, "active": tap})
    return tech, replace(
        transistor,
        name=spec.name,
        model=spec.model,
        min_w=spec.min_w,
        min_l=spec.min_l,
        implant=spec.parts["implant"],
        markers=(*transistor.markers, *spec.markers),
        covers=covers,
        dimensions={**transistor.dimensions, **spec.dimensions},
    )


def _rows(tech: Technology, transistor: DeviceSpec, device: MosCapacitor) -> tuple[int, int]:
    """Return into how many storeys with taps between them, and rows in each, the gates are folded.

    They are those that bring the block nearest to a square; storeys only where rows in one are too long.
    """
    sizes = row_sizes(tech, transistor)
    pitch = device.length + 2 * sizes.contact_to_gate + sizes.contact
    height = device.width + 2 * (sizes.rail + sizes.rail_space) + sizes.gate_contact_to_active + sizes.strip
    reach = 2 * tech.dim("tap_max_distance", transistor)

    def aspect(storeys: int, rows: int) -> float:
        wide, high = -(-device.m // (storeys * rows)) * pitch, storeys * rows * height
        return max(wide / high, high / wide)

    able = [
        (storeys, rows)
        for storeys in range(1, device.m + 1)
        for rows in range(1, min(device.m // storeys, _MOST_ROWS) + 1)
        if device.m % storeys == 0 and (rows == 1 or rows * height < reach)
    ]
    best = min(able, key=lambda each: (round(aspect(*each), 3), each))
    single = min((each for each in able if each[0] == 1), key=lambda each: (round(aspect(*each), 3), each))
    return single if aspect(*single) <= MAX_ASPECT else best
