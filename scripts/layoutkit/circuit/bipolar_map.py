"""Map vertical bipolar transistors to a technology: a flavour, its emitter, and units instead of SPICE's area factor.

The collector of PNPs is the substrate. NPNs that are drawn as the foundry's cell state how many emitters they have
(``Nx``) and how long these are; ``w`` is then the width of all emitters of one unit. An emitter of another process
becomes the one with the nearest area where the model's name states its sides (``W3p40L3p40``, ``05p00x00p42``), else
the default.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from layoutkit.errors import NetlistError
from layoutkit.technology.passive_sizes import rectangle_sides

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from layoutkit.circuit.circuit import Device
    from layoutkit.technology import PassiveSpec

    Report = Callable[[str, str | float | None, str | float, str], None]

SMALLEST_FACTOR = 1e-3
"""An area of so much is an area factor: in square metres it would be larger than any chip."""
_SIDES = re.compile(r"w?(\d+p\d+)[lx](\d+p\d+)", re.IGNORECASE)
_ROUNDING = 1e-6


def with_units(device: Device) -> Device:
    """Return the device with its area factor in its number of units: SPICE's ``area`` is relative to the model's.

    Raises:
        NetlistError: If the factor is not a whole number: a unit cannot be drawn in part.
    """
    factor = device.params.get("area", 0)
    if not device.kind.area_counts or factor < SMALLEST_FACTOR:
        return device
    units = round(factor)
    if units < 1 or abs(factor - units) > _ROUNDING * factor:
        raise NetlistError(
            f"'{device.id}' ({device.model}) has the area factor {factor:g}; it must be a whole number of units, since "
            "the emitters of vertical bipolar transistors have fixed sizes"
        )
    params = {name: value for name, value in device.params.items() if name != "area"}
    return replace(device, params={**params, "m": device.m * units})


def sized(technology: Any, spec: PassiveSpec, device: Device) -> Device:
    """Return the device with ``w`` and ``l`` of its emitter [m], where its flavour or the usual size says them.

    Raises:
        NetlistError: If the process has no such emitters, or the foundry's cell has another size.
    """
    if spec.cell is not None and not spec.cell.fixed:
        return _with_emitters(technology, spec, device)
    if spec.cell is not None:
        _check_cell(technology, spec, device)
    sides = spec.only_size or (None if {"w", "l"} <= device.params.keys() else spec.usual_size)
    if sides is None:
        return device
    width, length = (round(side * technology.dbu_um * 1e-6, 15) for side in sides)
    return replace(device, params={**device.params, "w": width, "l": length})


def _check_cell(technology: Any, spec: PassiveSpec, device: Device) -> None:
    """Refuse a size, or a number of parts, that a cell of one size has not."""
    metre, sides = technology.dbu_um * 1e-6, sorted((spec.min_w, spec.min_l))
    stated = {name: device.params[name] for name in ("w", "l", "nx", "ny") if name in device.params}
    lengths = sorted(round(value / metre) for name, value in stated.items() if name in {"w", "l"})
    known = lengths == sides if len(lengths) == 2 else {*lengths} <= {*sides}
    if known and all(stated.get(name, 1) == 1 for name in ("nx", "ny")):
        return
    found = ", ".join(f"{name}={value:g}" for name, value in stated.items())
    wide, long = (technology.to_um(side) for side in sides)
    raise NetlistError(
        f"'{device.id}': {spec.name} exists in the size of the foundry's cell alone, {wide:g} x {long:g} um, got "
        f"{found}; leave these out and state copies with m"
    )


def _with_emitters(technology: Any, spec: PassiveSpec, device: Device) -> Device:
    """Return a transistor of ``nf`` emitters, ``w`` the width of all of them and ``l`` the length of one. [m]

    Raises:
        NetlistError: If the process has no such emitters.
    """
    params, metre = device.params, technology.dbu_um * 1e-6
    least, usual = spec.min_w * metre, spec.usual_size or (spec.min_w, spec.min_l)
    sides = [params[name] for name in ("w", "l") if name in params]
    if "area" in params and not sides:
        found = rectangle_sides(params["area"], params["perimeter"]) if "perimeter" in params else None
        sides = list(found or (params["area"] / (usual[1] * metre), usual[1] * metre))
    has_emitters = "e" in device.kind.terminals
    if len(sides) == 1 and not has_emitters:  # which side a varactor's lone w or l is, its value says
        sides.append(max((least, spec.min_l * metre), key=lambda side: abs(side - sides[0])))
    length = params.get("l", params["el"] * 1e-6 if "el" in params else usual[1] * metre)
    width = params.get("w", least)
    if len(sides) == 2:
        width, length = spec.emitter_sides(sides, metre)
    parts, ones = ("emitters", max(1, round(width / least))) if has_emitters else ("pairs of gates", 1)
    stated = params.get("nf", params.get("nx", ones))
    count = int(stated)
    faults = [f"has {stated:g} {parts}, which must be a whole number"] if count != stated else []
    if not 1 <= count <= len(spec.widths):
        faults.append(f"has {count} {parts}, it must have 1 to {len(spec.widths)}")
    if min(abs(width - least), abs(width - count * least)) > metre:
        faults.append(f"states {parts} {width * 1e6:g} um wide, each of {spec.name} is {least * 1e6:g} um")
    longest = spec.max_l or spec.min_l
    if not spec.min_l - 1 < length / metre < longest + 1:
        allowed = " to ".join(dict.fromkeys(f"{side * metre * 1e6:g}" for side in (spec.min_l, longest)))
        faults.append(f"has {parts} of {length * 1e6:g} um, their length must be {allowed} um")
    if faults:
        raise NetlistError(f"'{device.id}' ({device.model}) {'; it '.join(faults)}")
    drawn = {"w": round(count * least, 15), "l": round(length, 15), "nf": count, "m": device.m}
    terminals = {name: net for name, net in device.terminals.items() if name != "t"}  # heat, which no layout has
    return replace(device, params=drawn, terminals=terminals)


def map_bipolar(technology: Any, device: Device, report: Report) -> Device:
    """Return ``device``, whose area factor is in its units, as one of the technology's, with ``w``, ``l`` and ``m``.

    Args:
        technology: A ``layoutkit.technology.Technology`` that has devices of this type.
        device: A bipolar transistor, with ``w`` and ``l`` where the netlist states its emitter.
        report: Receives field, value before, value after and reason of every change.

    Raises:
        NetlistError: If the process has no such emitter.
    """
    alike = [spec for spec in technology.passives.values() if spec.type == device.type]
    named = technology.device_names.drawn(device.model)
    exact = None if named is None or named not in alike else of_size(technology, named, device)
    spec = exact or _nearest(technology, alike, device)
    if exact is None:
        report("model", device.model, spec.name, f"{device.type} {device.model} drawn as {spec.name}")
        device = replace(device, params={"m": device.m})
    if spec.cell is not None:
        if "t" in device.terminals:
            report(
                "t", device.terminals["t"], "left out", "the thermal node of bipolar transistors is no net of a layout"
            )
        drawn = _with_emitters(technology, spec, device)
        if len({"w", "l"} & device.params.keys()) == 1 and "e" not in device.terminals:
            size = " x ".join(f"{technology.to_um(side):g}" for side in (spec.min_w, spec.min_l))
            report(
                "size", None, f"{size} um", f"the other side of {device.type}s is that of the first size with this one"
            )
        return replace(drawn, model=spec.name)
    stated = sorted(device.params[side] for side in ("w", "l") if side in device.params)
    drawn = sized(technology, spec, device)
    width, length = sorted((drawn.w, drawn.l)) if spec.only_size is None else (drawn.w, drawn.l)
    both = [*stated, *sorted((width, length))]
    if len(stated) == 2 and max(abs(both[0] - both[2]), abs(both[1] - both[3])) > 1e-9:  # metres
        raise NetlistError(
            f"'{device.id}' ({device.model}) states an emitter of {stated[0] * 1e6:g} x {stated[1] * 1e6:g} um, but "
            f"{spec.name} has {width * 1e6:g} x {length * 1e6:g} um; leave the size out, or use another model"
        )
    return replace(device, model=spec.name, params={"w": width, "l": length, "m": device.m})


def check_collector(technology: Any, device: Device, substrate: str, grounds: Collection[str]) -> None:
    """Refuse a device whose collector the process makes of the substrate, if it is on another net.

    Args:
        technology: A ``layoutkit.technology.Technology``.
        device: Any device that is not a transistor of MOS type.
        substrate: Net of the substrate; empty where the circuit names none.
        grounds: Nets of the ground; those that the substrate joins are known later.

    Raises:
        NetlistError: If its collector is on another net.
    """
    if not (device.kind.area_counts and device.kind.substrate):
        return
    collector, bulk = device.terminals["c"], device.terminals.get("s")
    other = next((net for net in (bulk, "" if collector in grounds else substrate) if net and net != collector), None)
    if other is not None:
        raise NetlistError(
            f"'{device.id}' ({device.model}) has its collector on {collector}, but the collector of every "
            f"{device.type} of {technology.name} is the substrate, which is on {other}; connect both to one net"
        )


def of_size(technology: Any, spec: PassiveSpec, device: Device) -> PassiveSpec:
    """Return the flavour of the same model whose part has the sides that the device states; ``spec`` where none has.

    A foundry's cell of several sizes that no length stretches, such as a varactor, is a flavour for each.
    """
    sides = [round(device.params[name] * 1e6 / technology.dbu_um) for name in ("w", "l") if name in device.params]
    if spec.cell is None or not sides or (len(sides) < 2 and "e" in device.kind.terminals):
        return spec
    alike = [each for each in technology.passives.values() if each.model == spec.model and each.type == spec.type]
    count = round(device.params.get("nf", device.params.get("nx", 1)))

    fitting = [
        each for each in alike if any({*sides} <= {wide, each.min_l} for wide in (each.min_w, each.min_w * count))
    ]
    return spec if spec in fitting or not fitting else fitting[0]


def _nearest(technology: Any, alike: list[PassiveSpec], device: Device) -> PassiveSpec:
    """Return the flavour with the area nearest to that of the model's name or of the device, else the default."""
    found = _SIDES.search(device.model)
    area = 0.0
    if found is not None:
        area = float(found[1].replace("p", ".")) * float(found[2].replace("p", "."))
    elif {"w", "l"} <= device.params.keys():
        area = device.w * device.l * 1e12
    if area <= 0:
        return max(alike, key=lambda spec: spec.default)

    def ratio(spec: PassiveSpec) -> float:
        width, length = spec.only_size or spec.usual_size or (spec.min_w, spec.min_l)
        drawn: float = width * length * technology.dbu_um**2
        return max(drawn / area, area / drawn)

    return min(alike, key=ratio)
