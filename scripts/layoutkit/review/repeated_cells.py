"""Findings on what repeats: equal cells and stages drawn unlike each other, turned, off their pitch or out of order."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace
from itertools import pairwise
from math import dist
from statistics import mean
from typing import TYPE_CHECKING, NamedTuple

from layoutkit.circuit.canonical import classes_alike
from layoutkit.circuit.orientation import is_off
from layoutkit.circuit.recognise import MODULE_TYPES
from layoutkit.review.subject import centre_of, names_of, wire_length
from layoutkit.review.symmetric_halves import wire_capacitances

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence

    from layoutkit.circuit.circuit import Circuit
    from layoutkit.circuit.supplies import Supplies
    from layoutkit.review.finding import Remark
    from layoutkit.review.subject import PlacedDevice, Subject

_ONE_ROW_UM = 1.0  # cells whose middles differ by at most this much across lie in one row [um]
_NEXT = 2.1  # pitches to the next cell of a chain, which may lie folded: 1 3 5 4 2
_ACROSS = {"symmetric_pair", "cross_coupled_pair"}  # pairs that may be half in one cell, half in its image
_FEWEST_SLICES = 3  # equal parts of a circuit from which on they are an array
_FEWEST_IN_LINE = 4  # equal stages that drive each other; fewer are the buffer of a signal

Cell = list["PlacedDevice"]


class Array(NamedTuple):
    """Cells that should be equal.

    Attributes:
        cells: The devices of each, in one order.
        keys: What each device is; those that are the same may be exchanged.
        must: Whether they must match.
        whole: The same with what matches devices outside of the cell.
    """

    cells: list[Cell]
    keys: list[Hashable]
    must: bool
    whole: list[Cell]


def repeated(subject: Subject, arrays: Sequence[Array]) -> Iterator[Remark]:
    """Yield all findings; of cells that are unlike each other only that."""
    for array in arrays:
        cells = array.cells
        yield from turned(subject, array) or unlike(subject, array) or [*pitch(subject, cells), *order(subject, cells)]


def turned(subject: Subject, array: Array) -> list[Remark]:
    """Return whether some of the cells are turned by 90 degrees."""
    cells = array.cells
    ways = [[f.around is not None and f.around.vertical for p in cell for f in p.fingers[:1]] for cell in cells]
    usual = max(ways, key=ways.count)
    odd = [cell for cell, way in zip(cells, ways, strict=True) if way != usual]
    words = f"{len(odd)} of them {'is' if len(odd) == 1 else 'are'} turned by 90 degrees"
    return _found(subject, "turned", len(odd), odd or cells, words, must=_must_match(array))


def unlike(subject: Subject, array: Array) -> list[Remark]:
    """Return whether the cells differ in the places or sizes of their devices."""
    first, *others = sorted(array.cells, key=lambda cell: min(placed.index for placed in cell))  # not as cards lie
    off = [(_unlike(first, other, array.keys), other) for other in others]
    worst = subject.um(max(error for error, _ in off))
    wrong = [other for error, other in off if error]
    words = f"drawn unlike each other by up to {worst:.3g} um"
    return _found(subject, "", worst, wrong or array.cells, words, must=_must_match(array))


def pitch(subject: Subject, cells: Sequence[Cell]) -> list[Remark]:
    """Return whether the cells do not lie at one pitch; those of two instances have one in each of them."""
    halves: dict[str, list[Cell]] = defaultdict(list)
    for cell in cells:
        halves[subject.instance_of.get(cell[0].id, "").rpartition(".")[0]].append(cell)
    row = subject.technology.to_dbu(_ONE_ROW_UM)
    off = subject.um(max(off_pitch([centre_of(cell) for cell in half], row) for half in halves.values()))
    return _found(subject, "", off, cells, f"they miss one pitch by {off:.3g} um")


def order(subject: Subject, cells: Sequence[Cell]) -> list[Remark]:
    """Return whether cells of a chain, which lie in one row, lie out of its order."""
    chains = [chain for chain in _chains(cells, subject) if len(chain) == len(cells)]
    centres = [centre_of(cells[number]) for chain in chains for number in chain]
    row = subject.technology.to_dbu(_ONE_ROW_UM)
    if len(centres) < 3 or min(max(each) - min(each) for each in zip(*centres, strict=True)) > row:
        return []
    pitch = max(max(each) - min(each) for each in zip(*centres, strict=True)) / (len(centres) - 1)
    jumps = sum(dist(one, other) > _NEXT * pitch for one, other in pairwise(centres))
    return _found(
        subject,
        "order",
        jumps,
        cells,
        f"{jumps} of them {'does' if jumps == 1 else 'do'} not lie beside the one that drives them",
    )


def loads(subject: Subject) -> Iterator[Remark]:
    """Yield the rings and lines of stages whose wires have unlike capacitances."""
    for group in subject.roles.groups:
        if group.type != "ring_stage":
            continue
        both = zip(group.properties["stages"], group.properties["outputs"], strict=True)
        stages = [[net for net in _driven(subject, *each) if net in subject.number] for each in both]
        numbers = [[subject.number[net] for net in nets] for nets in stages]
        if not numbers or not all(numbers):
            continue
        found = wire_capacitances(subject, {each for own in numbers for each in own})
        coupled: dict[int, float] = defaultdict(float)
        for pair, value in found.coupling_fF.items():
            for each in pair:
                coupled[each] += value
        loads = [sum(found.ground_fF.get(each, 0.0) + coupled[each] for each in own) for own in numbers]
        most, least = max(loads), min(loads)
        nets = [net for own in stages for net in own]
        kind = str(group.properties["arrangement"])
        ends = [_lengths(subject, stages[loads.index(load)]) for load in (least, most)]
        why = f"the wires of the stages of a {kind} have from {least:.3g} fF ({ends[0]}) to {most:.3g} fF ({ends[1]})"
        yield from subject.finding(
            "repeated.load", (most - least) / mean(loads), why, devices=subject.devices(group.devices), nets=nets,
            difference=most - least,
        )  # fmt: skip


def _driven(subject: Subject, stage: Sequence[str], outputs: Sequence[str]) -> list[str]:
    """Return the outputs of a stage, and nets inside it that transistors of both types drive."""
    kinds: dict[str, set[str]] = defaultdict(set)
    for name in stage:
        device = subject.circuit.device(name)
        for end in device.kind.ends if device.is_mos else ():
            kinds[device.terminals[end]].add(device.type)
    inner = [net for net, types in kinds.items() if len(types) > 1 and net not in subject.supplies]
    return list(dict.fromkeys([*outputs, *inner]))


def _lengths(subject: Subject, nets: Sequence[str]) -> str:
    """Return the lengths of the wires of nets, for a message."""
    metals = ((net, metal) for net in nets for metal in subject.metal(net).values())
    lengths: dict[str, float] = defaultdict(float)
    for net, metal in metals:
        lengths[net] += sum(wire_length(piece) for piece in metal.each())
    return ", ".join(f"{net}: {subject.um(length):.3g} um" for net, length in lengths.items())


def _found(
    subject: Subject, figure: str, measured: float, wrong: Sequence[Cell], words: str, *, must: bool = False
) -> list[Remark]:
    every = [placed for cell in wrong for placed in cell]
    why = f"cells that should be equal ({names_of(every)}): {words}"
    return subject.finding(f"repeated.{figure}" if figure else "repeated", measured, why, devices=every, must=must)


def _must_match(array: Array) -> bool:
    """Return whether cells must match; two never must."""
    return array.must and len(array.cells) > 2


def cell_numbers(arrays: Sequence[Array]) -> dict[int, int]:
    """Return the cell of each device, by its index, in arrays of more than two cells."""
    cells = [cell for array in arrays if len(array.whole) > 2 for cell in array.whole]
    return {placed.index: number for number, cell in enumerate(cells) for placed in cell}


def arrays_of(subject: Subject) -> list[Array]:
    """Return the cells that should be equal: instances of a cell, equal stages, equal parts of a flat circuit.

    What matches devices outside of its cell, such as the output of a mirror, is no part of it.
    """
    circuit, by_name, known = subject.circuit, subject.by_name, set[str]()
    matched = (m for m in subject.roles.modules if MODULE_TYPES[m.type].matched and m.type not in _ACROSS)
    group = {name: set(module.devices) for module in matched for name in module.devices}
    arrays: list[Array] = []

    def passes(cell: Sequence[tuple[Hashable, str]]) -> bool:
        """Return whether a cell is an inverter: a line of these passes a signal on, whatever its delay."""
        devices = [circuit.device(name) for _, name in cell]
        ends = {(each.terminals.get("g"), each.terminals.get("d")) for each in devices}
        return {each.type for each in devices} == {"nmos", "pmos"} and len(ends) == 1

    found: list[tuple[list[list[tuple[Hashable, str]]], bool]] = []  # cells of keys and names; whether they must match
    instances: dict[str, list[list[tuple[Hashable, str]]]] = defaultdict(list)
    for instance in circuit.subcircuits:
        names = [(name.rsplit(".", maxsplit=1)[-1], name) for name in sorted(instance.devices)]
        if all(name in by_name for key, name in names if group.get(name, {name}) <= instance.devices.keys()):
            instances[instance.cell].append(sorted(names))
    found += [(cells, True) for _, cells in sorted(instances.items())]
    for each in (each.properties for each in subject.roles.groups if each.type == "ring_stage"):
        stages: list[list[tuple[Hashable, str]]] = [list(enumerate(stage)) for stage in each["stages"]]
        found.append((stages, str(each["arrangement"]) == "ring" or not passes(stages[0])))
    parts = _slices(circuit, subject.supplies)
    found += [(cells, any(name in group for _, name in cells[0]) and not passes(cells[0])) for cells in parts]
    found += [(cells, not passes(cells[0])) for cells in _lines(subject)]
    found += [(cells, False) for cells in _pass_gates(subject)]
    for cells, must in found:
        own = [
            [(key, name) for key, name in cell if name in by_name and group.get(name, {name}) <= {n for _, n in cell}]
            for cell in cells
        ]
        common = set.intersection(*({key for key, _ in cell} for cell in own))
        own = [[(key, name) for key, name in cell if key in common] for cell in own]
        every = {name for cell in own for _, name in cell}
        keys = [[key for key, _ in cell] for cell in own]
        if len(own) > 1 and len(keys[0]) > 1 and all(each == keys[0] for each in keys) and not every & known:
            known |= every
            whole = [[by_name[name] for _, name in cell if name in by_name] for cell in cells]
            arrays.append(Array([[by_name[name] for _, name in cell] for cell in own], keys[0], must, whole))
    return arrays


def _slices(circuit: Circuit, supplies: Supplies) -> list[list[list[tuple[Hashable, str]]]]:
    """Return the equal parts of a circuit between nets that all of them are on, such as bits or channels."""
    idle = {d.id for d in circuit.devices if d.is_mos and (is_off(d, supplies) or d.terminals["d"] == d.terminals["s"])}
    circuit = replace(circuit, devices=tuple(each for each in circuit.devices if each.id not in idle))
    devices, nets = classes_alike(circuit)
    count = Counter(nets.values())
    inner = {net for net in nets if net not in supplies and count[nets[net]] >= _FEWEST_SLICES}
    part = {name: frozenset({name}) for name in devices}
    for net in inner:
        whole = frozenset[str]().union(*(part[end.device] for end in circuit.nets[net] if end.device in part))
        part |= dict.fromkeys(whole, whole)
    found: dict[tuple[Hashable, ...], list[list[tuple[Hashable, str]]]] = defaultdict(list)
    for whole in dict.fromkeys(part[device.id] for device in circuit.devices):
        cell: list[tuple[Hashable, str]] = []
        for name in whole:
            outer = sorted(f"{end} {net}" for end, net in circuit.device(name).terminals.items() if net not in inner)
            cell.append(((devices[name], *outer), name))
        cell.sort(key=lambda each: (str(each[0]), each[1]))
        found[tuple(key for key, _ in cell)].append(cell)
    return [cells for cells in found.values() if len(cells) >= _FEWEST_SLICES]


def _lines(subject: Subject) -> Iterator[list[list[tuple[Hashable, str]]]]:
    """Yield the equal stages that drive each other in a line, with what hangs on nothing but their outputs."""
    alike: dict[tuple[Hashable, ...], list[list[tuple[Hashable, str]]]] = defaultdict(list)
    hanging: dict[str, list[str]] = defaultdict(list)
    for device in subject.circuit.devices:
        outer = {net for net in device.terminals.values() if net not in subject.supplies}
        if not device.is_mos and len(outer) == 1 and device.id in subject.by_name:  # no dummy that LVS leaves out
            hanging[outer.pop()].append(device.id)
    for stage in subject.stages:
        drains = dict.fromkeys(placed.device.terminals["d"] for placed in stage)
        names = [placed.id for placed in stage] + [name for net in drains for name in hanging[net]]
        cell: list[tuple[Hashable, str]] = []
        for name in names:
            device = subject.circuit.device(name)
            on = [f"{end} {net}" for end, net in sorted(device.terminals.items()) if net in subject.supplies]
            sizes = [f"{param}={value:.9g}" for param, value in sorted(device.params.items())]
            cell.append(((device.type, device.model, *sizes, *on), name))
        cell.sort(key=lambda each: (str(each[0]), each[1]))
        alike[tuple(key for key, _ in cell)].append(cell)
    for cells in alike.values():
        for chain in _chains([[subject.by_name[name] for _, name in cell] for cell in cells], subject):
            if len(chain) >= _FEWEST_IN_LINE:
                yield [cells[number] for number in chain]


def _pass_gates(subject: Subject) -> list[list[list[tuple[Hashable, str]]]]:
    """Return the pass gates, a transistor of each type between the same nets, that are alike and on the same controls.

    Those of mirrored halves have an axis.
    """
    between: dict[frozenset[str], list[PlacedDevice]] = defaultdict(list)
    for placed in (p for p in subject.placed if p.device.is_mos and len(p.ends - subject.supplies.nets) == 2):
        between[frozenset(placed.ends)].append(placed)
    alike: dict[tuple[Hashable, ...], list[list[tuple[Hashable, str]]]] = defaultdict(list)
    for own in between.values():
        if {placed.device.type for placed in own} == {"nmos", "pmos"} and not any(map(subject.images, own)):
            cell = [((p.device.model, p.device.w, p.device.l, p.device.terminals["g"]), p.id) for p in own]
            cell.sort(key=lambda each: (str(each[0]), each[1]))
            alike[tuple(key for key, _ in cell)].append([(key, name) for key, name in cell])
    return [cells for cells in alike.values() if len(cells) > 1]


def _chains(cells: Sequence[Cell], subject: Subject) -> list[list[int]]:
    """Return the numbers of cells of which each drives the next one alone, in that order."""
    gates, drains = (
        [{p.device.terminals.get(end) for p in cell if p.device.is_mos} for cell in cells] for end in ("g", "d")
    )
    own = subject.supplies.nets
    after = [
        [other for other, nets in enumerate(gates) if other != number and nets & (out - gates[number] - own)]
        for number, out in enumerate(drains)
    ]
    driven = Counter(other for following in after for other in following)
    found, seen = [], set[int]()
    for start in [number for number in range(len(cells)) if driven[number] != 1] + list(range(len(cells))):
        chain = [] if start in seen else [start]
        seen.add(start)
        while chain and len(after[chain[-1]]) == 1 and driven[(following := after[chain[-1]][0])] == 1:
            if following in seen:
                break
            chain.append(following)
            seen.add(following)
        found += [chain] if chain else []
    return found


def _unlike(one: Sequence[PlacedDevice], other: Sequence[PlacedDevice], keys: Sequence[Hashable]) -> float:
    """Return by how much places and sizes of devices in two cells differ, at the best of four reflections. [dbu]"""
    rank = {key: number for number, key in enumerate(dict.fromkeys(keys))}

    def placed(cell: Sequence[PlacedDevice], x: int, y: int) -> list[tuple[int, float, float, int, int]]:
        found = zip((rank[key] for key in keys), cell, strict=True)
        return sorted((n, x * p.centre[0], y * p.centre[1], p.box.width(), p.box.height()) for n, p in found)

    here, errors = placed(one, 1, 1), []
    for x, y in ((1, 1), (-1, 1), (1, -1), (-1, -1)):
        pairs = list(zip(here, placed(other, x, y), strict=True))
        moved = [mean(a[axis] - b[axis] for a, b in pairs) for axis in (1, 2)]
        places = max(abs(a[axis] - b[axis] - moved[axis - 1]) for a, b in pairs for axis in (1, 2))
        errors.append(max(places, *(abs(a[side] - b[side]) for a, b in pairs for side in (3, 4))))
    return min(errors)


def off_pitch(centres: Sequence[tuple[float, float]], row: int) -> float:
    """Return by how much equal things miss rows at one pitch; 0 for fewer than three. [dbu]

    Args:
        centres: Their middles. [dbu]
        row: Largest difference across within one row. [dbu]
    """
    if len(centres) < 3:
        return 0.0
    found = []
    for along, across in ((0, 1), (1, 0)):
        rows: list[list[tuple[float, float]]] = []
        for centre in sorted(centres, key=lambda each: (each[across], each[along])):
            if rows and centre[across] - rows[-1][0][across] <= row:
                rows[-1].append(centre)
            else:
                rows.append([centre])
        steps = [after - before for own in rows for before, after in pairwise(sorted(each[along] for each in own))]
        between = [after[0][across] - before[0][across] for before, after in pairwise(rows)]
        if steps:
            off = max(steps) - min(steps)
            found.append(max(off, max(between) - min(between)) if between else off)
    spread = [max(each) - min(each) for each in zip(*centres, strict=True)]
    return min(found, default=min(spread))  # no two of them share a row or column
