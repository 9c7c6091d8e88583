"""Explain a difference between layout and netlist: which nets are open, shorted or exchanged, which devices missing.

From the likely pairs of transistors (``alignment``) every terminal says which reference net its layout net should be.
Where these votes contradict each other lies the fault:

    one layout net, votes for two reference nets of which one has no other place    short
    one reference net, votes for two layout nets of which one means nothing else    open, or a floating bulk
    two nets, each with votes for the other                                         exchanged
    else                                                                            a terminal on the wrong net

The labels of the layout are compared with the names of the netlist as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from layoutkit.errors import MAX_LISTED, listed
from layoutkit.extract.folding import in_parallel
from layoutkit.lvs.alignment import GROUP_LIMIT, NetAlignment, ParallelGroup, align, asked_groups, drawn_groups
from layoutkit.lvs.lvs_result import LvsMismatch, at, wrong_parameter
from layoutkit.lvs.matching import group_mismatches

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from layoutkit.extract.extracted import DrawnFinger, Extraction, Label, Point
    from layoutkit.lvs.reference import Reference


def explain(
    extraction: Extraction, reference: Reference, labels: Labelling, tolerance: float | None
) -> list[LvsMismatch]:
    """Return what differs between two circuits that are known to differ; never nothing."""
    groups = in_parallel(extraction.devices)
    if max(len(groups), len(reference.groups)) > GROUP_LIMIT:
        return [unexplained(extraction, reference)]
    types: dict[str, str] = {name: spec.type for name, spec in extraction.technology.devices.items()}
    types |= {name: spec.type for name, spec in extraction.technology.passives.items()}
    alignment = align(drawn_groups(groups), asked_groups(reference), types, labels.claims)
    explanation = _Explanation(extraction, alignment)
    found = [
        *explanation.devices(),
        *explanation.connections(),
        *explanation.sizes(tolerance),
    ]
    return found or [unexplained(extraction, reference)]


def unexplained(extraction: Extraction, reference: Reference) -> LvsMismatch:
    """Return the mismatch for circuits whose difference has no explanation."""
    return LvsMismatch(
        "net_mismatch",
        f"The circuits differ in how transistors are connected; layout: {len(extraction.devices)} devices on "
        f"{len(extraction.nets)} nets, netlist: {len(reference.devices)} devices on {len(reference.nets)} nets",
        "several faults at once; the LVS report (.lvsdb) shows both netlists side by side in KLayout",
    )


class _Explanation:
    def __init__(self, extraction: Extraction, alignment: NetAlignment) -> None:
        self.extraction = extraction
        self.votes, self.main = alignment.votes, alignment.main
        self.alignment = alignment
        self.net_of = {name: net for net, name in self.main.items()}
        self.faults = [pair for pair in sorted(self.votes) if self.main.get(pair[0]) != pair[1]]

    def devices(self) -> list[LvsMismatch]:
        """Return the transistors that one side has and the other has not, and those of another type."""
        found = [self._missing(group) for group in self.alignment.undrawn]
        found += [self._extra(group) for group in self.alignment.unasked]
        found += [
            wrong_parameter(
                f"{listed(expected.ids)} is drawn as {drawn.device}{at(drawn.members[0].place)}, the netlist has "
                f"{expected.device}",
                "an implant or marker layer is missing or too many",
                expected.ids,
                drawn.members,
            )
            for drawn, expected in self.alignment.pairs
            if drawn.device != expected.device
        ]
        return found

    def _missing(self, group: ParallelGroup) -> LvsMismatch:
        nets = ", ".join(f"{terminal}={net}" for terminal, net in _in_order(group))
        return LvsMismatch(
            "missing_device",
            f"{listed(group.ids)} ({group.device}, W {group.w_um:g} um, {nets}) is in the netlist, not in the layout",
            group.kind.lost,
            group.ids,
        )

    def _extra(self, group: ParallelGroup) -> LvsMismatch:
        nets = ", ".join(f"{terminal}={self._name(net)}" for terminal, net in _in_order(group))
        return LvsMismatch(
            "extra_device",
            f"{listed(group.ids)} ({group.device}, W {group.w_um:g} um, {nets}){at(group.members[0].place)} is in the "
            "layout, not in the netlist",
            group.kind.stray,
            (),
            tuple((member.id, member.place) for member in group.members),
        )

    def connections(self) -> list[LvsMismatch]:
        """Return the faults of nets."""
        found, seen = [], set()
        for net, name in self.faults:
            if (net, name) in seen:
                continue
            own, place = self.main.get(net), self.net_of.get(name)
            if place is None:
                seen |= {(net, name)}
                found.append(self._short(net, str(own), name))
            elif own is None:
                pieces = [other for other, wanted in self.faults if wanted == name and other not in self.main]
                seen |= {(piece, name) for piece in pieces}
                found += self._open(name, place, pieces)
            elif (place, own) in self.votes:
                seen |= {(net, name), (place, own)}
                found.append(self._exchanged((net, own), (place, name)))
            else:
                seen |= {(net, name)}
                found.append(self._wrong(net, own, name))
        return found

    def _short(self, net: int, own: str, name: str) -> LvsMismatch:
        both = [f"{who} ({wanted})" for wanted in (own, name) for who in self._voters(net, wanted)[:3]]
        return LvsMismatch(
            "short",
            f"Nets {own} and {name} are shorted in the layout: one net{at(self._place(net))} holds {listed(both)}",
            "shapes of the two nets touch or overlap",
            (own, name),
            ((self._name(net), self._place(net)),),
            (self._terminals(net, own), self._terminals(net, name)),
        )

    def _terminals(self, net: int, name: str) -> tuple[tuple[int, DrawnFinger, str], ...]:
        """Return the fingers on a net of the layout that the netlist has on net ``name``, each with its terminal."""
        return tuple(
            (net, finger, terminal)
            for drawn, expected in self.alignment.pairs
            for terminal, wanted in expected.nets.items()
            if wanted == name and drawn.nets.get(terminal) == net
            for member in drawn.members
            for finger in member.fingers
        )

    def _open(self, name: str, main: int, pieces: list[int]) -> list[LvsMismatch]:
        bulks = [piece for piece in pieces if self._only_bulks(piece)]
        found = [self._floating(name, piece) for piece in bulks]
        rest = [piece for piece in pieces if piece not in bulks]
        if rest:
            apart = "; ".join(f"{listed(self._voters(piece, name))}{at(self._place(piece))}" for piece in rest)
            found.append(
                LvsMismatch(
                    "open",
                    f"Net {name} is open in the layout: {apart} is not connected to "
                    f"{listed(self._voters(main, name))}{at(self._place(main))}",
                    "a wire, via or contact is missing",
                    (name,),
                    tuple((self._name(piece), self._place(piece)) for piece in (main, *rest)),
                )
            )
        return found

    def _only_bulks(self, net: int) -> bool:
        found = self.extraction.nets[net]
        return not found.labels and {terminal for _, terminal in found.terminals} == {"b"}

    def _floating(self, name: str, net: int) -> LvsMismatch:
        tapped = self.extraction.reaches(net, "contact")
        holders = [voter.removesuffix(".b") for voter in self._voters(net, name)]
        return LvsMismatch(
            "floating_bulk",
            f"The bulk of {listed(holders)}{at(self._place(net))} floats; the netlist ties it to {name}",
            "the tap's metal is not connected to the net" if tapped else "its well or substrate has no contacted tap",
            (name, *holders),
            ((self._name(net), self._place(net)),),
        )

    def _exchanged(self, one: tuple[int, str], other: tuple[int, str]) -> LvsMismatch:
        crossed = [*self._voters(one[0], other[1]), *self._voters(other[0], one[1])]
        return LvsMismatch(
            "swapped_nets",
            f"Nets {one[1]} and {other[1]} are exchanged at {listed(sorted(crossed))}: "
            f"{listed(self._voters(one[0], other[1]))} is on {self._name(one[0])}{at(self._place(one[0]))} where the "
            f"netlist has {other[1]}",
            "the wires of a symmetric pair are crossed, or labels are exchanged",
            (one[1], other[1]),
            tuple((self._name(net), self._place(net)) for net, _ in (one, other)),
        )

    def _wrong(self, net: int, own: str, name: str) -> LvsMismatch:
        who = listed(self._voters(net, name))
        return LvsMismatch(
            "wrong_connection",
            f"{who} is on net {own}{at(self._place(net))} in the layout, on net {name} in the netlist",
            "a wire leads to the wrong net",
            (name, own),
            ((self._name(net), self._place(net)),),
        )

    def sizes(self, tolerance: float | None) -> list[LvsMismatch]:
        """Return the wrong sizes of transistors that are connected right."""
        broken = {voter for net, name in self.faults for voter in self.votes[net, name]}
        found = []
        for drawn, expected in self.alignment.pairs:
            if not any(f"{expected.ids[0]}.{terminal}" in broken for terminal in expected.nets):
                found += group_mismatches(drawn.members, expected.members, tolerance)
        return found

    def _voters(self, net: int, name: str) -> list[str]:
        return [voter or f"the label {name}" for voter in sorted(self.votes.get((net, name), []))]

    def _name(self, net: int) -> str:
        return self.extraction.nets[net].name

    def _place(self, net: int) -> Point | None:
        return self.extraction.place_of(net)


def _in_order(group: ParallelGroup) -> list[tuple[str, Any]]:
    """Return terminals and nets in the order of a SPICE card."""
    return [(terminal, group.nets[terminal]) for terminal in group.kind.all_terminals if terminal in group.nets]


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
