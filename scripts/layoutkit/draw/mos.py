"""A MOS transistor with its fingers and nets, as all generators use it, and the drawing of a single one."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from math import inf, log, sqrt
from typing import TYPE_CHECKING, NamedTuple

from layoutkit.draw.module import DrawnDummy
from layoutkit.draw.ring import FULL_RING, RingStyle
from layoutkit.draw.row import Finger, Row
from layoutkit.draw.stack import RowStack, draw_row_module, module_size
from layoutkit.errors import GeometryError, sentences
from layoutkit.technology.finger_widths import MAX_FINGERS, MAX_SIDE_UM

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import klayout.db as kdb

    from layoutkit.draw.module import Module
    from layoutkit.technology import DeviceSpec, Technology

DUMMY_LENGTH_UM = 1.0
"""Largest gate length of a dummy [um]: the etching of a gate depends on its neighbour's edge, not on its length."""
MAX_ASPECT = 4.0
"""A transistor whose module is longer than this many times its other side is folded into rows."""
_MOST_ROWS = 12  # in a taller stack the inner rows are too far from every tap


@dataclass(frozen=True)
class Transistor:
    """A MOS transistor in database units.

    Attributes:
        id: Instance name.
        spec: Flavour.
        finger_width: Channel width of one finger. [dbu]
        length: Channel length. [dbu]
        nf: Number of fingers of one multiplier unit.
        m: Number of multiplier units in parallel.
        drain: Net.
        gate: Net.
        source: Net.
        bulk: Net.
        warnings: Descriptions of what was rounded.
        current: Largest direct current, for which the metal is drawn. [A]
        blocked: How far silicide is blocked beside the gate at drain and source, for a flavour that blocks it. [dbu]
    """

    id: str
    spec: DeviceSpec
    finger_width: int
    length: int
    nf: int
    m: int
    drain: str
    gate: str
    source: str
    bulk: str
    warnings: tuple[str, ...] = ()
    current: float = 0.0
    blocked: tuple[int, int] | None = None

    @property
    def fingers(self) -> int:
        """Number of fingers of all units."""
        return self.nf * self.m

    @property
    def width(self) -> int:
        """Total channel width of all fingers. [dbu]"""
        return self.finger_width * self.fingers

    def finger(self, *, mirrored: bool) -> Finger:
        """Return one finger of it: source left and drain right, or mirrored."""
        left, right = (self.drain, self.source) if mirrored else (self.source, self.drain)
        length = self.length + self.spec.beyond_channel
        finger = Finger(self.id, self.gate, left, right, self.finger_width, length, self.id)
        blocked = self.spec.beyond_gate or self.blocked
        if blocked is None:
            return finger
        return replace(finger, blocked=blocked if mirrored else blocked[::-1], source_left=not mirrored)


@dataclass(frozen=True)
class GuardDummy:
    """A dummy of the netlist, with its gate and at least one end on the bulk net, that is drawn at the ends of rows.

    Attributes:
        id: Instance name.
        end: Net of its other end.
        width: Total channel width. [dbu]
        length: Channel length. [dbu]
    """

    id: str
    width: int
    length: int
    end: str


@dataclass(frozen=True)
class MosSize:
    """Size of a transistor as netlists state it.

    ``w_m`` is the drawn channel width of one multiplier unit over all its ``nf`` fingers [m]. ``blocks`` are parameters
    of the netlist that state how far silicide is blocked, for a flavour that blocks it. [m]
    """

    w_m: float
    l_m: float
    nf: int = 1
    m: int = 1
    blocks: Mapping[str, float] = field(default_factory=dict)


