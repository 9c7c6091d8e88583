"""The nets and devices of a finished layout as data for a page: what the extraction for LVS found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from layoutkit.view.drawing_data import shapes_data

if TYPE_CHECKING:
    from collections.abc import Mapping

    import klayout.db as kdb

    from layoutkit.circuit.circuit import Circuit
    from layoutkit.extract.extracted import DrawnFinger, Extraction, Point
    from layoutkit.lvs.lvs_result import LvsResult

DIFFUSIONS = {"n_sd": "active", "p_sd": "active", "n_tap": "tap", "p_tap": "tap"}
"""Extracted diffusions and the role of the layer that they are drawn on."""


def nets_data(result: LvsResult, circuit: Circuit) -> dict[str, Any]:
    """Return nets, devices and labels of the layout; coordinates in database units, as ``view.drawing_data`` has them.

    Args:
        result: The comparison of the layout with its netlist; nets and devices have the netlist's names where the two
            were paired.
        circuit: The netlist's circuit.
    """
    extraction = result.extraction
    layers = _drawn_layers(extraction)
    ids = sorted(extraction.nets)
    names = {net: _net_name(result, net) for net in ids}
    pins: dict[str, list[str]] = {}
    for device in circuit.devices:
        for terminal, net in device.terminals.items():
            pins.setdefault(net, []).append(f"{device.id}.{terminal}")
    nets = [
        {"name": names[net], "pins": pins.get(names[net], []), "shapes": _net_shapes(extraction, net, layers)}
        for net in ids
    ]
    unit = extraction.layout.dbu
    labels = [
        [label.text, round(label.place.x / unit), round(label.place.y / unit)]
        for net in ids
        for label in extraction.nets[net].labels
    ]
    return {"nets": nets, "devices": _devices(result, circuit, names), "labels": sorted(labels)}


def _net_name(result: LvsResult, net: int) -> str:
    own = result.extraction.nets[net].name
    return result.nets.get(net) or result.net_pairs.get(own) or own


def _drawn_layers(extraction: Extraction) -> dict[str, str]:
    """Return each conductor of the extraction with the layer that it is drawn on; cuts are left out."""
    technology = extraction.technology
    layers = {"nwell": technology.role("nwell"), "deep_nwell": technology.role("deep_nwell")}
    for name, role in DIFFUSIONS.items():
        layers[name] = technology.role(role) or technology.role("active")
    layers["poly"] = technology.role("poly")
    layers |= {conductor.name: technology.resolve(conductor.layer) for conductor in technology.conductors}
    for name, spec in technology.passives.items():
        if "plate" in spec.parts:
            layers[f"plate.{name}"] = technology.resolve(spec.parts["plate"])
    known = set(extraction.lvs.layer_names())
    return {name: layer for name, layer in layers.items() if layer is not None and name in known}


def _net_shapes(extraction: Extraction, net: int, layers: Mapping[str, str]) -> dict[str, Any]:
    """Return the merged shapes of a net by the layer that they are drawn on."""
    merged: dict[str, kdb.Region] = {}
    for name, layer in layers.items():
        shapes = extraction.shapes(net, name)
        if not shapes.is_empty():
            merged[layer] = merged[layer] + shapes if layer in merged else shapes
    return {layer: shapes_data(region.merged().each()) for layer, region in merged.items()}


def _devices(result: LvsResult, circuit: Circuit, names: Mapping[int, str]) -> list[dict[str, Any]]:
    """Return each device with the boxes of its channels, bars or plates; dummies together as one without a name.

    Its nets are those of the netlist, or of the layout where the netlist has no such device.
    """
    extraction = result.extraction
    boxes = _boxes_by_centre(extraction)
    given = {device.id: dict(device.terminals) for device in circuit.devices}
    found: dict[str, dict[str, Any]] = {}

    def add(name: str, kind: str, finger: DrawnFinger) -> None:
        drawn = {terminal: names.get(net, "") for terminal, net in sorted(finger.nets.items())} if name else {}
        entry = found.setdefault(name, {"name": name, "is": kind, "nets": given.get(name, drawn), "boxes": []})
        entry["boxes"] += boxes.get(finger.place, [])

    for device in extraction.devices:
        paired = result.device_pairs.get(device.id, ())
        for finger in device.fingers:
            name = finger.text if finger.text and (finger.text in paired or not paired) else "".join(paired[:1])
            add(name or device.id, device.device, finger)
    for finger in extraction.dummies:
        add("", finger.device, finger)
    return [found[name] for name in sorted(found)]


def _boxes_by_centre(extraction: Extraction) -> dict[Point, list[int]]:
    """Return the boxes [left, bottom, width, height] of all channels, bars and plates, by their centres."""
    from layoutkit.extract.extracted import point_um

    unit, found = extraction.layout.dbu, {}
    for name in extraction.lvs.layer_names():
        if name.startswith(("gate.", "core.", "plate.")):
            for polygon in extraction.lvs.polygons_by_name(name).each_merged():
                box = polygon.bbox()
                found[point_um(box.center(), unit)] = [box.left, box.bottom, box.width(), box.height()]
    return found
