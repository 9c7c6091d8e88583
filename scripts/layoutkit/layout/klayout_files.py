"""Generate KLayout's files for a technology: the technology (.lyt) and its layer properties (.lyp).

Both are XML for KLayout 0.28 and later, written without KLayout, so that the same technology gives the same bytes. A
layer is listed as ``met1 - 68/20``. The technology contains the connectivity for KLayout's net tracer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

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
    from layoutkit.templates import rendered  # which KLayout's window lacks

    return rendered("technology.lyt", technology=technology, connections=list(_connections(technology))).encode()


def layer_properties_xml(technology: Technology) -> bytes:
    """Return the ``.lyp`` file of ``technology``: its layers in the order of its file, then the layer for errors."""
    from layoutkit.templates import rendered

    colors = layer_colors(technology)
    layers = [(s.name, s.gds, colors[s.name], _pattern(technology, s), 1) for s in technology.layers.values()]
    layers.append(("drawing error", error_layer(technology), ERROR_COLOR, _HOLLOW, 3))
    return rendered("layers.lyp", layers=layers).encode()


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