def transistor(
    tech: Technology, device_id: str, flavour: str, size: MosSize, nets: Mapping[str, str] | None = None
) -> Transistor:
    """Return the transistor ``device_id`` with its size on the grid of ``tech``.

    Args:
        tech: Process.
        device_id: Instance name.
        flavour: ``nmos``, ``pmos``, a device of the technology, or its model.
        size: As in the netlist.
        nets: Terminal (d, g, s, b) to net; the net of a missing terminal is ``<device_id>_<terminal>``.

    Raises:
        GeometryError: If a size is below or above what the process allows, or a count is not positive; all faults at
            once.
        TechnologyError: If the process has no such device.
    """
    spec = tech.device(flavour)
    _check_counts(device_id, size)
    limits = (spec.min_w, spec.max_w), (spec.min_l, spec.max_l)
    faults = [
        *_outside(tech, "Width", size.w_m, size.nf, limits[0]),
        *_outside(tech, "Length", size.l_m, 1, limits[1]),
        *_too_large(device_id, size),
        *(_Fault(f"{device_id}: {text}", dict(size.blocks)) for text in spec.block_faults(size.blocks, tech.dbu_um)),
    ]
    _refuse(faults)
    warnings: list[str] = []
    finger_width = _on_grid(tech, "Width", size.w_m, size.nf, warnings)
    length = _on_grid(tech, "Length", size.l_m, 1, warnings)
    named = {t: (nets or {}).get(t) or f"{device_id}_{t.upper()}" for t in ("d", "g", "s", "b")}
    return Transistor(
        device_id,
        spec,
        finger_width,
        length,
        size.nf,
        size.m,
        named["d"],
        named["g"],
        named["s"],
        named["b"],
        tuple(f"{device_id}: {warning}" for warning in warnings),
        blocked=spec.blocked(size.blocks, tech.dbu_um),
    )


class _Fault(NamedTuple):
    """What is wrong with a size: a sentence, and the details of an error with no other fault."""

    text: str
    details: Mapping[str, object]


def _refuse(faults: Sequence[_Fault]) -> None:
    """Raise one error that states all ``faults``, if there are any."""
    if faults:
        details = dict(faults[0].details) if len(faults) == 1 else {"faults": [dict(fault.details) for fault in faults]}
        raise GeometryError(sentences(fault.text for fault in faults), details=details)


def _check_counts(device_id: str, size: MosSize) -> None:
    faults = [
        _Fault(text, {"provided_value": count})
        for count, text in (
            (size.nf, "Number of fingers must be positive integer"),
            (size.m, "Multiplier must be positive integer"),
        )
        if count < 1
    ]
    _refuse(faults)
    if size.nf * size.m > MAX_FINGERS:
        raise GeometryError(f"{device_id} has {size.nf * size.m} fingers; at most {MAX_FINGERS} are allowed")


def _outside(tech: Technology, what: str, length_m: float, parts: int, limits: tuple[int, int | None]) -> list[_Fault]:
    """Return the fault of a length of which one of ``parts`` equal parts is outside ``limits`` [dbu]."""
    exact = length_m * 1e6 / tech.dbu_um / parts
    low, high = limits
    per_m = tech.dbu_um * 1e-6 * parts
    stated = {"provided_value": length_m, "unit": "m", "parts": parts}
    if not exact > low - 0.01:
        text = f"{what} {length_m:g} is below minimum {low * per_m:g}"
        return [_Fault(text, {**stated, "minimum": low * per_m})]
    if high is not None and exact > high + 0.01:
        text = f"{what} {length_m:g} is above maximum {high * per_m:g}"
        return [_Fault(text, {**stated, "maximum": high * per_m})]
    return []


def _too_large(device_id: str, size: MosSize) -> list[_Fault]:
    """Return the fault of sizes whose drawing would hold millions of contacts."""
    widths = (f"a finger of {device_id} is {size.w_m / size.nf * 1e6:g} um wide", size.w_m / size.nf * 1e6)
    lengths = (f"the gate of {device_id} is {size.l_m * 1e6:g} um long", size.l_m * 1e6)
    faults = [f"{text}; at most {MAX_SIDE_UM:g} um are drawn" for text, um in (widths, lengths) if um > MAX_SIDE_UM]
    if not faults:
        return []
    text = (
        f"{'; '.join(faults)}. Use more fingers (nf), units (m) or transistors in series, or correct the unit: "
        "w and l are in metres"
    )
    return [_Fault(text, {"w": size.w_m, "l": size.l_m, "nf": size.nf, "maximum_um": MAX_SIDE_UM})]


def _on_grid(tech: Technology, what: str, length_m: float, parts: int, warnings: list[str]) -> int:
    """Return one of ``parts`` equal parts of ``length_m`` on the grid; append a warning if it moved there."""
    exact = length_m * 1e6 / tech.dbu_um / parts
    snapped = tech.snap(exact)
    if abs(snapped - exact) > 0.01:
        each = f" in each of {parts} fingers, {tech.to_um(snapped * parts):g} um in all" if parts > 1 else ""
        warnings.append(
            f"{what.lower()} {length_m:g} m is off the {tech.to_um(tech.grid):g} um grid; "
            f"drawn as {tech.to_um(snapped):g} um{each}"
        )
    return snapped


