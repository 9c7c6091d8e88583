"""The resistor networks of all nets of a layout."""

from __future__ import annotations

from typing import TYPE_CHECKING

import klayout.db as kdb

from layoutkit.parasitics.net_network import NetNetwork, net_network
from layoutkit.parasitics.net_parasitics import TerminalResistance
from layoutkit.parasitics.net_resistance import CONTACT, POLY, WireExtractor
from layoutkit.parasitics.terminal_feeds import Place, channels_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from layoutkit.extract.extracted import Extraction, LayoutNet
    from layoutkit.parasitics.layout_circuit import LayoutCircuit
    from layoutkit.parasitics.net_network import Terminal


def layout_networks(
    found: LayoutCircuit, only: Collection[int] | None = None, starts: Mapping[int, Terminal] | None = None
) -> tuple[dict[int, NetNetwork], set[str]]:
    """Return the network of each net, by its number, and what could not be computed.

    Args:
        found: The layout.
        only: Numbers of the nets; None for all.
        starts: Terminal that a net without a port is measured from, by its number: only from there all is exact.
    """
    extraction = found.extraction
    wires = WireExtractor(extraction.technology)
    channels = kdb.Shapes()
    channels.insert(channels_of(extraction))
    feeds = found.feeds
    networks, unchecked = {}, set()
    for number, net in sorted(extraction.nets.items()):
        if only is not None and number not in only:
            continue
        regions = {name: extraction.shapes(number, name) for name in wires.layers}
        unstated = sorted(name for name in wires.unstated if not regions[name].is_empty())
        if unstated:
            unchecked |= {f"resistance of {each}: technology {wires.technology.name} states none" for each in unstated}
            terminals = (TerminalResistance(*terminal, None) for terminal in sorted(feeds[number]))
            networks[number] = NetNetwork(terminals=tuple(terminals))
            continue
        port = _port(net, extraction)
        places = [place for each in feeds[number].values() for place in each.points] + ([] if port is None else [port])
        drawn = wires.extract(regions, _without_channels(regions, channels), places)
        network = net_network(found.nets[number], drawn, feeds[number], port, (starts or {}).get(number))
        unchecked |= {
            f"resistance to {terminal}: only diffusion, a well or the substrate joins it to net {found.nets[number]}"
            for terminal in network.cut_off
        }
        networks[number] = network
    return networks, unchecked


def _without_channels(regions: dict[str, kdb.Region], channels: kdb.Shapes) -> list[kdb.Polygon]:
    """Take channels out of the poly of a net, keep the contacts on poly only, and return the channels it crosses."""
    near = kdb.Region([shape.polygon for shape in channels.each_touching(regions[POLY].bbox())])
    crossed: list[kdb.Polygon] = list(near.interacting(regions[POLY]).each())
    regions[CONTACT] &= regions[POLY]
    regions[POLY] -= near
    return crossed


def _port(net: LayoutNet, extraction: Extraction) -> Place | None:
    """Return where the port of a net is: its first label, one on a pin before all others."""
    wires = {conductor.name for conductor in extraction.technology.conductors}
    on_wires = [label for label in net.labels if label.conductor in wires]
    labels = sorted(on_wires, key=lambda label: (not label.on_pin, label.text, label.place, label.conductor))
    if not labels:
        return None
    dbu = extraction.layout.dbu
    return Place(labels[0].conductor, round(labels[0].place.x / dbu), round(labels[0].place.y / dbu))
