"""Plan the rows of a matched group: as a pattern states them, or chosen among candidates by computed figures.

The choice ``auto`` draws up candidates: one row or several, units of one or more fingers, fingers split where the
process allows. It prefers, in this order, coincident centroids, equal junctions, equal current directions and a low
cost. The cost is the area, increased by

- differences in stress and in the load of the drains, and a small dispersion,
- an aspect beyond 4, many rows, and split fingers,
- rows that are not their own mirror image,
- drains that no two fingers share, and long rails of drains, because both add capacitance.

A row such as AB is its own mirror image with the two devices exchanged. The wires of both can mirror each other, so
AB over BA is usually best for pairs.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from itertools import pairwise
from math import gcd, lcm, log
from typing import TYPE_CHECKING, NamedTuple

from layoutkit.draw.figures import Figures, figures
from layoutkit.draw.mos import dummy_length, with_dummies, with_guards
from layoutkit.draw.pattern import (
    AUTO,
    INTERDIGITATED,
    STACKED,
    FingerUnit,
    Pattern,
    UnitRow,
    arranged_row,
    centroid_error,
    common_centroid,
    in_one_direction,
    isolated,
    mirrored_row,
    parse_pattern,
    pattern_text,
    row_lengths,
    sequences,
    upside_down,
    wrapped,
)
from layoutkit.draw.row import row_sizes
from layoutkit.errors import GeometryError, listed

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from layoutkit.draw.mos import GuardDummy, Transistor
    from layoutkit.draw.row import Row, RowSizes
    from layoutkit.technology import Technology

WIDE = 4.0
"""Aspect beyond which more rows are preferred."""
JUNCTIONS_ALIKE = 0.01
STRESS_ALIKE = 0.02
FIGURES_ALIKE = 0.01
"""How much worse a relative figure of another shape of a group may be than that of the best shape."""

MOST_ROWS = 12  # in a taller stack the inner rows are too far from every tap
_MOST_SPLITS = 2
_CLASSES = 3  # entries of a rank that are classes of matching: centroids, junctions, directions
_STRESS_FREE = 0.01  # a difference in stress that is not weighed: 0.1 mV at 10 mV um and S = 1/um
_STRESS_WEIGHT = 10.0  # 1 % more of it may cost 10 % of area
_STRESS_FULL = 0.15  # mean S below which a difference counts less, as in long channels [1/um]
_DISPERSION_WEIGHT = 1.0
_LOAD_WEIGHT = 0.5  # of the difference in drain area; the branches of a ratio are loaded differently anyway
_LOAD_OF_EQUALS = 5.0
_NO_MIRROR_IMAGE = 1.25  # rows that are their own mirror image may cost so much more area
_DRAIN_WEIGHT = 0.5  # extra area that is worth spending to halve the drains, which two fingers then share [1]
_RAIL_WEIGHT = 0.3  # extra area that is worth spending to avoid drain rails as long as the rows [1]
_ROW_WEIGHT = 0.15  # of each row beyond the third: more dummies, more wires between rows
_APART = 0.5  # distance of the centroids of devices with several fingers from which these may be split [pitches]
_SPLIT = 1.6  # splitting fingers for another shape has to save so much area
_COST_STEP = 1.02  # costs within 2 % count as equal
_KEPT = 2  # candidates of each unit size and number of rows
_PLANNED = 8  # candidates with even, and with odd units that are planned in full
_MOST_UNITS = 400  # with more units only the largest unit size is tried


@dataclass(frozen=True)
class GroupWish:
    """How a group is to be arranged.

    Attributes:
        transistors: The devices, in the order of the pattern's letters.
        arrangement: ``auto``, ``interdigitated``, ``stacked``, or a pattern, see ``pattern``.
        dummies: Dummy fingers at each end of each row.
        tags: Device to what precedes the number in the names of its units, such as ``out_``.
        separate: Whether every unit has its own diffusion.
        gap: Minimum distance between diffusions that are not shared. [dbu]
        split: Whether fingers may be split into narrower ones.
        storeys: Groups of this size that are drawn above each other in one module, for the aspect of the whole.
        most_rows: How many rows the choice ``auto`` may take.
        guards: Dummies of the netlist at the ends of the rows; see ``mos.with_guards``.
    """

    transistors: tuple[Transistor, ...]
    arrangement: str = AUTO
    dummies: int = 2
    tags: Mapping[str, str] | None = None
    separate: bool = False
    gap: int = 0
    split: bool = True
    storeys: int = 1
    most_rows: int = MOST_ROWS
    guards: tuple[GuardDummy, ...] = ()


class GroupPlan(NamedTuple):
    """The rows of a group, ready to be drawn.

    Attributes:
        pattern: The rows as text, bottom row first; see ``pattern``.
        transistors: The devices as drawn: with more and narrower fingers if they were split.
        rows: Rows of fingers with dummies.
        figures: How unequal the devices are.
        warnings: What differs from the request, and what remains unequal.
        excess: Penalty for disadvantages of these rows, such as split fingers, as a fraction of their area. [1]
    """

    pattern: str
    transistors: tuple[Transistor, ...]
    rows: tuple[Row, ...]
    figures: Figures
    warnings: tuple[str, ...]
    excess: float = 0.0


class _Candidate(NamedTuple):
    split: int
    pattern: Pattern
    size: int = 1
    estimate: tuple[float, float] = (0.0, 0.0)
    one_way: bool = False


def plan_group(tech: Technology, wish: GroupWish) -> GroupPlan:
    """Return the rows of a matched group.

    Raises:
        GeometryError: If a stated pattern cannot be drawn; the message says what is possible.
    """
    planner = _Planner(tech, wish)
    if wish.arrangement == AUTO:
        return planner.chosen()
    if wish.arrangement in {INTERDIGITATED, STACKED}:
        return planner.in_largest_units(stacked=wish.arrangement == STACKED)
    return planner.stated()


def plan_shapes(tech: Technology, wish: GroupWish, most: int) -> tuple[GroupPlan, ...]:
    """Return the rows of a matched group in several shapes, those of ``plan_group`` first.

    The others have another number of rows, or fingers split otherwise, and figures as good: centroids, junctions and
    current directions are in the same class, the rows are their own mirror images where the first ones are, and stress,
    dispersion and drain load are worse by at most ``FIGURES_ALIKE``.

    Args:
        tech: The process.
        wish: How the group is to be arranged; a stated pattern has one shape.
        most: How many shapes to return at most.

    Raises:
        GeometryError: If a stated pattern cannot be drawn.
    """
    if wish.arrangement != AUTO:
        return (plan_group(tech, wish),)
    return _Planner(tech, wish).shapes(most)


def _apart(found: Figures) -> float:
    """Return how far the centroids of two devices are apart at most. [dbu]"""
    return max(found.centroid_error_x, found.centroid_error_y)


def splits(tech: Technology, transistors: Sequence[Transistor], parts: int) -> bool:
    """Return whether each finger of the transistors can be split into ``parts`` equal fingers of the process."""
    return all(
        t.finger_width % (parts * tech.grid) == 0 and t.finger_width // parts >= t.spec.min_w for t in transistors
    )


class _Planner:
    def __init__(self, tech: Technology, wish: GroupWish) -> None:
        self.tech = tech
        self.wish = wish
        self.ids = [t.id for t in wish.transistors]
        self.sizes: RowSizes = row_sizes(tech, wish.transistors[0].spec)
        self.sources = {t.id: t.source for t in wish.transistors}
        self._overhead = 2 * self.sizes.gate_contact_to_active + self.sizes.contact + self.sizes.rail
        self.reach = tech.dim("tap_max_distance", wish.transistors[0].spec)
        self.dummy_length = dummy_length(tech, wish.transistors[0])

    # ---- stated patterns

    def stated(self) -> GroupPlan:
        wish = self.wish
        pattern = parse_pattern(wish.arrangement, self.ids)
        units = Counter(device for row in pattern for device in row)
        parts = lcm(*(units[t.id] // gcd(units[t.id], t.fingers) for t in wish.transistors))
        if parts > 1 and not (wish.split and splits(self.tech, wish.transistors, parts)):
            raise self._refusal(units, parts)
        if len(pattern) > MOST_ROWS:
            raise GeometryError(
                f"{len(pattern)} rows are too many to stack (at most {MOST_ROWS}); use fewer rows",
                code="UNSUPPORTED_OPERATION",
            )
        return self._as_told(_Candidate(parts, pattern))

    def in_largest_units(self, *, stacked: bool) -> GroupPlan:
        """Return the devices interleaved in one row, or with one row per unit; fingers are split for the centroids."""
        wish = self.wish
        parts = 1
        row = _in_largest_units({t.id: t.fingers for t in wish.transistors})
        if centroid_error(row) and wish.split and splits(self.tech, wish.transistors, 2):
            parts = 2
            row = _in_largest_units({t.id: 2 * t.fingers for t in wish.transistors})
        if not stacked:
            return self._as_told(_Candidate(parts, (row,)))
        if len(row) > MOST_ROWS:
            raise GeometryError(
                f"{len(row)} units are too many rows to stack (at most {MOST_ROWS}); use arrangement auto",
                code="UNSUPPORTED_OPERATION",
            )
        return self._as_told(_Candidate(parts, wrapped(row, len(row))))

    def _refusal(self, units: Counter[str], parts: int) -> GeometryError:
        wish, tech = self.wish, self.tech
        uneven = [t for t in wish.transistors if t.fingers % units[t.id]]
        narrow = uneven[0].finger_width / parts
        possible = self.chosen().pattern
        shown = listed(f"{t.id} has {t.fingers} fingers for {units[t.id]} units" for t in uneven)
        return GeometryError(
            f"the fingers do not divide into the units of {wish.arrangement}: {shown}, and a finger of "
            f"{tech.to_um(narrow):g} um is below the minimum of {tech.to_um(uneven[0].spec.min_w):g} um or off the "
            f"grid of {tech.to_um(tech.grid):g} um. Possible here: {possible}, or more fingers (nf, m)",
            details={"provided_value": wish.arrangement, "possible": [AUTO, possible]},
        )

    # ---- candidates

    def chosen(self) -> GroupPlan:
        """Return the best plan."""
        return self._ranked()[0][1]

    def shapes(self, most: int) -> tuple[GroupPlan, ...]:
        """Return the best plan, and the best of other numbers of rows or other splits whose figures are as good."""
        (candidate, best), *others = self._ranked()
        if candidate.split == 1 and not self.wish.guards:  # those of the netlist have its units
            others += [(other, self._told_shape(other, plan, best)) for other, plan in self._with_split_fingers()]
        limit = self._rank(candidate, best)[:_CLASSES]
        mirrored = _mirrors(candidate.pattern)
        found = {(len(candidate.pattern), candidate.split): best}
        for other, plan in others:
            width, height = self._with_ring(plan.figures.width, plan.figures.height * self.wish.storeys)
            if (
                (len(other.pattern), other.split) not in found
                and self._rank(other, plan)[:_CLASSES] <= limit
                and (not mirrored or _mirrors(other.pattern))
                and plan.figures.stress_spread <= best.figures.stress_spread + FIGURES_ALIKE
                and plan.figures.dispersion >= best.figures.dispersion - FIGURES_ALIKE
                and plan.figures.drain_load <= best.figures.drain_load + FIGURES_ALIKE
                and max(width, height) <= WIDE * min(width, height)
            ):
                found[len(other.pattern), other.split] = plan
        return tuple(found.values())[:most]

    def _ranked(self) -> list[tuple[_Candidate, GroupPlan]]:
        """Return the candidates with their plans, the best first.

        Fingers stay as they are, unless that leaves the centroids apart: by any distance where a device has one finger,
        else by half a pitch.
        """
        plans = self._best_of(1)
        single = min(t.fingers for t in self.wish.transistors) == 1
        if plans and _apart(plans[0][1].figures) <= (0 if single else _APART * self._pitch()):
            return plans
        plans += [(each, self._told_pattern(each, plan)) for each, plan in self._with_split_fingers()]
        return sorted(plans, key=lambda each: self._rank(*each))

    def _with_split_fingers(self) -> list[tuple[_Candidate, GroupPlan]]:
        """Return the best candidates with split fingers, the best first; none where fingers may not be split."""
        parts = [
            n for n in range(2, _MOST_SPLITS + 1) if self.wish.split and splits(self.tech, self.wish.transistors, n)
        ]
        return [each for n in parts for each in self._best_of(n)]

    def _as_told(self, candidate: _Candidate) -> GroupPlan:
        return self._told_pattern(candidate, self._plan(candidate))

    def _told_pattern(self, candidate: _Candidate, plan: GroupPlan) -> GroupPlan:
        return self._told(candidate.split, plan, f"so that the pattern {plan.pattern} has whole units and one centroid")

    def _told_shape(self, candidate: _Candidate, plan: GroupPlan, unsplit: GroupPlan) -> GroupPlan:
        sizes = [
            " x ".join(
                f"{self.tech.to_um(side):.1f}" for side in self._with_ring(each.figures.width, each.figures.height)
            )
            for each in (plan, unsplit)
        ]
        return self._told(candidate.split, plan, f"for a block of about {sizes[0]} um instead of {sizes[1]} um")

    def _told(self, parts: int, plan: GroupPlan, why: str) -> GroupPlan:
        """Return a plan with a warning that states how the fingers were split, and what that buys."""
        if parts == 1:
            return plan
        widths = listed(f"{t.id} as {t.fingers} x {self.tech.to_um(t.finger_width):g} um" for t in plan.transistors)
        return plan._replace(warnings=(f"fingers were split into {parts}, {why}: {widths}", *plan.warnings))

    def _best_of(self, parts: int) -> list[tuple[_Candidate, GroupPlan]]:
        """Return the best candidates whose fingers are split into ``parts``, with their plans, the best first."""
        candidates = sorted(self._candidates(parts), key=lambda each: each.estimate)
        even = [each for each in candidates if each.size % 2 == 0][:_PLANNED]
        odd = [each for each in candidates if each.size % 2][:_PLANNED]
        plans = [(candidate, self._plan(candidate)) for candidate in (*even, *odd)]
        return sorted(plans, key=lambda each: self._rank(*each))

    def _candidates(self, parts: int) -> Iterator[_Candidate]:
        fingers = {t.id: t.fingers * parts for t in self.wish.transistors}
        for size in self._unit_sizes(fingers):
            units = {device: count // size for device, count in fingers.items()}
            yield from self._of_units(parts, size, units)

    def _unit_sizes(self, fingers: Mapping[str, int]) -> list[int]:
        whole = gcd(*fingers.values())
        total = sum(fingers.values())
        found = [size for size in range(1, min(whole, 8) + 1) if whole % size == 0 and total // size <= _MOST_UNITS]
        return found or [whole]

    def _of_units(self, parts: int, size: int, units: Mapping[str, int]) -> Iterator[_Candidate]:
        """Yield the most even patterns of ``units`` for each number of rows."""
        total = sum(units.values())
        listed = list(dict.fromkeys(sequences(units)))
        for rows in self._row_counts(total, size):
            found = [wrapped(sequence, rows) for sequence in listed if rows == 1 or sequence == sequence[::-1]]
            found += [*_rotations(units, rows), *_checkered(units, rows)]
            stress = self._stress_of_units(max(row_lengths(total, rows)) * size, size)
            for one_way in (False, True) if size % 2 else (False,):
                made = (_Candidate(parts, pattern, size, one_way=one_way) for pattern in found)
                rated = sorted((self._rated(each, stress), self._letters(each.pattern), each.pattern) for each in made)
                for estimate, _, pattern in rated[:_KEPT]:
                    yield _Candidate(parts, pattern, size, estimate, one_way)

    def _letters(self, pattern: Pattern) -> list[list[int]]:
        """Return a pattern with the places of the devices in the group, on which their names have no influence."""
        return [[self.ids.index(device) for device in row] for row in pattern]

    def _rated(self, candidate: _Candidate, stress: Sequence[float]) -> tuple[float, float]:
        """Return an estimate of a pattern's cost, and how far its units bunch; see ``_stress_of_units``."""
        pattern, parts = candidate.pattern, candidate.split
        stressed = self._weighed_stress(_means_of_stress(pattern, candidate.size, stress))
        between = max(map(len, pattern)) - 1 if candidate.one_way else 0  # units in one direction share no diffusion
        fingers = len(stress) + candidate.size - 1
        width = (fingers + between) * self._pitch() + 2 * self._dummies_width()
        height = len(pattern) * (self.wish.transistors[0].finger_width // parts + self._overhead) * self.wish.storeys
        bunches = sum(a == b for row in pattern for a, b in pairwise(row))
        return self._cost(self._with_ring(width, height), stressed, candidate), bunches

    def _row_counts(self, total: int, size: int) -> list[int]:
        """Return the numbers of rows to try: those that keep all rows near the taps.

        Rows are of one length. Only where all of these are too wide or too high, some rows have one unit less.
        """
        first = self.wish.transistors[0]
        height = first.finger_width + self._overhead
        even, uneven, fits = [], [], False
        for rows in range(1, min(total, self.wish.most_rows) + 1):
            lengths = row_lengths(total, rows)
            columns = max(lengths, default=0) * (size + size % 2)  # odd units may be apart
            size_x = columns * self._pitch() + 2 * self._dummies_width()
            size_y = rows * height * self.wish.storeys
            if not lengths or (rows > 1 and min(size_x, size_y) / 2 >= 0.8 * self.reach):
                continue
            if total % rows:
                uneven.append(rows)
                continue
            even.append(rows)
            size_x, size_y = self._with_ring(size_x, size_y)
            fits = fits or max(size_x, size_y) <= WIDE * min(size_x, size_y)
        return even if fits else even + uneven

    def _pitch(self) -> int:
        """Return the distance of adjacent fingers, as an estimate."""
        sizes = self.sizes
        return self.wish.transistors[0].length + max(2 * sizes.contact_to_gate + sizes.contact, sizes.gate_space)

    def _dummies_width(self) -> int:
        """Return the width of the dummies at one end of a row, as an estimate."""
        return self.wish.dummies * (self._pitch() - self.wish.transistors[0].length + self.dummy_length)

    def _stress_of_units(self, fingers: int, size: int) -> list[float]:
        """Return the sum of S in ``size`` fingers of a row that shares all diffusions, by the first one. [1/dbu]"""
        pitch = self._pitch()
        end = pitch - self.wish.transistors[0].length / 2 + self._dummies_width()
        stress = [1 / (end + i * pitch) + 1 / (end + (fingers - 1 - i) * pitch) for i in range(fingers)]
        return [sum(stress[first : first + size]) for first in range(fingers - size + 1)]

    def _rank(self, candidate: _Candidate, plan: GroupPlan) -> tuple[float, ...]:
        found = plan.figures
        width, height = self._with_ring(found.width, found.height * self.wish.storeys)
        cost = width * height * (1 + plan.excess)
        return (
            round(_apart(found) / self._pitch(), 2),
            found.junctions > JUNCTIONS_ALIKE,
            not found.one_direction,
            round(log(cost) / log(_COST_STEP)),
            -round(found.dispersion, 3),
            len(candidate.pattern),
        )

    def _excess(self, candidate: _Candidate, found: Figures) -> float:
        """Return the penalty for disadvantages of rows, as a fraction of their area. [1]"""
        width, height = self._with_ring(found.width, found.height * self.wish.storeys)
        stressed = self._weighed_stress(found.stress.values())
        load = _LOAD_OF_EQUALS if len({t.fingers for t in self.wish.transistors}) == 1 else _LOAD_WEIGHT
        shared = (self._pitch() - self.wish.transistors[0].length) / 2
        weight = self._cost((width, height), stressed, candidate) / (width * height)
        weight *= 1 + _DISPERSION_WEIGHT * (1 - min(found.dispersion, 1.0)) + load * found.drain_load
        drains = _DRAIN_WEIGHT * max(0.0, found.drain_depth / shared - 1) + _RAIL_WEIGHT * found.drain_span
        return weight * (1 + drains) - 1

    def _weighed_stress(self, stress: Collection[float]) -> float:
        """Return the relative difference between the devices' S [1/dbu], less where all are small."""
        mean = sum(stress) / len(stress)
        difference = round((max(stress) - min(stress)) / mean, 6)
        return difference * min(1.0, mean / self.tech.dbu_um / _STRESS_FULL)

    def _with_ring(self, width: int, height: int) -> tuple[int, int]:
        ring = 4 * (self.sizes.contact + self.sizes.active_space)
        return width + ring, height + ring

    def _cost(self, size: tuple[int, int], stressed: float, candidate: _Candidate) -> float:
        """Return the area of a pattern, increased by its disadvantages.

        Args:
            size: Width and height with the ring. [dbu]
            stressed: The weighed difference in stress. [1]
            candidate: The pattern.
        """
        cost = size[0] * size[1] * (max(*size, WIDE * min(size)) / min(size) / WIDE) ** 2
        cost *= 1 + _STRESS_WEIGHT * max(0.0, stressed - _STRESS_FREE)
        cost *= 1 + _ROW_WEIGHT * max(0, len(candidate.pattern) - 3)
        if not _mirrors(candidate.pattern):
            cost *= _NO_MIRROR_IMAGE
        return cost if candidate.split == 1 else cost * _SPLIT

    # ---- rows

    def _plan(self, candidate: _Candidate) -> GroupPlan:
        wish = self.wish
        transistors = tuple(_in_parts(t, candidate.split) for t in wish.transistors)
        rows = self._rows(candidate, transistors)
        found = figures(rows, self.sizes, self.sources)
        pattern = pattern_text(candidate.pattern, self.ids)
        warnings = [text for t in wish.transistors for text in t.warnings]
        warnings += self._differences(found)
        return GroupPlan(pattern, transistors, rows, found, tuple(warnings), self._excess(candidate, found))

    def _differences(self, found: Figures) -> Iterator[str]:
        """Yield what remains unequal."""
        alike = {(t.finger_width, t.length) for t in self.wish.transistors}
        if len(alike) > 1 or len(self.ids) < 2:
            return
        names = listed(self.ids)
        if found.junctions > JUNCTIONS_ALIKE:
            yield f"AD, AS, PD or PS per gate width differ by {found.junctions:.1%}: {names}"
        if found.stress_spread > STRESS_ALIKE:
            yield (
                f"the distances to the ends of the diffusion (sa, sb) differ: mean 1/(sa+L/2) + 1/(sb+L/2) by "
                f"{found.stress_spread:.1%}: {names}"
            )
        if not found.one_direction:
            yield f"the devices have different shares of fingers with the source on the left: {names}"

    def _rows(self, candidate: _Candidate, transistors: Sequence[Transistor]) -> tuple[Row, ...]:
        wish, pattern = self.wish, candidate.pattern
        bulk = transistors[0].bulk
        plain: list[Row] = []
        shapes: list[list[tuple[str, int]]] = []
        for number, units in enumerate(_units(pattern, transistors, wish.tags or {})):
            shapes.append([(unit.transistor.id, unit.fingers) for unit in units])
            below = len(pattern) - 1 - number
            if candidate.one_way:
                row = in_one_direction(units)
            elif below < number and len(units) > 1 and shapes[number] == shapes[below][::-1]:
                row = mirrored_row(plain[below], units)
            else:
                row = arranged_row(units, gap=wish.gap, separate=wish.separate)
            plain.append(row)
        rows = []
        longest = max(sum(unit[1] for unit in units) for units in shapes)
        for number, row in enumerate(plain):
            made = row if wish.separate or not wish.dummies else isolated(row, bulk)
            lack = longest - sum(unit[1] for unit in shapes[number]) if wish.arrangement == AUTO else 0
            if wish.dummies:
                made = with_dummies(made, lack // 2, bulk)
                made = with_dummies(made, wish.dummies, bulk, self.dummy_length)
            rows.append(made)
        guarded = with_guards(rows, wish.guards, bulk)
        return tuple(upside_down(row) if number % 2 else row for number, row in enumerate(guarded))


def _mirrors(pattern: Pattern) -> bool:
    """Return whether each row is its own mirror image, with the two devices of a pair exchanged or not."""
    devices = sorted({device for row in pattern for device in row})
    if all(row == row[::-1] for row in pattern):
        return True
    if len(devices) != 2:
        return False
    exchanged = dict(zip(devices, devices[::-1], strict=True))
    return all(row == tuple(exchanged[device] for device in reversed(row)) for row in pattern)


def _in_largest_units(fingers: Mapping[str, int]) -> UnitRow:
    """Return the common-centroid row with the largest units that have no centroid error, else the smallest error."""
    whole = gcd(*fingers.values())
    rows = [
        common_centroid({device: count // size for device, count in fingers.items()})
        for size in range(whole, 0, -1)
        if whole % size == 0
    ]
    return min(rows, key=lambda row: centroid_error(row) / len(row))


def _units(pattern: Pattern, transistors: Sequence[Transistor], tags: Mapping[str, str]) -> list[list[FingerUnit]]:
    """Return ``pattern`` as units named ``<device>_<tag><number>``."""
    by_id = {transistor.id: transistor for transistor in transistors}
    counts = Counter(device for row in pattern for device in row)
    numbers: Counter[str] = Counter()
    rows = []
    for row in pattern:
        units = []
        for device in row:
            numbers[device] += 1
            size = by_id[device].fingers // counts[device]
            units.append(FingerUnit(f"{device}_{tags.get(device, '')}{numbers[device]}", by_id[device], size))
        rows.append(units)
    return rows


def _in_parts(transistor: Transistor, parts: int) -> Transistor:
    """Return the transistor with ``parts`` times the fingers of a fraction of the width."""
    if parts == 1:
        return transistor
    return replace(transistor, finger_width=transistor.finger_width // parts, nf=parts * transistor.nf)


def _rotations(units: Mapping[str, int], rows: int) -> list[Pattern]:
    """Return rows that are palindromes and in which the devices take turns, such as ABBA/BAAB and ABCCBA/BCAACB/...

    They exist for devices with equal counts and as many rows as devices.
    """
    devices, count = list(units), next(iter(units.values()))
    if rows != len(devices) or rows < 2 or set(units.values()) != {count} or count % (2 * rows):
        return []
    times = count // (2 * rows)
    halves = [tuple(devices[(i + j) % rows] for j in range(rows)) * times for i in range(rows)]
    return [tuple((*half, *reversed(half)) for half in halves)]


def _checkered(units: Mapping[str, int], rows: int) -> list[Pattern]:
    """Return rows of odd length that are palindromes of two devices in turn, such as ABA/BAB, for equal odd counts."""
    devices, counts = list(units), set(units.values())
    length, rest = divmod(sum(units.values()), rows)
    if len(devices) != 2 or len(counts) != 1 or rest or rows % 2 or length % 2 == 0:
        return []
    first = [(0, 1, 1, 0)[row % 4] for row in range(rows)]  # so that those with one more of a device balance
    return [tuple(tuple(devices[(start + j) % 2] for j in range(length)) for start in first)]


def _means_of_stress(pattern: Pattern, size: int, stress: Sequence[float]) -> list[float]:
    """Return the mean S of each device of a pattern of ``size`` fingers a unit, whose S is ``stress``. [1/dbu]"""
    sums = {device: 0.0 for row in pattern for device in row}
    counts = dict.fromkeys(sums, 0)
    for row in pattern:
        first = (len(stress) + size - 1 - len(row) * size) // 2
        for device, its in zip(row, stress[first::size], strict=False):
            sums[device] += its
            counts[device] += size
    return [sums[device] / counts[device] for device in sums]