@dataclass(frozen=True)
class MosSpec:
    """A single transistor to be drawn, or several in parallel as one.

    Attributes:
        transistor: What to draw.
        parts: The devices in parallel that it stands for, each with its number of fingers; empty for itself.
        name: Name of the cell.
        dummies: Dummy fingers at each end, on the diffusion of the outer fingers and off.
        guards: Dummies of the netlist, outside of those; see ``with_guards``.
        rows: Number of rows that the fingers are folded into.
        labels: Whether pins carry net names.
        ring: Which taps surround it.
    """

    transistor: Transistor
    name: str
    dummies: int = 0
    rows: int = 1
    labels: bool = True
    ring: RingStyle = FULL_RING
    parts: tuple[tuple[str, int], ...] = ()
    guards: tuple[GuardDummy, ...] = ()


def draw_mos(layout: kdb.Layout, tech: Technology, spec: MosSpec) -> Module:
    """Draw one transistor, fingers side by side with shared diffusions, and return its module.

    Raises:
        GeometryError: If it cannot be drawn; the message states why.
    """
    stack = folded_rows(tech, spec)
    dummies = drawn_dummies(stack.rows, spec.transistor)
    return replace(draw_row_module(layout, tech, stack), warnings=spec.transistor.warnings, dummies=dummies)


def drawn_dummies(rows: Sequence[Row], like: Transistor) -> tuple[DrawnDummy, ...]:
    """Return the dummy fingers of ``rows`` that the netlist lacks, equal ones together, in the order of the first."""
    counts = Counter(
        DrawnDummy(like.spec.name, f.gate, min(f.left, f.right), max(f.left, f.right), like.bulk, f.width, f.length)
        for row in rows
        for f in row.fingers
        if not (f.device or f.unit)
    )
    return tuple(replace(dummy, count=count) for dummy, count in counts.items())


def compact_rows(tech: Technology, spec: MosSpec) -> int:
    """Return the fewest rows in which neither side of the module is more than ``MAX_ASPECT`` times the other.

    Rows with equal numbers of fingers are preferred. Where no number of rows is compact enough, the best is returned;
    one row where rows above each other would lie too far from the taps.
    """
    fingers, one = spec.transistor.fingers, _aspect(tech, spec, 1)
    if one == inf or 1 / MAX_ASPECT <= one <= MAX_ASPECT:
        return 1
    one = max(one, 1 / one)
    first = min(fingers, max(2, round(sqrt(one / MAX_ASPECT))))
    aspects = {rows: _aspect(tech, spec, rows) for rows in range(first, min(fingers, 2 * first + 2) + 1)}
    found = {rows: max(value, 1 / value) for rows, value in aspects.items()}
    compact = [rows for rows, value in found.items() if value <= MAX_ASPECT]
    equal = [rows for rows in compact if fingers % rows == 0]
    return min(equal or compact or [min({1: one, **found}, key=lambda rows: (found.get(rows, one), rows))])


def row_choices(tech: Technology, spec: MosSpec, most: int) -> tuple[int, ...]:
    """Return numbers of rows that give modules of different shapes, that of ``compact_rows`` first.

    The others have equal numbers of fingers in all rows and no side more than ``MAX_ASPECT`` times the other.

    Args:
        tech: The process.
        spec: What to draw.
        most: How many numbers to return at most; those farthest from the first in shape are preferred.
    """
    first = compact_rows(tech, spec)
    fingers = spec.transistor.fingers
    rows = [n for n in range(1, min(fingers, _MOST_ROWS) + 1) if fingers % n == 0 and n != first]
    aspects = {n: _aspect(tech, spec, n) for n in rows}
    fit = [n for n in rows if 1 / MAX_ASPECT <= aspects[n] <= MAX_ASPECT]
    while len(fit) > most - 1:
        middle = min(fit[1:-1] or fit, key=lambda n: abs(log(aspects[n])))
        fit.remove(middle if len(fit) > 2 else max(fit))
    return (first, *fit)


def _aspect(tech: Technology, spec: MosSpec, rows: int) -> float:
    """Return width over height of the module with ``rows`` rows and taps; infinite where it cannot be drawn."""
    folded = replace(spec, rows=rows)
    try:
        if spec.ring != FULL_RING:
            module_size(tech, folded_rows(tech, folded))  # its own taps must be near enough
        width, height = module_size(tech, folded_rows(tech, replace(folded, ring=FULL_RING)))
    except GeometryError:
        return inf
    return width / height


