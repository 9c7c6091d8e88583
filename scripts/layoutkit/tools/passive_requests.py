"""The tools that draw resistors, capacitors, diodes and bipolars: from parameters to a drawn cell and its answer."""

from __future__ import annotations

from dataclasses import replace
from math import sqrt
from typing import TYPE_CHECKING, Any

from layoutkit.draw.bipolar import KIND, Bipolar, BipolarSpec, as_text, bipolar, draw_bipolars, rows_of
from layoutkit.draw.capacitor import CapacitorSpec
from layoutkit.draw.capacitor_array import draw_capacitor_array, matched_capacitors
from layoutkit.draw.diode import diode, draw_diode
from layoutkit.draw.generators import draw_plates
from layoutkit.draw.mos_capacitor import MosCapacitor, draw_mos_capacitor, mos_capacitor
from layoutkit.draw.passive import Capacitor, EqualRectangles, Resistor, capacitor, resistor
from layoutkit.draw.resistor import draw_resistors
from layoutkit.draw.resistor_bank import ResistorSpec
from layoutkit.errors import GeometryError, LayoutkitError
from layoutkit.layout.workspace import Workspace
from layoutkit.technology.passive_sizes import (
    PassiveSize,
    capacitor_size,
    common_plates,
    mos_capacitor_size,
    rectangle_sides,
    resistor_size,
)
from layoutkit.tools.module_requests import Delivered, deliver, known_nets

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import klayout.db as kdb

    from layoutkit.draw.module import Module
    from layoutkit.technology import PassiveSpec, Technology

    PassiveDevice = Resistor | EqualRectangles | Bipolar

USUAL_TECHNOLOGY = "sky130A"  # the generic process has no such devices


def create_resistor(params: Mapping[str, Any]) -> dict[str, Any]:
    """Draw one resistor, or several that match, into the workspace's layout; return the tool's data.

    Raises:
        LayoutkitError: If the parameters, the workspace or the drawn cell are at fault.
    """
    tech, spec = _chosen(params, "resistor")
    size = _size(tech, spec, params, "r", lambda value: resistor_size(tech, spec, value, _width(tech, params)))
    size = PassiveSize(size.w_m, size.l_m, size.m, params.get("segments"))
    entries, nets = _entries(params)
    resistors = tuple(
        resistor(tech, entry["device_id"], spec.name, size, given) for entry, given in zip(entries, nets, strict=True)
    )
    bulk = nets[0].get("b") or f"{resistors[0].id}_B"
    if spec.conductor and params["dummies"]:
        details = {"param_name": "dummies", "provided_value": params["dummies"]}
        raise LayoutkitError(f"{spec.name} is of metal and has no dummies; leave them out", details=details)

    def draw(layout: kdb.Layout, cell: str) -> Module:
        spec = ResistorSpec(cell, resistors, bulk, params["dummies"], ring=params["ring"], labels=params["labels"])
        return draw_resistors(layout, tech, spec)

    delivered = _delivered(params, tech, "resistor", resistors, draw)
    return {
        **device_data(delivered, resistors[0].id, spec, resistors[0].width),
        "drawn": {entry.id: _drawn_resistor(tech, entry) for entry in resistors},
        **delivered.centroids(),
    }


