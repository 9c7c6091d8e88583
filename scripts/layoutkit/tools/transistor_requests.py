"""The tools that draw transistors: one alone, matched ones, and current mirrors.

``layout.create_nmos_pcell``, ``layout.create_pmos_pcell``: one transistor.

``layout.create_common_centroid_pair``: two or more matched transistors with a common centroid.

``layout.create_current_mirror``: a simple or cascode current mirror of matched units.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from math import lcm
from typing import TYPE_CHECKING, Any

from layoutkit.draw.group import MirrorSpec, PairSpec, check_ratios, draw_mirror, draw_pair, drawn_ratios
from layoutkit.draw.mos import MosSize, MosSpec, Transistor, compact_rows, draw_mos, transistor
from layoutkit.errors import DeviceNotFoundError, GeometryError
from layoutkit.extract.surroundings import MirrorImage, mirror_image
from layoutkit.technology.finger_widths import FingeredWidth, dividing_fingers, one_finger_width, widest_finger
from layoutkit.tools.module_requests import (
    Delivered,
    deliver,
    drawn_size,
    in_deep_well,
    known_nets,
    planned_figures,
    ring_style,
    technology_of,
    terminal_pins,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import klayout.db as kdb

    from layoutkit.draw.module import Module
    from layoutkit.technology import Technology

    Devices = list[dict[str, Any]]


def create_mos(device_type: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """Draw one transistor into the workspace's layout and return the data of ``layout.create_<device_type>_pcell``.

    Raises:
        LayoutkitError: If the parameters, the workspace or the drawn cell are at fault.
    """
    flavour = params.get("device") or device_type
    tech = technology_of(params, flavour)
    nets = known_nets(params, params["device_id"], params.get("nets"))
    (requested,) = with_dividing_fingers(tech, [{**params, "type": device_type}], flavour)
    device = requested_transistor(tech, requested, flavour, nets)
    cell_name = f"{device_type}_{device.id}"

    def draw(layout: kdb.Layout, name: str) -> Module:
        spec = MosSpec(device, name, dummies=params["dummies"], labels=params["labels"], ring=ring_style(params))
        spec = replace(spec, rows=params["rows"] if "rows" in params else compact_rows(tech, spec))
        return in_deep_well(params, tech, draw_mos(layout, tech, spec), device.spec)

    delivered = deliver({**params, "cell_name": cell_name, "drawn_by": device_type}, tech, [device.id], draw)
    return {
        **delivered.common_data(),
        "device_id": device.id,
        "device_type": device_type,
        "device": device.spec.name,
        "model": device.spec.model,
        "pins": terminal_pins(delivered, device),
        "net_pins": delivered.net_pins(),
        "drawn": drawn_size(device, delivered),
    }


def requested_transistor(
    tech: Technology, device: Mapping[str, Any], flavour: str | None, nets: Mapping[str, str]
) -> Transistor:
    """Return the transistor that ``device`` describes.

    Args:
        tech: Process.
        device: ``device_id``, ``type``, ``w``, ``l`` [m], ``m``, ``nf``, and ``asked_nf`` if the request has another
            number of fingers.
        flavour: Device of the technology; None for the usual one of the type.
        nets: Terminal to net.

    Raises:
        GeometryError: If its size is not allowed, or ``flavour`` is of another type.
    """
    spec = tech.device(flavour or device["type"])
    if spec.type != device["type"]:
        raise GeometryError(
            f"device '{flavour}' of {tech.name} is of type {spec.type}, {device['device_id']} of type {device['type']}"
        )
    size = MosSize(float(device["w"]), float(device["l"]), device.get("nf", 1), device.get("m", 1))
    made = transistor(tech, device["device_id"], spec.name, size, nets)
    if "asked_nf" not in device:
        return made
    change = f"nf {device['asked_nf']} became {size.nf}, which keeps w {size.w_m * 1e6:.6g} um on the grid"
    return replace(made, warnings=(*made.warnings, f"{made.id}: {change}"))


def with_dividing_fingers(
    tech: Technology, devices: Sequence[Mapping[str, Any]], flavour: str | None, units: int = 1
) -> list[dict[str, Any]]:
    """Return ``devices``, where possible with numbers of fingers that keep their widths on the grid.

    Args:
        tech: Process.
        devices: As for ``requested_transistor``.
        flavour: As there.
        units: Number of equal parts that each device is split into.
    """
    widths = []
    for device in devices:
        spec = tech.device(flavour or device["type"])
        parts = units // math.gcd(units, device.get("m", 1))
        total, nf = float(device["w"]) * 1e6 / tech.dbu_um, device.get("nf", 1)
        widest = widest_finger(tech, spec)
        allowed = spec.max_w or math.inf
        widths.append(FingeredWidth(device["device_id"], spec.name, total, nf, spec.min_w, widest, parts, allowed))
    counts = dividing_fingers(widths, tech.grid)
    return [
        {**device, "nf": counts[width.device], "asked_nf": width.fingers} if width.device in counts else dict(device)
        for device, width in zip(devices, widths, strict=True)
    ]


def create_common_centroid_pair(params: Mapping[str, Any]) -> dict[str, Any]:
    """Draw matched transistors into the workspace's layout and return the data of the tool.

    Raises:
        LayoutkitError: If the parameters, the workspace or the drawn cell are at fault.
    """
    sizes = [params["device_a"], params["device_b"], *params["more_devices"]]
    tech = _technology_of_matched(params, sizes)
    devices = _devices(params, tech, sizes)
    first, second, *others = devices
    spacing, ring = tech.to_dbu(params["spacing"]), ring_style(params)

    def draw(layout: kdb.Layout, name: str) -> Module:
        spec = PairSpec(
            name,
            first,
            second,
            arrangement=params["arrangement"],
            axis=params["symmetry_axis"],
            spacing=spacing,
            interdigitate=params["interdigitate"],
            dummies=params["dummies"],
            labels=params["labels"],
            ring=ring,
            others=tuple(others),
        )
        return in_deep_well(params, tech, draw_pair(layout, tech, spec), first.spec)

    delivered = deliver({**params, "drawn_by": "pair"}, tech, [device.id for device in devices], draw)
    module = delivered.module
    return {
        **delivered.common_data(),
        "arrangement": params["arrangement"],
        "pattern": module.pattern,
        "figures": planned_figures(module, tech),
        "device_instances": delivered.instances(),
        "symmetry_info": _symmetry(params["symmetry_axis"], delivered),
        "anchors": _anchors(delivered),
        "pins": delivered.net_pins(),
        **delivered.centroids(),
        "drawn": {device.id: drawn_size(device, delivered) for device in devices},
    }


def _technology_of_matched(params: Mapping[str, Any], devices: Sequence[Mapping[str, Any]]) -> Technology:
    """Return the technology of a request; raise if the devices are of several types."""
    types = [device["type"] for device in devices]
    if len(set(types)) > 1:
        raise GeometryError("Devices must be same type for matching", details={"types": types})
    return technology_of(params, params.get("device") or types[0])


def _devices(params: Mapping[str, Any], tech: Technology, sizes: Sequence[Mapping[str, Any]]) -> list[Transistor]:
    """Return the transistors; where no nets are known they share source and bulk, as a differential pair does."""
    shared = f"{sizes[0]['device_id']}_{sizes[1]['device_id']}"
    found = []
    for device in with_dividing_fingers(tech, sizes, params.get("device"), units=2):
        given = params.get("nets", {}).get(device["device_id"])
        nets = {"s": f"{shared}_S", "b": f"{shared}_B", **known_nets(params, device["device_id"], given)}
        found.append(requested_transistor(tech, device, params.get("device"), nets))
    return found


def _symmetry(axis: str, delivered: Delivered) -> dict[str, Any]:
    module = delivered.module
    units = [instance.id for instance in module.instances]
    opposite = list(zip(units, reversed(units), strict=True))[: len(units) // 2]
    channels = {gate.box: gate.device for gate in module.gates if gate.device}
    idle = {gate.box for gate in module.gates if not gate.device}
    image = mirror_image(module.cell, delivered.tech, channels, idle, (axis,))
    return {
        "axis": axis,
        "center": delivered.point(*_middle(module)),
        "matched_pairs": [list(pair) for pair in opposite],
        "geometry_symmetric": image.symmetric,
        **({} if image.symmetric else {"asymmetry": _asymmetry(image)}),
    }


def _asymmetry(image: MirrorImage) -> str:
    """Return what differs between a module and its mirror image, and what that means beside the centroid error."""
    first = image.differences[0]
    what = first.get("what") or f"{first['area_um2']:g} um2 of {first['layer']} differ"
    return f"{what}; this is no offset between the centroids, of which centroid_error_um is the measure"


def _middle(module: Module) -> tuple[float, float]:
    """Return the middle of all channels, which the units lie around."""
    boxes = [gate.box for gate in module.gates if gate.device]
    x = (min(box.left for box in boxes) + max(box.right for box in boxes)) / 2
    return x, (min(box.bottom for box in boxes) + max(box.top for box in boxes)) / 2


def _anchors(delivered: Delivered) -> dict[str, Any]:
    x, y = delivered.point(*_middle(delivered.module))
    box = delivered.common_data()["bounding_box"]
    return {"center": [x, y], "left": [box["x"], y], "right": [round(box["x"] + box["width"], 6), y]}


def create_current_mirror(params: Mapping[str, Any]) -> dict[str, Any]:
    """Draw a current mirror into the workspace's layout and return the data of the tool.

    Raises:
        LayoutkitError: If the parameters, the workspace or the drawn cell are at fault.
    """
    tech = _technology_of_matched(params, params["devices"])
    lower, upper = _roles(params)
    mirror, cascodes = _transistors(params, tech, lower, upper)
    check_ratios(mirror, {name: r for name, r in params.get("matching_ratio", {}).items() if name not in _ids(upper)})
    spec = MirrorSpec(
        "", mirror, cascodes, params["arrangement"], params["dummies"], params["labels"], ring_style(params)
    )

    def draw(layout: kdb.Layout, name: str) -> Module:
        return in_deep_well(params, tech, draw_mirror(layout, tech, replace(spec, name=name)), mirror[0].spec)

    delivered = deliver({**params, "drawn_by": "mirror"}, tech, [device.id for device in (*mirror, *cascodes)], draw)
    module, data = delivered.module, delivered.common_data()
    if mirror[0].drain != mirror[0].gate and not cascodes:
        data["warnings"].append(f"the reference {mirror[0].id} is not diode-connected: its drain is {mirror[0].drain}")
    units = sum(instance.parent == mirror[0].id for instance in module.instances)
    nodes = {"gate": mirror[0].gate, "source": mirror[0].source, "bulk": mirror[0].bulk}
    return {
        **data,
        "mirror_type": params["mirror_type"],
        "arrangement": params["arrangement"],
        "pattern": module.pattern,
        "figures": planned_figures(module, tech),
        "device_instances": delivered.instances(),
        "matching_info": {
            "reference": mirror[0].id,
            "mirrors": {name: float(ratio) for name, ratio in drawn_ratios(mirror).items() if name != mirror[0].id},
            "unit_width": round(mirror[0].width / units * tech.dbu_um * 1e-6, 12),
        },
        "common_nodes": {**nodes, "cascode_gate": cascodes[0].gate} if cascodes else nodes,
        "pins": delivered.net_pins(),
        **delivered.centroids([device.id for device in mirror]),
        "drawn": {device.id: drawn_size(device, delivered) for device in (*mirror, *cascodes)},
    }


def _roles(params: Mapping[str, Any]) -> tuple[Devices, Devices]:
    """Return the mirror devices, reference first, and the cascodes above them, in the same order."""
    devices = [_with_m(params, device) for device in params["devices"]]
    ids = _ids(devices)
    reference = params.get("reference_device", ids[0])
    if reference not in ids:
        raise DeviceNotFoundError(
            f"Device '{reference}' not found among the mirror's devices: {', '.join(ids)}",
            details={"param_name": "reference_device", "provided_value": reference, "available_devices": ids},
        )
    if params["mirror_type"] == "simple":
        return sorted(devices, key=lambda device: device["device_id"] != reference), []
    if len(devices) % 2:
        raise GeometryError(f"a cascode mirror needs an even number of devices, got {len(devices)}")
    nets = {name: known_nets(params, name, params.get("nets", {}).get(name)) for name in ids}
    below = {nets[name]["d"]: name for name in ids if "d" in nets[name]}
    standing = {name: below[nets[name]["s"]] for name in ids if nets[name].get("s") in below}
    if len(standing) != len(devices) // 2:
        half = len(devices) // 2
        standing = dict(zip(ids[half:], ids[:half], strict=True))
    if reference in standing:
        raise GeometryError(f"reference_device {reference} is a cascode; name the mirror device {standing[reference]}")
    lower = sorted((d for d in devices if d["device_id"] not in standing), key=lambda d: d["device_id"] != reference)
    by_below = {standing[d["device_id"]]: d for d in devices if d["device_id"] in standing}
    ms = {d["device_id"]: d.get("m", 1) for d in lower}
    return lower, [{"m": ms[name], **by_below[name]} for name in _ids(lower) if name in by_below]


def _with_m(params: Mapping[str, Any], device: dict[str, Any]) -> dict[str, Any]:
    """Return ``device`` with the m that matching_ratio requires, where no device states any m."""
    ratios = params.get("matching_ratio", {})
    if device["device_id"] not in ratios or any("m" in other for other in params["devices"]):
        return device
    parts = {name: Fraction(ratio).limit_denominator(64) for name, ratio in ratios.items()}
    return {**device, "m": int(parts[device["device_id"]] * lcm(*(part.denominator for part in parts.values())))}


def _transistors(
    params: Mapping[str, Any], tech: Technology, lower: Devices, upper: Devices
) -> tuple[tuple[Transistor, ...], tuple[Transistor, ...]]:
    """Return mirror and cascode transistors; nets that are not known follow the usual mirror."""
    both = with_dividing_fingers(tech, [*lower, *upper], params.get("device"))
    lower, upper = both[: len(lower)], both[len(lower) :]
    rail = "vss" if lower[0]["type"] == "nmos" else "vdd"

    def made(device: dict[str, Any], usual: dict[str, str]) -> Transistor:
        name = device["device_id"]
        nets = {**usual, **known_nets(params, name, params.get("nets", {}).get(name))}
        return requested_transistor(tech, device, params.get("device"), nets)

    mirror = []
    for i, device in enumerate(lower):
        drain = {"d": "bias"} if i == 0 else {}
        mirror.append(made(device, {"g": "bias", "s": rail, "b": rail, **drain}))
    mirror = _of_one_width(tech, mirror)
    cascodes = []
    for i, (device, below) in enumerate(zip(upper, mirror, strict=False)):
        drain = {"d": "bias_cascode"} if i == 0 else {}
        cascodes.append(made(device, {"g": "bias_cascode", "s": below.drain, "b": below.bulk, **drain}))
    return tuple(mirror), tuple(_of_one_width(tech, cascodes))


def _of_one_width(tech: Technology, transistors: list[Transistor]) -> list[Transistor]:
    """Return the transistors with fingers of one width, told in a warning; as they are if there is no such width."""
    if len({t.finger_width for t in transistors}) < 2 or len({t.spec.name for t in transistors}) > 1:
        return transistors
    spec, narrowest = transistors[0].spec, min(t.finger_width for t in transistors)
    limits = (spec.min_w, widest_finger(tech, spec))
    width = one_finger_width([t.width for t in transistors], narrowest, limits, tech.grid)
    if not width:
        return transistors
    text = f"drawn with fingers of {tech.to_um(width):g} um, which divide the widths of all devices of the mirror"
    return [
        t
        if t.finger_width == width
        else replace(t, finger_width=width, nf=t.width // width, m=1, warnings=(*t.warnings, f"{t.id}: {text}"))
        for t in transistors
    ]


def _ids(devices: Devices) -> list[str]:
    return [device["device_id"] for device in devices]
