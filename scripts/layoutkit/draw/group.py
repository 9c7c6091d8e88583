"""Draw a group of matched transistors as one module: any number of devices in any ratio, in one row or several."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from layoutkit.draw.group_plan import MOST_ROWS, GroupPlan, GroupWish, plan_shapes
from layoutkit.draw.mos import drawn_dummies
from layoutkit.draw.pattern import AUTO
from layoutkit.draw.ring import FULL_RING, RingStyle
from layoutkit.draw.stack import RowStack, draw_row_module
from layoutkit.errors import FarFromTapsError, GeometryError, listed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import klayout.db as kdb

    from layoutkit.draw.module import Module
    from layoutkit.draw.mos import Guard, Transistor
    from layoutkit.technology import Technology


@dataclass(frozen=True)
class GroupSpec:
    """Matched transistors to be drawn as one module.

    Attributes:
        name: Name of the cell.
        transistors: Transistors of the same type and bulk net, in the order of the pattern's letters.
        arrangement: ``auto``, ``interdigitated``, ``stacked``, or a pattern such as ``AB/BA``, see ``pattern``.
        dummies: Dummy fingers at each end of each row.
        labels: Whether pins carry net names.
        split: Whether fingers may be split so that the devices have equal units in the pattern.
        separate: Whether every unit has its own diffusion.
        gap: Minimum distance between diffusions that are not shared. [dbu]
        tags: Device to what precedes the number in the names of its units, such as ``out_``.
        ring: Which taps surround it.
        twins: Nets that are to be wired as mirror images, in pairs, the left one first; see ``risers``.
        most_rows: How many rows the arrangement ``auto`` may take.
        guards: Dummies of the netlist at the ends of the rows; see ``mos.with_guards``.
    """

    name: str
    transistors: tuple[Transistor, ...]
    arrangement: str = AUTO
    dummies: int = 2
    labels: bool = True
    split: bool = True
    separate: bool = False
    gap: int = 0
    tags: Mapping[str, str] | None = None
    ring: RingStyle = FULL_RING
    twins: tuple[tuple[str, str], ...] = ()
    most_rows: int = MOST_ROWS
    guards: tuple[Guard, ...] = ()

    def in_fewer_rows(self, plan: GroupPlan) -> GroupSpec | None:
        """Return the group in fewer rows than a plan has; None where its rows are stated or one."""
        fewer = self.arrangement == AUTO and len(plan.rows) > 1
        return replace(self, most_rows=len(plan.rows) - 1) if fewer else None


def draw_group(layout: kdb.Layout, tech: Technology, spec: GroupSpec) -> Module:
    """Draw the matched group ``spec`` and return its module; warnings state what remains unequal.

    Raises:
        GeometryError: If the transistors differ in type or bulk net, or the arrangement cannot be drawn.
    """
    plan = group_plans(tech, spec, 1)[0]
    try:
        return drawn_plan(layout, tech, spec, plan)
    except FarFromTapsError:
        lower = spec.in_fewer_rows(plan)
        if lower is None:
            raise
    return draw_group(layout, tech, lower)


def group_plans(tech: Technology, spec: GroupSpec, most: int) -> tuple[GroupPlan, ...]:
    """Return the plans of the matched group ``spec`` in up to ``most`` shapes, the best first; see ``plan_shapes``.

    Raises:
        GeometryError: If the transistors differ in type or bulk net, or the arrangement cannot be drawn.
    """
    check_alike(spec.transistors)
    wish = GroupWish(spec.transistors, spec.arrangement, spec.dummies, spec.tags, spec.separate, spec.gap, spec.split)
    return plan_shapes(tech, replace(wish, most_rows=spec.most_rows, guards=spec.guards), most)


def drawn_plan(
    layout: kdb.Layout, tech: Technology, spec: GroupSpec, plan: GroupPlan, matched: Sequence[str] | None = None
) -> Module:
    """Return the module of the rows of ``plan``, with its pattern, figures and dummies.

    A warning states the distance between the centroids of the devices ``matched`` (default: all).
    """
    first = plan.transistors[0]
    stack = RowStack(spec.name, first.spec, first.bulk, plan.rows, labels=spec.labels, gap=spec.gap, ring=spec.ring)
    stack = replace(stack, currents={each.id: each.current for each in plan.transistors}, twins=spec.twins)
    if len(plan.rows) > 1:
        stack = replace(stack, bulk_rails="both")
    module = draw_row_module(layout, tech, stack)
    return replace(
        module,
        warnings=(*plan.warnings, *centroid_warnings(module, tech, matched)),
        pattern=plan.pattern,
        figures=plan.figures,
        excess=plan.excess,
        dummies=drawn_dummies(plan.rows, first),
    )


def check_alike(transistors: Sequence[Transistor]) -> None:
    """Check that the transistors can share a tap ring.

    Raises:
        GeometryError: If the list is empty, an id is used twice, or types, flavours or bulk nets differ.
    """
    if not transistors:
        raise GeometryError("a matched group needs at least one transistor")
    twice = sorted(name for name, count in Counter(t.id for t in transistors).items() if count > 1)
    if twice:
        raise GeometryError(f"device ids must differ, got {', '.join(twice)} more than once")
    flavours = sorted({t.spec.name for t in transistors})
    if len(flavours) > 1:
        raise GeometryError("Devices must be same type for matching", details={"types": flavours})
    bulks = sorted({t.bulk for t in transistors})
    if len(bulks) > 1:
        raise GeometryError(f"matched devices must have the same bulk net, got {', '.join(bulks)}")


def centroid_warnings(module: Module, tech: Technology, devices: Sequence[str] | None = None) -> tuple[str, ...]:
    """Return a warning with the distance between the drawn centroids of ``devices``; empty if they coincide."""
    error = module.centroid_error(devices)
    if error == 0:
        return ()
    names = listed(devices if devices is not None else module.devices)
    return (f"the channel centroids are {tech.to_um(error):g} um apart: {names}",)
