"""Where labels name the nets of a layout, and which way the currents of transistors flow through them."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from layoutkit.extract.current_limits import INTO, OUT_OF, NetLoad

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import klayout.db as kdb

    from layoutkit.technology import Technology

INWARDS = {("nmos", "s"), ("pmos", "d")}
"""Terminals from which current flows into their net; it flows from the net into the other source or drain."""


def roles_of(kind: str, terminals: Mapping[str, str]) -> dict[str, str]:
    """Return for each net of a device whether its current flows into the net or out of it; empty if not known."""
    if kind not in {"nmos", "pmos"}:
        return {net: "" for name, net in terminals.items() if name in {"p", "n"}}
    if terminals["d"] == terminals["s"]:
        return {}
    return {terminals[name]: INTO if (kind, name) in INWARDS else OUT_OF for name in ("d", "s")}


def label_places(cell: kdb.Cell, technology: Technology) -> dict[str, list[tuple[str, int, int]]]:
    """Return the conductors and places at which a cell's own labels name a net. [dbu]"""
    import klayout.db as kdb

    found: dict[str, list[tuple[str, int, int]]] = {}
    for conductor in technology.conductors:
        index = cell.layout().find_layer(*technology.spec(conductor.label_layer).gds)
        if index is not None:
            for shape in cell.shapes(index).each(kdb.Shapes.STexts):
                found.setdefault(shape.text_string, []).append((conductor.name, shape.text.x, shape.text.y))
    return {net: sorted(places) for net, places in found.items()}


def labelled_loads(
    cell: kdb.Cell, technology: Technology, devices: Iterable[Mapping[str, Any]], currents: Mapping[str, float]
) -> dict[str, NetLoad]:
    """Return what is known of nets that labels of a cell name.

    Args:
        cell: The layout.
        technology: Its process.
        devices: Those of the circuit, as its JSON data; they state which way a transistor's current flows.
        currents: Net to its largest direct current. [A]
    """
    labels = label_places(cell, technology)
    terminals: dict[str, dict[str, str]] = defaultdict(dict)
    for device in devices:
        if device.get("type") in {"nmos", "pmos"}:
            for net, role in roles_of(device["type"], device["terminals"]).items():
                terminals[net][device["id"]] = role
    return {
        net: NetLoad(tuple(labels.get(net, ())), tuple(labels.get(net, ())), terminals[net], current * 1e3)
        for net, current in currents.items()
    }