def create_capacitor(params: Mapping[str, Any]) -> dict[str, Any]:
    """Draw a plate capacitor, several that match, or a MOS capacitor into the layout; return the tool's data.

    Raises:
        LayoutkitError: If the parameters, the workspace or the drawn cell are at fault.
    """
    tech, spec = _chosen(params, "capacitor")
    if spec.type == "mos_capacitor":
        return _mos_capacitor(tech, spec, params)
    entries, nets = _entries(params)
    sizes = _plates(tech, spec, params, entries)
    devices = [
        capacitor(tech, entry["device_id"], spec.name, size, given)
        for entry, size, given in zip(entries, sizes, nets, strict=True)
    ]
    first, pattern = devices[0], None
    if len(devices) > 1:
        if "columns" in params:
            raise GeometryError(
                "columns are for one capacitor; the columns of matched ones follow from their ratio",
                details={"param_name": "columns"},
            )
        dummy_net = params.get("dummy_net", first.n) if params["dummies"] else ""
        array, pattern = matched_capacitors(tech, "", devices, dummy_net=dummy_net, labels=params["labels"])
    delivered = _delivered(
        params,
        tech,
        "capacitor",
        devices,
        lambda layout, cell: (
            draw_capacitor_array(layout, tech, replace(array, name=cell))
            if len(devices) > 1
            else draw_plates(layout, tech, CapacitorSpec(cell, first, params.get("columns"), labels=params["labels"]))
        ),
    )
    data = {**device_data(delivered, first.id, spec, first.width), "drawn": _drawn_capacitor(tech, first)}
    if pattern is not None:
        data["array"] = {
            "drawn": {device.id: _drawn_capacitor(tech, device) for device in devices},
            "rows": [list(row) for row in reversed(pattern.rows)],
            **delivered.centroids(),
            "dispersion_um": {device: round(tech.to_um(value), 4) for device, value in pattern.dispersion.items()},
        }
    return data


def _mos_capacitor(tech: Technology, spec: PassiveSpec, params: Mapping[str, Any]) -> dict[str, Any]:
    """Draw a MOS capacitor; return the tool's data."""
    plain = [name for name in ("matched", "columns", "dummy_net") if name in params]
    if plain:
        raise GeometryError(
            f"{', '.join(plain)} belong to plate capacitors; {spec.name} is a MOS capacitor, which is drawn by itself",
            details={"param_name": plain[0]},
        )
    size = _size(tech, spec, params, "c", lambda value: mos_capacitor_size(tech, spec, value))
    nets = known_nets(params, params["device_id"], params.get("nets"))
    device = mos_capacitor(tech, params["device_id"], spec.name, size, nets)

    def draw(layout: kdb.Layout, cell: str) -> Module:
        return draw_mos_capacitor(layout, tech, cell, device, labels=params["labels"])

    delivered = _delivered(params, tech, "mos_capacitor", [device], draw, drawn_by="capacitor")
    return {**device_data(delivered, device.id, spec, device.width), "drawn": _drawn_capacitor(tech, device)}


def _plates(
    tech: Technology, spec: PassiveSpec, params: Mapping[str, Any], entries: Sequence[Mapping[str, Any]]
) -> list[PassiveSize]:
    """Return the plates of one capacitor, or of several that match: equal ones, as many as values or ``m`` ask for."""
    if len(entries) == 1:
        return [_size(tech, spec, params, "c", lambda value: capacitor_size(tech, spec, value))]
    stated = [entry["device_id"] for entry in entries if "c" in entry]
    if not stated:
        size = _size(tech, spec, params, "c", lambda value: capacitor_size(tech, spec, value))
        return [replace(size, m=int(entry.get("m", 1))) for entry in entries]
    if len(stated) < len(entries) or "l" in params:
        raise GeometryError(
            "matched capacitors state either w and l of one plate, and m of each, or c of each; "
            f"c is given for {', '.join(stated)} only"
            if len(stated) < len(entries)
            else "give either w and l, and m of each matched capacitor, or c of each",
            details={"param_name": "matched"},
        )
    size, counts = common_plates(tech, spec, [float(entry["c"]) * int(entry.get("m", 1)) for entry in entries])
    return [replace(size, m=count) for count in counts]


def create_diode(params: Mapping[str, Any]) -> dict[str, Any]:
    """Draw one junction diode into the workspace's layout; return the tool's data.

    Raises:
        LayoutkitError: If the parameters, the workspace or the drawn cell are at fault.
    """
    tech, spec = _chosen(params, "diode")
    nets = known_nets(params, params["device_id"], params.get("nets"))
    device = diode(tech, params["device_id"], spec.name, _rectangle(params), nets)

    def draw(layout: kdb.Layout, cell: str) -> Module:
        return draw_diode(layout, tech, cell, device, labels=params["labels"])

    delivered = _delivered(params, tech, "diode", [device], draw)
    metre = tech.dbu_um * 1e-6
    drawn = {
        **_drawn_sides(tech, device),
        "area": float(f"{device.width * device.length * metre**2:.9g}"),
        "perimeter": round(2 * (device.width + device.length) * metre, 12),
    }
    return {**device_data(delivered, device.id, spec, device.width), "drawn": drawn}


