"""LVS: whether a layout is the circuit of the netlist, and if not, where it differs.

A layout matches only if all of this holds (the content of black boxes is not compared; with black boxes the verdict is
not complete):

- a renaming of its nets turns its devices, folded in parallel and resistors in series, into exactly those of the
  netlist, bulks included;
- every port of the netlist is labelled in the layout, on a pin shape where the cell has any, and every label that
  names a net of the netlist is on that net;
- no net is held together by wells or substrate alone (see ``extract.wells_and_bodies``);
- no name is on two nets, no net has two names, no gate was left out of extraction;
- W (of all parallel fingers) and L agree within the tolerance, or are the grid points nearest to the netlist's, and
  every channel, resistor, plate and junction has a shape from which they follow (see ``extract.wells_and_bodies``);
- extraction read every layer that is drawn, but for those that the caller waived.

Where the circuits do not match as they are, transistors in series are folded on both sides (see ``extract.folding``).

Extraction takes channels that are off and bear no device text for dummies, where other channels bear one. Where the
circuits do not match, two cases remain. The netlist may list such dummies, as the ``reference.spice`` of the flow does:
then every one has to be there. A layout without device texts may hold dummies: then those are taken away that are of no
size that the netlist has. An NMOS whose gate is on the substrate is off as well, wherever its body is. A transistor of
the netlist that is off is compared like any other, either way.

The number of fingers is reported, not judged: two fingers of 1 um are one transistor of 2 um.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from layoutkit.errors import counted, listed
from layoutkit.extract.cell_devices import SUBSTRATE
from layoutkit.extract.extractor import combined
from layoutkit.extract.folding import fold_series, off_transistors
from layoutkit.lvs.explanation import Labelling, explain, is_bare_well, labelling, missing_ports, unexplained
from layoutkit.lvs.lvs_result import MAX_MISMATCHES, LvsMismatch, LvsResult, at
from layoutkit.lvs.matching import Matcher, Pairing, nets_of_taps
from layoutkit.lvs.reference import Reference, ReferenceDevice, reference_of
from layoutkit.technology.device_kinds import KINDS, SIZE_TOLERANCE, DeviceKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from layoutkit.circuit.circuit import Circuit
    from layoutkit.extract.extracted import DrawnFinger, ExtractedDevice, Extraction

    Sides = tuple[Extraction, Reference]

_MAX_PINS_TRIED = 64


def compare(extraction: Extraction, circuit: Circuit, *, tolerance: float | None = None) -> LvsResult:
    """Return whether ``extraction`` is ``circuit``.

    Args:
        extraction: What the layout is.
        circuit: The input netlist, in models that the technology knows.
        tolerance: Largest relative difference of every size [1]; None for those that the kinds of devices declare.

    Raises:
        NetlistError: If the circuit holds models that the technology does not have, or unusable sizes.
        UnsupportedOperationError: If it holds devices that are neither transistors nor passives of the technology.
    """
    reference = reference_of(circuit, extraction.technology)
    extraction, reference, not_compared = _without_unstated_bulks(extraction, reference)
    result = _compared(extraction, reference, tolerance)
    if not result.matched:
        result = _with_stacks_folded(result, tolerance) or _with_other_dummies(result, tolerance) or result
    matched = result.matched and not extraction.coverage.unchecked  # black boxes leave it incomplete, not unmatched
    return replace(result, matched=matched, warnings=(*result.warnings, *not_compared))


def _compared(extraction: Extraction, reference: Reference, tolerance: float | None) -> LvsResult:
    """Return whether both sides are the same as they are."""
    comparison = _Comparison(extraction, reference, tolerance)
    comparison.run()
    return comparison.result()


def _with_stacks_folded(result: LvsResult, tolerance: float | None) -> LvsResult | None:
    """Return the match of both sides with their stacks folded, None where there is nothing to fold or no match."""
    extraction, reference = result.extraction, result.reference
    drawn = fold_series(extraction.devices, {net for net, found in extraction.nets.items() if found.labels}, "stacks")
    expected = fold_series(reference.devices, reference.outer_nets, "stacks")
    counts = (len(extraction.devices) - len(drawn), len(reference.devices) - len(expected))
    if not any(counts):
        return None
    folded = _compared(replace(extraction, devices=drawn), replace(reference, devices=expected), tolerance)
    if not folded.matched:
        return None
    note = (
        "the circuits match with transistors in series folded: "
        f"{counts[0]} fewer devices in the layout, {counts[1]} fewer in the netlist"
    )
    return replace(folded, warnings=(*folded.warnings, note))


def _with_other_dummies(result: LvsResult, tolerance: float | None) -> LvsResult | None:
    """Return the match with other transistors that are always off taken for dummies, None where there is none."""
    for sides, shown in _other_readings(result.extraction, result.reference):
        found = _compared(*sides, tolerance)
        if not found.matched:
            found = _with_stacks_folded(found, tolerance) or found
        if found.matched:
            reported = _compared(*shown, tolerance)
            return reported if reported.matched else found
    return None


def _other_readings(extraction: Extraction, reference: Reference) -> Iterator[tuple[Sides, Sides]]:
    """Yield the sides to compare, each with the sides that a report shows if they match."""
    expected = [reference.devices[index] for index in sorted(off_transistors(reference.devices))]
    off = [finger for index, finger in enumerate(extraction.dummies) if index in off_transistors(extraction.dummies)]
    if expected and off:
        listed = replace(
            reference,
            devices=tuple(device for device in reference.devices if device not in expected),
            dummies=(*reference.dummies, *expected),
        )
        yield (_with_devices(extraction, off), reference), (extraction, listed)
    if any(finger.text for finger in extraction.fingers):
        return
    sizes = Counter((device.device, round(device.drawn_w_um, 6), round(device.drawn_l_um, 6)) for device in expected)
    extra = []
    for index in sorted(off_transistors(extraction.devices) | _below_all(extraction)):
        device = extraction.devices[index]
        size = (device.device, round(device.w_um, 6), round(device.l_um, 6))
        if sizes[size]:
            sizes[size] -= 1
        else:
            extra.append(device)
    if extra:
        fewer = _without_devices(extraction, extra)
        yield (fewer, reference), (fewer, reference)


def _below_all(extraction: Extraction) -> set[int]:
    """Return the indexes of NMOS transistors with their gates on the substrate, below which no source ever is."""
    return {
        index
        for index, device in enumerate(extraction.devices)
        if device.kind.name == "nmos" and extraction.reaches(device.nets["g"], SUBSTRATE)
    }


def _with_devices(extraction: Extraction, off: list[DrawnFinger]) -> Extraction:
    """Return the extraction with the dummies ``off`` that lie between two nets as devices."""
    between = [finger for finger in off if len({finger.nets[end] for end in finger.kind.ends}) > 1]
    fingers = [finger for device in extraction.devices for finger in device.fingers]
    named = {net for net, found in extraction.nets.items() if found.labels}
    devices = fold_series(combined([*fingers, *between], extraction.layout.dbu), named)
    return replace(extraction, devices=devices, dummies=tuple(f for f in extraction.dummies if f not in between))


def _without_devices(extraction: Extraction, extra: list[ExtractedDevice]) -> Extraction:
    """Return the extraction with the devices ``extra`` as dummies."""
    kept = tuple(device for device in extraction.devices if device not in extra)
    return replace(
        extraction,
        devices=kept,
        dummies=(*extraction.dummies, *(finger for device in extra for finger in device.fingers)),
    )


def _without_unstated_bulks(extraction: Extraction, reference: Reference) -> tuple[Extraction, Reference, list[str]]:
    """Return both sides without the bulks of those types of which the netlist leaves the bulk open, and a warning."""
    passives = extraction.technology.passives
    left_out = sorted(
        {
            device.device
            for device in reference.devices
            if device.device in passives
            and device.kind.bulk
            and device.kind.bulk not in device.nets
            and passives[device.device].body_terminal == device.kind.bulk
        }
    )
    if not left_out:
        return extraction, reference, []
    devices = tuple(
        replace(d, nets={t: net for t, net in d.nets.items() if t != d.kind.bulk}) if d.device in left_out else d
        for d in reference.devices
    )
    warning = f"the bulk of {listed(left_out)} is not compared: the netlist gives two terminals"
    return extraction.without_bulks_of(left_out), replace(reference, devices=devices), [warning]


class _Comparison:
    def __init__(self, extraction: Extraction, reference: Reference, tolerance: float | None) -> None:
        self.extraction = extraction
        self.reference = reference
        self.tolerance = tolerance
        self.labels: Labelling = labelling(extraction, reference)
        self.matcher = Matcher(extraction, reference, tolerance)
        self.pairing: Pairing | None = None
        self.proven = False  # the pairing holds under all labels
        self.found: list[LvsMismatch] = []
        self.untied: list[str] = []  # ports that are wells without taps and labels

    def run(self) -> None:
        """Find a pairing under the labels; without one under fewer labels; without any, words for the difference."""
        self.found += _ignored(self.extraction) + _unmeasured(self.extraction)
        self.found += self.labels.mismatches
        if not (self.reference.devices or self.reference.ports or self.extraction.devices):
            self.found.append(_nothing())
        self.pairing = self._paired(self.labels.pins)
        self.proven = self.pairing is not None
        if self.pairing is None and (free := self._paired({})) is not None:
            self.pairing = self._with_most_pins(free)
            self.found += self._crossed(self._exchanged_ports(self.pairing)) + self._labels_apart(self.pairing)
        if self.pairing is None and self.matcher.gave_up:
            self.found.append(_undecided())
        elif self.pairing is not None:
            self.found += self.matcher.size_mismatches(self.pairing)
            self.found += self._missing_dummies(self.pairing)
        else:
            self.found += explain(self.extraction, self.reference, self.labels, self.tolerance)
        self.found += self._soft_connections()
        nets = {} if self.pairing is None else {name: net for net, name in self.pairing.nets.items()}
        self.found += missing_ports(self.extraction, self.reference, nets)
        named = {name for _, name in self.labels.claims}
        self.untied = [
            port for port in self.reference.ports if port not in named and is_bare_well(self.extraction, nets.get(port))
        ]
        if not self.found and not self.proven:
            self.found.append(unexplained(self.extraction, self.reference))

    def _paired(self, pins: Mapping[int, str]) -> Pairing | None:
        exact = self.matcher.pairing(pins, sizes=True)
        return exact if exact is not None else self.matcher.pairing(pins, sizes=False)

    def _with_most_pins(self, free: Pairing) -> Pairing:
        """Return a pairing that agrees with as many labels as one can keep, those of gates first."""
        kept: dict[int, str] = {}
        pairing = free
        gates = {device.nets[device.kind.gate] for device in self.extraction.devices if device.kind.gate}
        for net, name in sorted(self.labels.pins.items(), key=lambda pin: (pin[0] not in gates, pin))[:_MAX_PINS_TRIED]:
            if pairing.nets.get(net) == name:
                kept[net] = name
                continue
            tried = self._paired({**kept, net: name})
            if tried is not None:
                pairing = tried
                kept[net] = name
        return pairing

    def _exchanged_ports(self, pairing: Pairing) -> list[LvsMismatch]:
        wrong = {
            name: (net, pairing.nets[net])
            for net, name in sorted(self.labels.pins.items())
            if pairing.nets.get(net, name) != name
        }
        found, seen = [], set()
        for name, (net, really) in wrong.items():
            if name in seen:
                continue
            place = self.extraction.place_of(net)
            back = wrong.get(really, (0, ""))[1] == name
            seen |= {name, really} if back else {name}
            devices = sorted({end.split(".")[0] for port in (name, really) for end in self._terminals(port)})
            first = f"Ports {name} and {really} are exchanged" if back else f"The label {name} is on net {really}"
            found.append(
                LvsMismatch(
                    "swapped_ports",
                    f"{first}: the layout's net labelled {name}{at(place)} connects {listed(self._terminals(really))}, "
                    f"the netlist's {name} connects {listed(self._terminals(name))}",
                    f"wires of {listed(devices)} are crossed at drains or gates, or labels are exchanged",
                    (name, really) if back else (name,),
                    ((name, place),),
                )
            )
        return found

    def _crossed(self, exchanged: list[LvsMismatch]) -> list[LvsMismatch]:
        """Return exchanged ports as exchanged wires where device texts say which transistor is which."""
        if not any(finger.text for finger in self.extraction.fingers):
            return exchanged
        found = explain(self.extraction, self.reference, self.labels, self.tolerance)
        return found if all(mismatch.kind == "swapped_nets" for mismatch in found) else exchanged

    def _labels_apart(self, pairing: Pairing) -> list[LvsMismatch]:
        """Return the labels on metal that reaches no transistor, while their net has some elsewhere."""
        nets = {name: net for net, name in pairing.nets.items()}
        found = []
        for net, name in sorted(self.labels.pins.items()):
            if net in pairing.nets or name not in nets:
                continue
            label, rest = self.extraction.place_of(net), self.extraction.place_of(nets[name])
            message = (
                f"Net {name} is open in the layout: its label{at(label)} is on metal that reaches no transistor; "
                f"{listed(self._terminals(name))} is{at(rest)}"
            )
            cause = "a wire or via to the pin is missing, or the label is on the wrong shape"
            found.append(LvsMismatch("open", message, cause, (name,), ((name, label), (name, rest))))
        return found

    def _terminals(self, net: str) -> list[str]:
        found = [
            f"{device.id}.{terminal}"
            for device in self.reference.devices
            for terminal, other in device.nets.items()
            if other == net
        ]
        return found or ["nothing"]

    def _soft_connections(self) -> list[LvsMismatch]:
        """Return the nets that only wells or substrate join; those with two names are reported as shorts."""
        claimed: dict[int, set[str]] = {}
        for net, claim in self.labels.claims:
            claimed.setdefault(net, set()).add(claim)
        paired = {} if self.pairing is None else self.pairing.nets
        found = []
        for soft in self.extraction.soft_connections:
            names = sorted(claimed.get(soft.net, ()))
            if soft.net not in self.extraction.nets or len(names) > 1:
                continue
            name: str | None = names[0] if names else paired.get(soft.net)
            pieces = listed(f"{text}{at(place)}" for text, place in soft.pieces)
            found.append(
                LvsMismatch(
                    "open",
                    f"Net {name or self.extraction.nets[soft.net].name} is open: nothing but a well or the substrate "
                    f"joins {len(soft.pieces)} pieces of it: {pieces}",
                    "a wire from the taps to the rest of the net is missing; a well connects bulks but is not a wire",
                    () if name is None else (name,),
                    soft.pieces,
                )
            )
        return found

    def _missing_dummies(self, pairing: Pairing) -> list[LvsMismatch]:
        """Return the dummies and taps of the netlist that the layout lacks; more than in the netlist are no fault."""
        drawn: dict[tuple[str, str, str, float], float] = {}
        with_taps = {**pairing.nets, **nets_of_taps(self.extraction, self.reference, pairing.nets, self._least)}
        for finger in self.extraction.dummies:
            tied = _tied_terminals(finger.kind)
            if not tied:
                continue
            nets = with_taps if finger.kind.always_tied else pairing.nets
            gate, bulk = (nets.get(finger.nets[terminal], "") for terminal in tied)
            key = (finger.device, gate, bulk, finger.l_um)
            drawn[key] = drawn.get(key, 0.0) + finger.w_um
        paired = set(pairing.nets.values())  # other nets hold dummies only
        expected: dict[tuple[str, str, str, float], list[ReferenceDevice]] = {}
        for device in self.reference.dummies:
            tied = _tied_terminals(device.kind)
            if not tied:
                continue
            tap = device.kind.always_tied
            gate, bulk = (net if tap or net in paired else "" for net in (device.nets[terminal] for terminal in tied))
            key = (device.device, gate, bulk, device.drawn_l_um)
            expected.setdefault(key, []).append(device)
        found = []
        for key, members in expected.items():
            width, goal = drawn.get(key, 0.0), sum(member.drawn_w_um for member in members)
            if width < self._least(goal):
                ids = tuple(member.id for member in members)
                net = key[2] or members[0].nets[_tied_terminals(members[0].kind)[1]]
                noun = f"{members[0].kind.noun}s".capitalize() if members[0].kind.always_tied else "Dummies"
                message = (
                    f"{noun} {listed(ids)} ({key[0]}, tied to {net}, W {goal:g} um, L {key[3]:g} um) are in the "
                    f"netlist, the layout has W {width:g} um of them"
                )
                found.append(LvsMismatch("missing_device", message, members[0].kind.lost, ids))
        return found

    def _least(self, width: float) -> float:
        """Return the least width that agrees with one of the netlist. [um]"""
        return width * (1 - (SIZE_TOLERANCE if self.tolerance is None else self.tolerance)) - 1e-6

    def result(self) -> LvsResult:
        found = sorted(_different(self.found), key=lambda mismatch: mismatch.rank)
        nets = {} if self.pairing is None else dict(self.pairing.nets)
        names = {self.extraction.nets[net].name: name for net, name in nets.items() if net in self.extraction.nets}
        pairs = {} if self.pairing is None else self._device_pairs(self.pairing)
        return LvsResult(
            matched=not found and self.proven,
            mismatches=tuple(found[:MAX_MISMATCHES]),
            mismatch_count=len(found),
            device_pairs=pairs,
            nets=nets if self.proven else dict(self.labels.pins),
            net_pairs=dict(sorted(names.items())),
            tolerance=SIZE_TOLERANCE if self.tolerance is None else self.tolerance,
            warnings=(*self.labels.warnings, *map(_untied, self.untied), *self._finger_warnings(pairs)),
            extraction=self.extraction,
            reference=self.reference,
        )

    def _device_pairs(self, pairing: Pairing) -> dict[str, tuple[str, ...]]:
        return {
            device.id: tuple(member.id for member in self.reference.groups[pairing.key(device.key)])
            for device in self.extraction.devices
        }

    def _finger_warnings(self, pairs: Mapping[str, tuple[str, ...]]) -> list[str]:
        wanted = {device.id: device.fingers for device in self.reference.devices}
        return [
            f"{listed(pairs[device.id])} has {counted(len(device.fingers), 'finger')} in the layout, "
            f"{count} in the netlist"
            for device in self.extraction.devices
            if device.id in pairs
            and device.kind.fingers
            and (count := sum(wanted[ref] for ref in pairs[device.id])) != len(device.fingers)
        ]


def _different(found: list[LvsMismatch]) -> list[LvsMismatch]:
    """Return ``found`` without repetitions: labels and devices may show the same short or open."""
    kept: dict[tuple[str, str, frozenset[str]], LvsMismatch] = {}
    for mismatch in found:
        told_twice = mismatch.kind in {"short", "open"}
        text = "" if told_twice else mismatch.message
        kept.setdefault((mismatch.kind, text, frozenset(mismatch.reference)), mismatch)
    return list(kept.values())


def _ignored(extraction: Extraction) -> list[LvsMismatch]:
    """Return the shapes that look like devices but are none."""
    process, found = extraction.technology.name, []
    for kind, places in ((KINDS[name], places) for name, places in extraction.ignored.items()):
        for place, reason in places:
            text = kind.none_made.format(noun=kind.noun, place=at(place), technology=process)
            shapes = ((kind.part, place),)
            found.append(LvsMismatch("unrecognised_device", f"{text}: {reason}", kind.not_made_because, (), shapes))
    return found


def _unmeasured(extraction: Extraction) -> list[LvsMismatch]:
    """Return the devices whose W and L in the layout mean nothing, whatever the netlist says."""
    return [
        LvsMismatch(
            "wrong_parameter",
            f"The {device}{at(place)} has no W and L that could be compared: {reason}",
            "a notch, bulge or branch: what makes a device is a rectangle or a strip of one width",
            (),
            ((device, place),),
        )
        for device, place, reason in extraction.unmeasured
    ]


def _untied(port: str) -> str:
    return f"port {port} has no label: it is a well without taps, found by the devices in it, and is tied elsewhere"


def _nothing() -> LvsMismatch:
    return LvsMismatch(
        "nothing_compared",
        "Neither the layout nor the netlist holds a transistor or a port, so nothing was compared",
        "the wrong cell or the wrong netlist",
    )


def _undecided() -> LvsMismatch:
    return LvsMismatch(
        "net_mismatch",
        "Not decided: the circuits are so symmetric that no pairing of nets was found or excluded in reasonable time",
        "label more nets in the layout; every label that names a net of the netlist shortens the search",
    )


def _tied_terminals(kind: DeviceKind) -> tuple[str, ...]:
    """Return the two terminals whose nets identify a dummy or tap; none for kinds that are not looked for."""
    return kind.ends if kind.always_tied else kind.sensing
