"""What the labels of a layout say about its nets, compared with the names of the netlist."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from layoutkit.errors import MAX_LISTED, listed
from layoutkit.lvs.lvs_result import LvsMismatch, at

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from layoutkit.extract.extracted import Extraction, Label
    from layoutkit.lvs.reference import Reference


@dataclass(frozen=True)
class Labelling:
    """Which net each label claims to be.

    Attributes:
        pins: Layout net to the reference net it is labelled as; only where labels do not contradict each other.
        claims: Every pair of layout net and reference net that a label makes.
        mismatches: Labels that contradict each other, and pins that the netlist does not have.
        warnings: Labels that say nothing to the comparison.
    """

    pins: Mapping[int, str]
    claims: tuple[tuple[int, str], ...]
    mismatches: tuple[LvsMismatch, ...]
    warnings: tuple[str, ...]


def labelling(extraction: Extraction, reference: Reference) -> Labelling:
    """Return the claims of the labels. Nets are never joined because they have the same name."""
    claims: dict[tuple[int, str], Label] = {}
    mismatches, unknown = [], []
    for net in extraction.nets.values():
        for label in net.labels:
            name = reference.net_named(label.text)
            if name is not None:
                claims.setdefault((net.id, name), label)
            elif label.on_pin:
                mismatches.append(_extra_port(label))
            else:
                unknown.append(f"label '{label.text}'{at(label.place)} names no net of the netlist")
    stray = [
        f"label '{label.text}'{at(label.place)} lies beside the shapes of {label.conductor} and names nothing"
        for label in extraction.labels_off_metal
    ]
    warnings = [*_first(unknown), *_first(stray)]
    nets_of: dict[str, list[int]] = {}
    names_of: dict[int, list[str]] = {}
    for net_id, name in sorted(claims):
        nets_of.setdefault(name, []).append(net_id)
        names_of.setdefault(net_id, []).append(name)
    mismatches += [_short(net, names, claims) for net, names in sorted(names_of.items()) if len(names) > 1]
    mismatches += [_open(name, nets, claims) for name, nets in sorted(nets_of.items()) if len(nets) > 1]
    pins = {net: name for net, name in claims if len(nets_of[name]) == 1 and len(names_of[net]) == 1}
    if not extraction.pins_drawn and (bare := sorted(_without_pins(extraction, reference))):
        warnings.append(
            "the layout has no pin shapes, so that tools which take only labels on them for ports, such as Magic, "
            f"see none of {listed(bare)}"
        )
    return Labelling(pins, tuple(sorted(claims)), tuple(mismatches), tuple(warnings))


def _first(warnings: Sequence[str]) -> list[str]:
    """Return the first of these warnings, and how many more there are."""
    more = len(warnings) - MAX_LISTED
    return [*warnings[:MAX_LISTED], *([f"{more} more labels of this kind"] if more > 0 else [])]


def missing_ports(extraction: Extraction, reference: Reference, nets: Mapping[str, int]) -> list[LvsMismatch]:
    """Return the ports of the netlist that are none in the layout.

    A port is a label on a shape of its conductor. Where the process has layers for pins and the cell has shapes on
    them, a pin shape lies below it, too: without one, Magic takes the label for the name of an inner net. A well
    without taps has no conductor, so it needs no label.

    Args:
        extraction: The layout.
        reference: The netlist.
        nets: Net of the netlist to the layout's, as far as they are paired.
    """
    labelled = {reference.net_named(label.text) for net in extraction.nets.values() for label in net.labels}
    off = {reference.net_named(label.text): label for label in extraction.labels_off_metal}
    bare = _without_pins(extraction, reference) if extraction.pins_drawn else {}
    found = []
    for port in reference.ports:
        place = extraction.place_of(nets[port]) if port in nets else None
        if port not in labelled and is_bare_well(extraction, nets.get(port)):
            continue
        if port not in labelled:
            where = f"; its net is{at(place)}" if place is not None else ""
            cause = (
                "no label of that name on a label layer of the cell itself; labels in cells below do not count; "
                "write one with the labels of layout.route_signal_nets_basic"
            )
            if (stray := off.get(port)) is not None:
                cause = f"its label{at(stray.place)} lies beside the shapes of {stray.conductor}"
            message = f"Port {port} of the netlist has no label in the layout{where}"
        elif port in bare:
            label = bare[port]
            place = label.place
            layer = extraction.technology.conductor(label.conductor).pin_layer
            message = (
                f"Port {port} of the netlist has no pin in the layout: no shape of {layer} below its label{at(place)}"
            )
            cause = "the pin shape is missing, or lies beside the label or on the wrong layer"
        else:
            continue
        found.append(LvsMismatch("missing_port", message, cause, (port,), ((port, place),)))
    return found


def is_bare_well(extraction: Extraction, net: int | None) -> bool:
    """Return whether a net of the layout is a well or the substrate alone: nothing drawn could carry its label."""
    carriers = ("contact", "n_tap", "p_tap", "poly", *(c.name for c in extraction.technology.conductors))
    return net is not None and not extraction.reaches(net, *carriers)


def _without_pins(extraction: Extraction, reference: Reference) -> dict[str, Label]:
    """Return the ports with labels of which none lies on a pin shape, in a process that has them, with one label."""
    found: dict[str, list[Label]] = {}
    for net in extraction.nets.values():
        for label in net.labels:
            if (name := reference.net_named(label.text)) in reference.ports:
                found.setdefault(str(name), []).append(label)
    pins = {conductor.name for conductor in extraction.technology.conductors if conductor.pin_layer is not None}
    return {
        port: labels[0]
        for port, labels in found.items()
        if not any(label.on_pin or label.conductor not in pins for label in labels)
    }


def _extra_port(label: Label) -> LvsMismatch:
    return LvsMismatch(
        "extra_port",
        f"The layout has a pin '{label.text}'{at(label.place)}, the netlist has no such net",
        "a pin of another name, or the wrong netlist",
        (),
        ((label.text, label.place),),
    )


def _short(net: int, names: list[str], claims: Mapping[tuple[int, str], Label]) -> LvsMismatch:
    places = listed(f"'{name}'{at(claims[net, name].place)}" for name in names)
    return LvsMismatch(
        "short",
        f"Nets {listed(names)} are shorted: one net of the layout bears the labels {places}",
        "shapes of different nets touch, or a label is on the wrong net",
        tuple(names),
        tuple((name, claims[net, name].place) for name in names),
    )


def _open(name: str, nets: list[int], claims: Mapping[tuple[int, str], Label]) -> LvsMismatch:
    places = [claims[net, name].place for net in nets]
    return LvsMismatch(
        "open",
        f"Net {name} is open: {len(nets)} separate pieces bear its label,{' and'.join(at(place) for place in places)}",
        "a wire or via is missing between the pieces; equal labels do not connect",
        (name,),
        tuple((name, place) for place in places),
    )
