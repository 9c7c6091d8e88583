"""Whether the metal of a module carries the currents of its transistors, wherever wires join its rails.

No placement can help a module that is too weak. Modules are therefore judged before placement: shapes that are too weak
are not placed, and a warning names transistors whose currents no shape carries.
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil
from typing import TYPE_CHECKING, NamedTuple

import klayout.db as kdb

from layoutkit.draw.mos import MosSpec, draw_mos, row_choices
from layoutkit.errors import GeometryError
from layoutkit.extract.current_limits import NetLoad, judge_currents, roles_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from layoutkit.circuit.circuit import Device
    from layoutkit.draw.module import Module
    from layoutkit.draw.mos import Transistor
    from layoutkit.extract.current_limits import NetVerdict
    from layoutkit.flow.groups import Group
    from layoutkit.technology import DeviceSpec, Technology

SHAPES = 4
"""Most shapes of a group that are drawn for placement to choose from."""
MOST_MORE = 4
"""Largest multiple of a transistor's fingers that is tried to find how many carry its current."""


class Weakness(NamedTuple):
    """A net whose current no shape of a module carries.

    Attributes:
        devices: The transistors on it.
        verdict: The judgement of the best shape.
        fingers: Number of fingers of the best shape; 0 for several transistors.
        enough: Number of fingers, of the same total width, that carries the current; None if unknown.
    """

    devices: tuple[str, ...]
    verdict: NetVerdict
    fingers: int = 0
    enough: int | None = None

    @property
    def text(self) -> str:
        """The weakness as a sentence."""
        found, names = self.verdict, ", ".join(self.devices)
        where = f"{found.layer} between the fingers of {names} and the rails of net {found.net}"
        carried = f"{where} carries {found.carries_ma:.3g} of {found.needed_ma:g} mA"
        remedy = "divide the width into more fingers"
        if self.fingers:
            carried += f" with {self.fingers} fingers"
        if self.enough:
            remedy = f"divide the same width into {self.enough} fingers or more"
        return f"{carried}: {remedy}, or state less current"


def weakest_net(
    module: Module, spec: DeviceSpec, technology: Technology, devices: Iterable[Device], currents: Mapping[str, float]
) -> NetVerdict | None:
    """Return the net of a module that carries the smallest part of its current; None where each carries all of it.

    Args:
        module: What was drawn.
        spec: Flavour of its transistors.
        technology: Its process.
        devices: Its transistors.
        currents: Device to its largest direct current. [A]
    """
    terminals: dict[str, dict[str, str]] = {}
    for device in devices:
        for net, role in roles_of(device.type, device.terminals).items():
            terminals.setdefault(net, {})[device.id] = role
    driven = {device: current * 1e3 for device, current in currents.items()}
    loads = {}
    for net, its in terminals.items():
        points = _points(module, net)
        if points and any(device in driven for device in its):
            loads[net] = NetLoad(points, points, its, None, driven)
    layout = _in_well(module, technology, spec.well)  # cells do not outlive their layout
    weak = [
        verdict
        for verdict in judge_currents(layout.top_cell(), technology, loads, singles=False)
        if verdict.verdict == "failed" and verdict.carries_ma is not None
    ]
    return min(weak, key=_carried_part, default=None)


def _in_well(module: Module, technology: Technology, well: str | None) -> kdb.Layout:
    """Return a copy of a module with its well, because modules that share a ring do not draw the well themselves."""
    layout = kdb.Layout()
    layout.dbu = module.layout.dbu
    cell = layout.create_cell(module.name)
    cell.copy_tree(module.cell)
    if well is not None:
        cell.shapes(technology.layer(layout, well)).insert(module.bbox)
    return layout


def _carried_part(verdict: NetVerdict) -> float:
    return (verdict.carries_ma or 0.0) / (verdict.needed_ma or 1.0)


def _points(module: Module, net: str) -> tuple[tuple[str, int, int], ...]:
    """Return points on the pins of a net where its current enters a module, if wires join all of them. [dbu]"""
    found = []
    for pin in module.pins_of(net):
        box = pin.box
        step = max(1, min(box.width(), box.height()))
        if pin.share > 0:
            found += [
                (pin.layer, x, y)
                for x in range(box.left + step // 2, box.right, step)
                for y in range(box.bottom + step // 2, box.top, step)
            ]
    return tuple(found)


def carrying_modules(
    technology: Technology,
    group: Group,
    transistors: Sequence[Transistor],
    modules: Sequence[Module],
    currents: Mapping[str, float],
) -> list[Module]:
    """Return the modules of a group that carry its currents; all of them, with a warning, if none does.

    The cells of the others are removed.

    Args:
        technology: The process.
        group: Its devices.
        transistors: Its devices as drawn.
        modules: The shapes.
        currents: Device to its largest direct current. [A]
    """
    verdicts = [weakest_net(each, group.spec, technology, group.devices, currents) for each in modules]
    weak = [verdict for verdict in verdicts if verdict is not None]
    if len(weak) == len(modules):
        worst = max(weak, key=_carried_part)
        text = _weakness(technology, group, transistors, worst).text
        return [replace(each, warnings=(*each.warnings, text)) for each in modules]
    for module, verdict in zip(modules, verdicts, strict=True):
        if verdict is not None:
            module.layout.prune_cell(module.cell.cell_index(), -1)
    return [module for module, verdict in zip(modules, verdicts, strict=True) if verdict is None]


def _weakness(technology: Technology, group: Group, transistors: Sequence[Transistor], worst: NetVerdict) -> Weakness:
    """Return what no shape of a group carries; for a single transistor, with a number of fingers that does."""
    names = tuple(device.id for device in group.devices if worst.net in device.terminals.values())
    if len(group.devices) > 1:
        return Weakness(names, worst)
    fingers = transistors[0].fingers
    enough = _enough_fingers(fingers, worst, lambda count: _carries(technology, group, transistors[0], count))
    return Weakness(names, worst, fingers, enough)


def _carries(technology: Technology, group: Group, transistor: Transistor, fingers: int) -> bool:
    """Return whether a transistor of the same width and more fingers carries its current in some shape."""
    width = technology.snap_up(transistor.width / fingers)
    if width < transistor.spec.min_w:
        return False
    layout = kdb.Layout()
    layout.dbu = technology.dbu_um
    spec = MosSpec(replace(transistor, finger_width=width, nf=fingers, m=1), group.name, labels=False)
    currents = {transistor.id: transistor.current}
    try:
        modules = (draw_mos(layout, technology, replace(spec, rows=n)) for n in row_choices(technology, spec, SHAPES))
        return any(weakest_net(each, group.spec, technology, group.devices, currents) is None for each in modules)
    except GeometryError:
        return False


def _enough_fingers(fingers: int, verdict: NetVerdict, carries: Callable[[int], bool]) -> int | None:
    """Return the smallest number of fingers tried that carries the current; None if none does.

    Args:
        fingers: A number of fingers that does not.
        verdict: The judgement of that number.
        carries: Whether a number of fingers does.
    """
    count = fingers
    part = max(_carried_part(verdict), 1 / MOST_MORE)
    while True:
        count = max(count + 1, ceil(fingers / part) if count == fingers else ceil(count * 1.1))
        if count > MOST_MORE * fingers:
            return None
        if carries(count):
            return count
