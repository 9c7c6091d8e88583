"""What constraints say about the current of each net, and whether the drawn metal of wires and modules carries it.

The metal of a module is to carry the currents of its transistors, wherever wires join its rails. No placement can help
a module that is too weak. Modules are therefore judged before placement: shapes that are too weak are not placed, and a
warning names transistors whose currents no shape carries.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from math import ceil
from typing import TYPE_CHECKING, Any, NamedTuple

import klayout.db as kdb

from layoutkit.circuit.constraints import Outcome
from layoutkit.draw.mos import MosSpec, draw_mos, row_choices
from layoutkit.errors import GeometryError
from layoutkit.extract.current_limits import INTO, OUT_OF, NetLoad, judge_currents, label_places, roles_of
from layoutkit.route.net_flows import Draw

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from layoutkit.circuit.circuit import Circuit, Device
    from layoutkit.circuit.constraints import Constraints
    from layoutkit.draw.module import Module
    from layoutkit.draw.mos import Transistor
    from layoutkit.extract.current_limits import NetVerdict
    from layoutkit.flow.groups import Group
    from layoutkit.flow.placing import PlacedModules
    from layoutkit.route.routes import RoutedNet
    from layoutkit.technology import DeviceSpec, Technology


SHAPES = 4
"""Most shapes of a group that are drawn for placement to choose from."""
MOST_MORE = 4
"""Largest multiple of a transistor's fingers that is tried to find how many carry its current."""


def stated_currents(constraints: Constraints, circuit: Circuit) -> dict[str, float]:
    """Return the largest direct current of each net that constraints state, of itself or by its devices. [A]"""
    into: dict[str, float] = defaultdict(float)
    out_of: dict[str, float] = defaultdict(float)
    driven = constraints.device_loads
    for device in circuit.devices:
        if device.id in driven:
            for net, role in roles_of(device.type, device.terminals).items():
                for total in (into,) if role == INTO else (out_of,) if role == OUT_OF else (into, out_of):
                    total[net] += driven[device.id]
    found = {net: max(into[net], out_of[net]) for net in sorted({*into, *out_of})}
    return found | constraints.currents


def device_currents(constraints: Constraints, circuit: Circuit) -> dict[str, float]:
    """Return the largest direct current of each transistor that follows from the constraints. [A]

    Transistors whose current is not stated share that of their net by width, with those on the same side of the net.
    """
    stated, driven = stated_currents(constraints, circuit), constraints.device_loads
    found = dict(driven)
    sides: dict[tuple[str, str], list[Device]] = defaultdict(list)
    for device in circuit.devices if stated else ():
        if device.is_mos:
            for net, role in roles_of(device.type, device.terminals).items():
                sides[net, role].append(device)
    for (net, _), devices in sorted(sides.items()):
        free = {d.id: d.params["w"] * d.params.get("m", 1) for d in devices if d.id not in driven}
        rest = stated.get(net, 0.0) - sum(driven.get(device.id, 0.0) for device in devices)
        for name, width in free.items():
            found[name] = max(found.get(name, 0.0), rest * width / sum(free.values()))
    return {device: current for device, current in found.items() if current > 0}


def terminal_draws(constraints: Constraints, circuit: Circuit, technology: Technology) -> dict[str, dict[str, Draw]]:
    """Return for each net whose current is stated what its devices draw: device to current. [mA]

    - Transistors whose current is not stated share that of the net in proportion to their widths, separately for each
      direction: into the net and out of it.
    - A resistor draws what the highest supply of the circuit's transistors drives through it, in either direction, but
      no more than the current of the net.
    - A capacitor, a gate and a bulk draw nothing.
    - What other devices draw is not known, and they are left out: it may be all of the net's current.
    """
    flavours = [technology.any_device(device.model) for device in circuit.devices if device.is_mos]
    highest = max((volts for each in flavours if (volts := getattr(each, "supply_v", None))), default=None)
    driven, found = constraints.device_loads, defaultdict[str, dict[str, Draw]](dict)
    stated = stated_currents(constraints, circuit)
    roles = {d.id: roles_of(d.type, d.terminals) if d.is_mos else {} for d in circuit.devices}
    widths: dict[tuple[str, str], float] = defaultdict(float)
    known: dict[tuple[str, str], float] = defaultdict(float)
    for device in circuit.devices:
        for net, role in roles[device.id].items():
            known[net, role] += driven.get(device.id, 0.0)
            widths[net, role] += 0.0 if device.id in driven else _width(device)
    for device in circuit.devices:
        for net in sorted({*device.terminals.values()} & stated.keys()):
            if device.is_mos:
                role = roles[device.id].get(net, "")
                current = driven.get(device.id, 0.0) if role else 0.0
                if role and device.id not in driven:
                    current = max(0.0, stated[net] - known[net, role]) * _width(device) / widths[net, role]
                own = current * 1e3
                found[net][device.id] = Draw(own if role == INTO else 0.0, own if role == OUT_OF else 0.0)
            elif device.type == "resistor" and highest is not None:
                most = min(stated[net], highest / _resistance(device, technology)) * 1e3
                found[net][device.id] = Draw(most, most)
            elif device.type == "capacitor":
                found[net][device.id] = Draw()
    return dict(found)


