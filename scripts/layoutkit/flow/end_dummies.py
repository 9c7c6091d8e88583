"""How many dummies each end of the rows of a matched group gets: as few as its predicted error allows.

Dummies cost area: with two at each end, a pair can take twice the room. Rows that face each other, as AB/BA, give both
devices the same ends, and then dummies change nothing. So the group is planned with none, one and two dummies at each
end, and the fewest are taken that keep these figures:

    offset      what stress at the ends of the diffusion does to a pair or mirror by the coefficients of the technology,
                at most ``LIMIT_MV`` or ``LIMIT_PERCENT``; where it states none, sa and sb equal within 2 %
    junctions   AD, AS, PD and PS per width equal within 1 %, for a pair also what loads its drains
    open ends   of gates up to 1 um long, the part of the edges without a gate beside them is equal

Transistors that switch fully, such as the latch of a level shifter, need no equal currents and get no dummies.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from layoutkit.draw.group_plan import JUNCTIONS_ALIKE, STRESS_ALIKE
from layoutkit.draw.mos import DUMMY_LENGTH_UM
from layoutkit.extract.predicted_offset import Measured, predicted_offset

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from layoutkit.draw.group_plan import GroupPlan
    from layoutkit.flow.groups import Group
    from layoutkit.technology import Technology

LIMIT_MV = 0.1
"""Predicted offset of a pair from stress that no dummy has to lower. [mV]"""
LIMIT_PERCENT = 0.1
"""The same of the currents of a mirror; it is ``LIMIT_MV`` at an overdrive voltage of 0.2 V. [%]"""
MOST_DUMMIES = 2
"""More dummies at each end change the stress of the gates beside them by less than the limits."""


@dataclass(frozen=True)
class EndDummies:
    """How many dummies a group has at each end of its rows.

    Attributes:
        count: The number.
        reason: Why, in words.
    """

    count: int
    reason: str


@dataclass(frozen=True)
class _Judged:
    """The figures of a plan with some number of dummies.

    Attributes:
        error: Predicted error, or the relative difference of the stress figures where nothing predicts it.
        limit: What it may be.
        unit: Of both.
        unequal: What else differs between the devices, in words.
    """

    error: float
    limit: float
    unit: str
    unequal: tuple[str, ...]

    @property
    def good(self) -> bool:
        return self.error <= self.limit and not self.unequal

    @property
    def text(self) -> str:
        what = "sa and sb differ by" if self.unit == "% of sa and sb" else "predicted error from stress"
        unit = "%" if self.unit == "% of sa and sb" else self.unit
        return "; ".join((f"{what} {self.error:.2f} {unit} (limit {self.limit:g} {unit})", *self.unequal))


def chosen_dummies(
    technology: Technology,
    group: Group,
    wanted: int | Literal["auto"],
    plans_with: Callable[[int], Sequence[GroupPlan]],
) -> tuple[EndDummies, tuple[GroupPlan, ...]]:
    """Return how many dummies a group gets at each end, and its plans with them, the best first.

    Args:
        technology: The process.
        group: Several transistors.
        wanted: The number that the request states, or ``auto``.
        plans_with: Returns the plans with a number of dummies at each end, the best first.

    Raises:
        GeometryError: If the group cannot be drawn.
    """
    if not isinstance(wanted, str):
        return EndDummies(wanted, "stated in the request"), tuple(plans_with(wanted))
    if group.switching:
        reason = "a latch without an input pair: its transistors switch fully and need no equal currents"
        return EndDummies(0, reason), tuple(plans_with(0))
    tried: list[tuple[_Judged, tuple[GroupPlan, ...]]] = []
    for count in range(MOST_DUMMIES + 1):
        plans = tuple(plans_with(count))
        tried.append((_judged(technology, group, plans[0]), plans))
        if tried[-1][0].good:
            break
    fewest = min(len(each.unequal) for each, _ in tried)
    equal = [(count, each) for count, (each, _) in enumerate(tried) if len(each.unequal) == fewest]
    least = min(each.error for _, each in equal)
    count, found = next(
        (count, each) for count, each in equal if each.error <= each.limit or each.error - least < each.limit
    )
    plans = tried[count][1]
    kept = [
        plan
        for plan, judged in ((plan, _judged(technology, group, plan)) for plan in plans)
        if judged.good or (len(judged.unequal) <= fewest and judged.error <= found.error)
    ]
    return EndDummies(count, _reason(count, [each for each, _ in tried])), tuple(kept)


def _reason(count: int, tried: Sequence[_Judged]) -> str:
    if count == 0 and tried[0].good:
        return f"none is needed: {tried[0].text}"
    found = f"with {count} at each end: {tried[count].text}"
    if not tried[count].good:
        found += "; more dummies change it by less than the limit" if count < MOST_DUMMIES else "; this remains"
    return f"without dummies: {tried[0].text}; {found}" if count else found


def _judged(technology: Technology, group: Group, plan: GroupPlan) -> _Judged:
    figures = plan.figures
    devices = [each for each in plan.transistors if each.id in figures.stress and each.id not in group.cascodes]
    mirror = len({each.gate for each in devices}) == 1
    alike = len({each.width for each in devices}) == 1
    unequal = []
    if figures.junctions > JUNCTIONS_ALIKE:
        unequal.append(f"AD, AS, PD or PS per width differ by {figures.junctions:.1%}")
    if alike and not mirror and figures.drain_load > JUNCTIONS_ALIKE:
        unequal.append(f"the areas that load the drains differ by {figures.drain_load:.1%}")
    if figures.open_ends > 0 and devices[0].length <= technology.to_dbu(DUMMY_LENGTH_UM):
        unequal.append(f"the devices differ by {figures.open_ends:.0%} in gate edges at the ends of rows")
    measured = [
        Measured(
            id=each.id,
            width_um=technology.to_um(each.finger_width),
            total_width_um=technology.to_um(each.width),
            length_um=technology.to_um(each.length),
            stress=figures.stress[each.id] / technology.dbu_um,
            junction_ff=None,
        )
        for each in devices
    ]
    offset = predicted_offset(group.spec, measured, mirror=mirror, clocked=False)
    values = offset["contributions"]["stress"]["values"]
    if not values:
        return _Judged(100 * figures.stress_spread, 100 * STRESS_ALIKE, "% of sa and sb", tuple(unequal))
    error = max(abs(value) for value in values)
    return _Judged(error, LIMIT_PERCENT if mirror else LIMIT_MV, offset["unit"], tuple(unequal))
