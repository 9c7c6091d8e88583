"""Generate KLayout's files for a technology: the technology (.lyt) and its layer properties (.lyp).

Both are XML for KLayout 0.28 and later, written without KLayout, so that the same technology gives the same bytes. A
layer is listed as ``met1 - 68/20``. The technology contains the connectivity for KLayout's net tracer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

if TYPE_CHECKING:
    from collections.abc import Iterator

    from layoutkit.technology import LayerSpec, Technology

ERROR_COLOR = "#ff0000"
_ERROR_LAYER = 999
_SOLID, _HOLLOW = "I0", "I1"
_ACTIVE, _POLY = "I5", "I9"
_WIRES = ("I4", "I6", "I8", "I11", "I10", "I7")
_COLORS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf", "#e377c2", "#8c564b")


def technology_xml(technology: Technology) -> bytes:
    """Return the ``.lyt`` file of ``technology``; it names ``<name>.lyp`` beside it as its layer properties."""
    root = ET.Element("technology")
    for tag, text in (
        ("name", technology.name),
        ("description", technology.description),
        ("group", ""),
        ("dbu", f"{technology.dbu_um:g}"),
        ("default-grids", f"{technology.to_um(technology.grid):g}!"),
        ("base-path", ""),
        ("original-base-path", ""),
        ("layer-properties_file", f"{technology.name}.lyp"),
        ("add-other-layers", "true"),
    ):
        ET.SubElement(root, tag).text = text
    stack = ET.SubElement(ET.SubElement(root, "connectivity"), "stack")
    ET.SubElement(stack, "name").text = "wiring"
    ET.SubElement(stack, "description").text = "Sources and drains, poly and all metals"
    for connection in _connections(technology):
        ET.SubElement(stack, "connection").text = connection
    return xml_document(root)


def layer_properties_xml(technology: Technology) -> bytes:
    """Return the ``.lyp`` file of ``technology``: its layers in the order of its file, then the layer for errors."""
    root = ET.Element("layer-properties")
    colors = layer_colors(technology)
    for spec in technology.layers.values():
        title = f"{spec.name} - {spec.gds[0]}/{spec.gds[1]}"
        _properties(root, title, spec.gds, colors[spec.name], _pattern(technology, spec))
    error = error_layer(technology)
    _properties(root, f"drawing error - {error[0]}/{error[1]}", error, ERROR_COLOR, _HOLLOW)
    ET.SubElement(root, "name")
    return xml_document(root)


def layer_colors(technology: Technology) -> dict[str, str]:
    """Return the colour ``#rrggbb`` of each layer: that of the technology file, else one of a list."""
    return {
        spec.name: spec.color or _COLORS[index % len(_COLORS)] for index, spec in enumerate(technology.layers.values())
    }


def error_layer(technology: Technology) -> tuple[int, int]:
    """Return the GDS layer, not used by the technology, for the error messages of PCells."""
    used = {spec.gds for spec in technology.layers.values()}
    return next((_ERROR_LAYER, datatype) for datatype in range(len(used) + 1) if (_ERROR_LAYER, datatype) not in used)


def _connections(technology: Technology) -> Iterator[str]:
    """Yield the connected layers with their contact or via, in the syntax of KLayout's net tracer."""

    def source(name: str) -> str:
        number, datatype = technology.spec(name).gds
        return f"{number}/{datatype}"

    contact, first = source(technology.contact.layer), source(technology.conductors[0].layer)
    poly, active = source("poly"), source("active")
    yield f"{poly},{contact},{first}"
    yield f"{active}-{poly},{contact},{first}"  # without the channel, which does not conduct
    tap = source("tap") if technology.role("tap") else active
    if tap != active:
        yield f"{tap},{contact},{first}"
    layer_of = {conductor.name: conductor.layer for conductor in technology.conductors}
    for cut in technology.cuts:
        yield f"{source(layer_of[cut.below])},{source(cut.layer)},{source(layer_of[cut.above])}"


def _pattern(technology: Technology, spec: LayerSpec) -> str:
    wires = [technology.resolve(conductor.layer) for conductor in technology.conductors]
    cuts = {technology.resolve(cut.layer) for cut in (technology.contact, *technology.cuts)}
    if spec.name in wires:
        return _WIRES[wires.index(spec.name) % len(_WIRES)]
    if spec.name in cuts:
        return _SOLID
    if spec.name == technology.role("poly"):
        return _POLY
    return _ACTIVE if spec.name in {technology.role("active"), technology.role("tap")} else _HOLLOW


def _properties(root: ET.Element, name: str, gds: tuple[int, int], color: str, pattern: str) -> None:
    entry = ET.SubElement(root, "properties")
    for tag, text in (
        ("frame-color", color),
        ("fill-color", color),
        ("frame-brightness", "0"),
        ("fill-brightness", "0"),
        ("dither-pattern", pattern),
        ("valid", "true"),
        ("visible", "true"),
        ("transparent", "false"),
        ("width", "3" if color == ERROR_COLOR and gds[0] == _ERROR_LAYER else "1"),
        ("marked", "false"),
        ("animation", "0"),
        ("name", name),
        ("source", f"{gds[0]}/{gds[1]}@1"),
    ):
        ET.SubElement(entry, tag).text = text


def xml_document(root: ET.Element) -> bytes:
    """Return ``root`` as an indented UTF-8 document."""
    ET.indent(root, " ")
    text: str = ET.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="utf-8"?>\n{text}\n'.encode()