def folded_rows(tech: Technology, spec: MosSpec) -> RowStack:
    """Return the rows of a transistor, or of parallel ones as one.

    Raises:
        GeometryError: If it has fewer fingers than rows.
    """
    device = spec.transistor
    if not 1 <= spec.rows <= device.fingers:
        raise GeometryError(f"{device.id} has {device.fingers} fingers, which cannot be folded into {spec.rows} rows")
    base, extra = divmod(device.fingers, spec.rows)
    rows, parts = [], spec.parts or ((device.id, device.fingers),)
    names = iter([name for name, count in parts for _ in range(count)])
    for row in range(spec.rows):
        count = base + (row < extra)
        fingers = (device.finger(mirrored=bool(i % 2)) for i in range(count))
        named = tuple(replace(finger, device=name, unit=name) for finger, name in zip(fingers, names, strict=False))
        rows.append(with_dummies(Row(named), spec.dummies, device.bulk, dummy_length(tech, device)))
    guarded = with_guards(rows, spec.guards, device.bulk)
    stack = RowStack(spec.name, device.spec, device.bulk, guarded, labels=spec.labels, ring=spec.ring)
    currents = {name: device.current * count / device.fingers for name, count in parts}
    return replace(stack, currents=currents, parallel=len(parts) > 1)


def dummy_length(tech: Technology, like: Transistor) -> int:
    """Return the gate length of dummies beside fingers of ``like``: the same, but at most ``DUMMY_LENGTH_UM``. [dbu]"""
    longest = tech.snap_up(tech.to_dbu(DUMMY_LENGTH_UM))
    return min(like.length, max(longest, like.spec.min_l))


def with_dummies(row: Row, count: int, bulk_net: str, length: int | None = None) -> Row:
    """Return ``row`` with ``count`` dummy fingers at each end, on the diffusion of its first and last finger.

    The gate of a dummy and what it does not share are on ``bulk_net``; its inner side is on its neighbour's net.
    ``length`` is their gate length, by default that of the finger beside them [dbu]. Where silicide is blocked beside
    gates, there are none.
    """
    if count < 1 or row.fingers[0].blocked:
        return row
    first, last = row.fingers[0], row.fingers[-1]
    off = replace(first, device="", unit="", orientation="R0", gate=bulk_net, left=bulk_net, right=bulk_net)
    off = replace(off, length=length or first.length)
    left = (*(off,) * (count - 1), replace(off, right=first.left))
    off = replace(off, width=last.width, length=length or last.length)
    right = (replace(off, left=last.right), *(off,) * (count - 1))
    breaks = frozenset(i + count for i in row.breaks)
    return replace(row, fingers=left + row.fingers + right, breaks=breaks)


def with_guards(rows: Sequence[Row], guards: Sequence[GuardDummy], bulk_net: str) -> tuple[Row, ...]:
    """Return ``rows`` with dummies of the netlist at their ends, outside of all others.

    All ends get as many of each gate length, so that rows that are mirror images stay mirror images; where the netlist
    has too few for that, dummies of the same size that it lacks take the free places. They share the diffusion of what
    they lie beside where that ends on the bulk net.

    Args:
        rows: The rows of one module; the fingers of all have one width, of which those of ``guards`` are multiples.
        guards: The dummies.
        bulk_net: Net of all their terminals, but for the other end of each.
    """
    own = rows[0].fingers[0]
    found = list(rows)
    if own.blocked and guards:
        raise GeometryError(f"dummies of the netlist cannot lie beside {own.device}, whose silicide is blocked")
    lengths = sorted({guard.length for guard in guards}, key=lambda length: (abs(length - own.length), length))
    for length in lengths:
        off = Finger("", bulk_net, bulk_net, bulk_net, own.width, length)
        alike = [guard for guard in guards if guard.length == length]
        ends = [replace(off, unit=g.id, right=g.end) for g in alike for _ in range(g.width // own.width)]
        while ends:
            here, ends = ends[: 2 * len(rows)], ends[2 * len(rows) :]
            here += [off] * (2 * len(rows) - len(here))
            for number, row in enumerate(found):
                left, right = here[2 * number : 2 * number + 2]
                if row.fingers[0].left == left.left:  # what it shares with its neighbour lies inside
                    left = replace(left, left=left.right, right=left.left)
                if row.fingers[-1].right != right.left:
                    right = replace(right, left=right.right, right=right.left)
                breaks = frozenset(i + 1 for i in row.breaks)
                found[number] = replace(row, fingers=(left, *row.fingers, right), breaks=breaks)
    return tuple(found)