def _width(device: Device) -> float:
    return float(device.params["w"] * device.params.get("m", 1))


def _resistance(device: Device, technology: Technology) -> float:
    """Return the least that the sheet resistance of a resistor's body gives. [ohm]"""
    params = device.params
    spec = technology.passives[technology.any_device(device.model).name]
    return float(spec.value * params["l"] / params["w"] / params.get("m", 1))


def net_current_loads(
    cell: kdb.Cell, placed: PlacedModules, circuit: Circuit, constraints: Constraints, routes: Iterable[RoutedNet] = ()
) -> dict[str, NetLoad]:
    """Return what is known of the current of each net that has metal, and of the single cuts of its wires.

    Ports are where labels of the finished ``cell`` lie: the frame of the placement moved after it was routed.
    """
    singles = {net.name: frozenset((cut.cut, cut.x, cut.y) for cut in net.single_cuts) for net in routes}
    points: dict[str, list[tuple[str, int, int]]] = defaultdict(list)
    ports = label_places(cell, placed.technology)
    mos = {device.id for device in circuit.devices if device.is_mos}
    for module in placed.modules.values():
        for pin in module.pins:
            centre = placed.place_of(module, pin.box).center()
            points[pin.net].append((pin.layer, centre.x, centre.y))
            if module.devices and not mos & set(module.devices):  # current enters a resistor, capacitor or diode here
                ports.setdefault(pin.net, []).append((pin.layer, centre.x, centre.y))
    terminals: dict[str, dict[str, str]] = defaultdict(dict)
    for device in circuit.devices:
        if device.is_mos:
            for net, role in roles_of(device.type, device.terminals).items():
                terminals[net][device.id] = role
    driven = {device: current * 1e3 for device, current in constraints.device_loads.items()}
    return {
        net: NetLoad(
            tuple(at),
            tuple(ports.get(net, ())),
            terminals[net],
            None if net not in constraints.currents else constraints.currents[net] * 1e3,
            driven,
            singles.get(net, frozenset()),
        )
        for net, at in sorted(points.items())
    }


def currents_data(technology: Technology, verdicts: Sequence[NetVerdict]) -> dict[str, Any]:
    """Return verdicts as JSON data, with the source of the limits."""
    counts = {kind: sum(each.verdict == kind for each in verdicts) for kind in ("passed", "failed", "unchecked")}
    return {
        **counts,
        "limits_from": technology.electrical.currents,
        "temperature_c": technology.electrical.temperature_c,
        "nets": [each.to_json() for each in verdicts],
    }


def judged(
    cell: kdb.Cell, placed: PlacedModules, circuit: Circuit, constraints: Constraints, routes: Iterable[RoutedNet] = ()
) -> list[NetVerdict]:
    """Return the verdict on each net of a finished layout, drawn in ``cell`` with wires ``routes``."""
    return judge_currents(cell, placed.technology, net_current_loads(cell, placed, circuit, constraints, routes))


def with_verdicts(
    outcomes: Iterable[Outcome], constraints: Constraints, circuit: Circuit, verdicts: Sequence[NetVerdict]
) -> list[Outcome]:
    """Return outcomes with those of currents as the finished layout was judged."""
    by_net = {each.net: each for each in verdicts}
    found = []
    for each in outcomes:
        verdict = by_net.get(each.names[0]) if each.path.startswith("net_currents") else None
        if verdict is None or verdict.verdict not in {"passed", "failed"}:
            found.append(each)
        elif verdict.verdict == "failed":
            found.append(replace(each, obeyed=False, reason=verdict.text))
        else:
            found.append(replace(each, obeyed=True, reason="the drawn metal carries the current"))
    devices = {device.id: device for device in circuit.devices}
    for index, load in enumerate(constraints.device_currents):
        device = devices[load.device]
        own = [by_net[net] for net in roles_of(device.type, device.terminals) if net in by_net]
        failed = [each.text for each in own if each.verdict == "failed"]
        passed = bool(own) and all(each.verdict == "passed" for each in own)
        if not verdicts:
            found.append(Outcome(f"device_currents[{index}]", (load.device,), None, "the finished layout is judged"))
            continue
        reason = "; ".join(failed) or (
            "the drawn metal carries the current"
            if passed
            else "; ".join(f"net {each.net}: {each.reason or each.verdict}" for each in own if each.verdict != "passed")
            or "only the metal of transistors is judged"
        )
        state = False if failed else True if passed else None
        found.append(Outcome(f"device_currents[{index}]", (load.device,), state, reason))
    return found


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
