"""What a design's constraints say about the current of each net, and whether the drawn metal carries it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from layoutkit.circuit.constraints import Outcome
from layoutkit.extract.current_limits import INTO, OUT_OF, NetLoad, judge_currents, label_places, roles_of
from layoutkit.route.net_flows import Draw

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import klayout.db as kdb

    from layoutkit.circuit.circuit import Circuit, Device
    from layoutkit.circuit.constraints import Constraints
    from layoutkit.extract.current_limits import NetVerdict
    from layoutkit.flow.placing import PlacedModules
    from layoutkit.route.routes import RoutedNet
    from layoutkit.technology import Technology


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