def _rectangle(params: Mapping[str, Any]) -> PassiveSize:
    """Return the size that ``w`` and ``l`` state, or ``area`` and perhaps ``perimeter``."""
    sides, area = {"w", "l"} & params.keys(), params.get("area")
    if bool(sides) == (area is not None) or (sides and ("perimeter" in params or len(sides) == 1)):
        raise GeometryError(
            "give either w and l, the sides of one rectangle, or its area and perhaps its perimeter",
            details={"param_name": "area"},
        )
    if area is None:
        return PassiveSize(float(params["w"]), float(params["l"]), int(params["m"]))
    perimeter = float(params.get("perimeter", 4 * float(area) ** 0.5))
    found = rectangle_sides(float(area), perimeter)
    if found is None:
        raise GeometryError(
            f"no rectangle has an area of {area:g} m2 and a perimeter of {perimeter:g} m; a square has "
            f"{4 * float(area) ** 0.5:g} m, any other rectangle more",
            details={"param_name": "perimeter"},
        )
    return PassiveSize(round(found[0], 12), round(found[1], 12), int(params["m"]))


def _chosen(params: Mapping[str, Any], kind: str) -> tuple[Technology, PassiveSpec]:
    """Return the technology and the device of a request, by default the usual one of ``kind``."""
    tech = Workspace(params.get("workspace")).technology(params.get("technology"), USUAL_TECHNOLOGY)
    return tech, tech.passive(params.get("device") or kind)


def _delivered(
    params: Mapping[str, Any],
    tech: Technology,
    kind: str,
    devices: Sequence[PassiveDevice],
    draw: Callable[[kdb.Layout, str], Module],
    drawn_by: str = "",
) -> Delivered:
    """Draw ``devices`` in a cell that is called after ``kind`` and them."""
    ids = [device.id for device in devices]
    named = {**params, "cell_name": "_".join([kind, *ids]), "drawn_by": drawn_by or kind}
    return deliver(named, tech, ids, draw)


def device_data(delivered: Delivered, device_id: str, spec: PassiveSpec, width: int) -> dict[str, Any]:
    """Return what the answers about every device hold."""
    return {
        **delivered.common_data(),
        "device_id": device_id,
        "device": spec.name,
        "model": spec.model_of(width * delivered.tech.dbu_um),
        "pins": delivered.net_pins(),
        "device_instances": delivered.instances(),
    }


def _width(tech: Technology, params: Mapping[str, Any]) -> int | None:
    return tech.snap(params["w"] * 1e6 / tech.dbu_um) if "w" in params else None


def _size(
    tech: Technology, spec: PassiveSpec, params: Mapping[str, Any], key: str, of_value: Callable[[float], PassiveSize]
) -> PassiveSize:
    """Return the size that ``w`` and ``l`` state, or the value ``key``; one of ``l`` and the value is needed."""
    if ("l" in params) == (key in params):
        raise GeometryError(
            f"give either l or {key}: l is the length as drawn, {key} the value it follows from",
            details={"param_name": key},
        )
    if key in params:
        size = of_value(float(params[key]))
        return replace(size, m=size.m * int(params["m"]))
    if "w" not in params and key == "c":
        raise GeometryError("give w with l", details={"param_name": "w"})
    width = params.get("w") or (spec.widths[0] if spec.widths else spec.min_w) * tech.dbu_um * 1e-6
    return PassiveSize(float(width), float(params["l"]), int(params["m"]))


def _entries(params: Mapping[str, Any]) -> tuple[list[Mapping[str, Any]], list[dict[str, str]]]:
    """Return the device of a request with those that match it, and the nets of each; raise if one is named twice."""
    entries = [params, *params.get("matched", [])]
    names = [entry["device_id"] for entry in entries]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise GeometryError(f"devices named twice: {', '.join(twice)}", details={"param_name": "matched"})
    return entries, [known_nets(params, entry["device_id"], entry.get("nets")) for entry in entries]


def _drawn_sides(tech: Technology, device: PassiveDevice, bars: int = 1) -> dict[str, Any]:
    metre = tech.dbu_um * 1e-6
    return {"w": round(device.width * metre, 12), "l": round(device.length * bars * metre, 12), "m": device.m}


