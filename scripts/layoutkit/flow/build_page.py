"""What the page of a finished build shows beside its report: nets, devices, command, options, versions and digests."""

from __future__ import annotations

import hashlib
import json
import shlex
from typing import TYPE_CHECKING, Any

from layoutkit.flow.design import LayoutRequest
from layoutkit.flow.summary import faults
from layoutkit.layout.reports import CIRCUIT, LAYOUT, sha256_of
from layoutkit.view.drawing_data import drawing_data, shapes_data
from layoutkit.view.report_page import ReportInputs, report_page

if TYPE_CHECKING:
    from collections.abc import Mapping

    import klayout.db as kdb

    from layoutkit.circuit.circuit import Circuit
    from layoutkit.extract.extracted import DrawnFinger, Extraction, Point
    from layoutkit.flow.stage_record import StageRecord
    from layoutkit.lvs.lvs_result import LvsResult

PROGRAMS = ("analog-layout-skills", "klayout")


def build_page(
    report: Mapping[str, Any],
    record: StageRecord,
    circuit: Circuit,
    result: LvsResult,
    cell: kdb.Cell,
    png: bytes,
) -> str:
    """Return the page of a build whose stages are all finished, without their times.

    Args:
        report: Report of the build.
        record: Holds its options.
        circuit: What was laid out.
        result: Comparison of the layout with it; its nets are shown.
        cell: The finished layout.
        png: Picture of it.
    """
    options, (technology, sha256) = record.options, record.technology
    versions = {name: release for name in PROGRAMS if (release := _release(name))}
    return report_page(
        ReportInputs(
            report={"remaining_stages": [], **report},
            circuit=circuit.to_json(),
            drawing=drawing_data(cell, result.extraction.technology),
            nets=nets_data(result, circuit),
            picture=png,
            faults=faults(report),
            command=_command(options, technology),
            options=options,
            versions=versions,
            digests={
                LAYOUT: report[LAYOUT],
                CIRCUIT: report[CIRCUIT],
                "netlist": _digest(record.options, "netlist_path", "netlist_text"),
                "constraints file": _digest(record.options, "constraints", ""),
                "technology file": sha256,
            },
        )
    )


def _release(name: str) -> str:
    """Return the version of an installed program; empty if it is not installed as one, such as in a copied skill."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def _digest(options: Mapping[str, Any], path: str, text: str) -> str | None:
    """Return the SHA-256 of the file or the text that an option gives, None where it gives none."""
    given, written = options.get(path), options.get(text)
    if isinstance(given, str):
        return sha256_of(given)
    return hashlib.sha256(written.encode()).hexdigest() if isinstance(written, str) else None


def _command(options: Mapping[str, Any], technology: str) -> str:
    """Return the command with all options that are not the usual ones; it names files with their folders."""
    usual = json.loads(json.dumps(vars(LayoutRequest())))
    params = {"technology": technology, **{name: value for name, value in options.items() if value != usual.get(name)}}
    params["seed"] = options.get("seed", usual["seed"])
    words = [
        "skillpack",
        "run",
        "flow.build_layout",
        "--params",
        json.dumps(params, ensure_ascii=False, sort_keys=True),
    ]
    return shlex.join(words)


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