def _drawn_resistor(tech: Technology, device: Resistor) -> dict[str, Any]:
    return {
        **_drawn_sides(tech, device, device.segments),
        "segments": device.segments,
        "segment_length_um": tech.to_um(device.length),
        "r": round(device.ohm, 6),
    }


def _drawn_capacitor(tech: Technology, device: Capacitor | MosCapacitor) -> dict[str, Any]:
    return {
        **_drawn_sides(tech, device),
        "series": device.series if isinstance(device, Capacitor) else 1,
        "c": float(f"{device.farad(tech.dbu_um):.9g}"),
    }


def create_bipolar_array(params: Mapping[str, Any]) -> dict[str, Any]:
    """Draw one bipolar transistor, or several that match, into the workspace's layout; return the tool's data.

    Raises:
        LayoutkitError: If the parameters, the workspace or the drawn cell are at fault.
    """
    tech, spec = _chosen(params, KIND)
    entries, known = _entries(params)
    width, length = _emitter(tech, spec, params)
    substrate: str | None = None
    devices = []
    for entry, nets in zip(entries, known, strict=True):
        shared = "c" if spec.kind.substrate else "s"
        substrate = substrate or nets.get(shared) or f"{entry['device_id']}_{shared.upper()}"
        size = PassiveSize(width, length, int(entry.get("m", 1)))
        devices.append(bipolar(tech, entry["device_id"], spec.name, size, {shared: substrate, **nets}))
    pattern = tuple(params.get("pattern", ()))
    units = sum(device.m for device in devices)
    dummies = int(params.get("dummies", 1 if units > 1 else 0))

    def draw(layout: kdb.Layout, cell: str) -> Module:
        return draw_bipolars(layout, tech, BipolarSpec(cell, tuple(devices), dummies, pattern, labels=params["labels"]))

    delivered = _delivered(params, tech, "bipolar", devices, draw)
    module, metre = delivered.module, tech.dbu_um * 1e-6
    drawn = devices[0]
    return {
        **device_data(delivered, drawn.id, spec, drawn.width),
        "drawn": {
            device.id: {
                **_drawn_sides(tech, device),
                "area": float(f"{drawn.width * drawn.length * metre**2 * device.m:.9g}"),
            }
            for device in devices
        },
        "pattern": as_text(rows_of(pattern, [device.m for device in devices])),
        "dummies": sum(not gate.device for gate in module.gates),
        **delivered.centroids(digits=4),
        "dispersion_um": {device: round(tech.to_um(_dispersion(module, device)), 4) for device in module.devices},
    }


def _emitter(tech: Technology, spec: PassiveSpec, params: Mapping[str, Any]) -> tuple[float, float]:
    """Return the sides of the emitter that the request states, else those of the flavour. [m]"""
    sides = {name: float(params[name]) for name in ("w", "l") if name in params}
    if len(sides) == 1:
        raise GeometryError("give both w and l, the sides of the emitter, or neither", details={"param_name": "w"})
    if sides and "emitters" in params:
        raise GeometryError("give w and l, or emitters, not both", details={"param_name": "emitters"})
    if sides:
        return sides["w"], sides["l"]
    metre = tech.dbu_um * 1e-6
    width, length = spec.only_size or spec.usual_size or (spec.min_w, spec.min_l)
    if spec.cell is not None:
        width = spec.min_w * int(params.get("emitters", 1))
    elif "emitters" in params:
        raise GeometryError(
            f"{spec.name} has one emitter in each unit; state the number of units as m",
            details={"param_name": "emitters"},
        )
    return round(width * metre, 12), round(length * metre, 12)


def _dispersion(module: Module, device: str) -> float:
    """Return the root mean square distance of the emitters of ``device`` from the centre of all. [dbu]"""
    places = [(instance.x, instance.y) for instance in module.instances if instance.parent == device]
    every = [(instance.x, instance.y) for instance in module.instances]
    x, y = (sum(place[axis] for place in every) / len(every) for axis in (0, 1))
    return sqrt(sum((at[0] - x) ** 2 + (at[1] - y) ** 2 for at in places) / len(places))
