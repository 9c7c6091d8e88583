"""Draw a group of matched transistors as one module: any number of devices in any ratio, in one row or several.

Draw two or more matched transistors: as the figures choose, or in a stated pattern, side by side or in rows.

Draw current mirrors of equal units: in one row or several, with the cascodes in rows of their own above.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Literal

from layoutkit.draw.group_plan import MOST_ROWS, GroupPlan, GroupWish, plan_group, plan_shapes
from layoutkit.draw.mos import drawn_dummies
from layoutkit.draw.pattern import AUTO, INTERDIGITATED, LETTERS, STACKED, parse_pattern
from layoutkit.draw.ring import FULL_RING, RingStyle
from layoutkit.draw.stack import RowStack, draw_row_module
from layoutkit.errors import DrcViolationError, FarFromTapsError, GeometryError, listed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import klayout.db as kdb

    from layoutkit.draw.module import Module
    from layoutkit.draw.mos import GuardDummy, Transistor
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
    guards: tuple[GuardDummy, ...] = ()

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


Axis = Literal["vertical", "horizontal"]


@dataclass(frozen=True)
class PairSpec:
    """A matched pair to be drawn.

    Attributes:
        name: Name of the cell.
        first: Device A.
        second: Device B.
        arrangement: ``auto``, ``interdigitated``, ``stacked``, or a pattern such as ``AB/BA``, see ``pattern``.
        axis: Direction of the symmetry axis. ``vertical``: units side by side; ``horizontal``: one row per unit.
        spacing: Distance between diffusions that are not shared. [dbu]
        interdigitate: Whether neighbouring units share diffusion.
        dummies: Dummy fingers at each end of each row.
        labels: Whether pins carry net names.
        ring: Which taps surround it.
        others: Devices C, D and so on, for a group of more than two.
    """

    name: str
    first: Transistor
    second: Transistor
    arrangement: str = AUTO
    axis: Axis = "vertical"
    spacing: int = 500
    interdigitate: bool = True
    dummies: int = 2
    labels: bool = True
    ring: RingStyle = FULL_RING
    others: tuple[Transistor, ...] = ()


def draw_pair(layout: kdb.Layout, tech: Technology, spec: PairSpec) -> Module:
    """Draw the pair and return its module with units ``<id>_A1``, ``<id>_B1``, ``<id>_B2``, ``<id>_A2`` and so on.

    Raises:
        GeometryError: If the devices differ in type, or the arrangement cannot be drawn.
        DrcViolationError: If ``spacing`` is smaller than the process allows.
    """
    devices = (spec.first, spec.second, *spec.others)
    check_alike(devices)
    least = max(tech.dim("active_space", spec.first.spec), tech.grid)
    if spec.spacing < least:
        raise DrcViolationError(
            f"Spacing {tech.to_um(spec.spacing):g} violates min spacing {tech.to_um(least):g}",
            details={"spacing_um": tech.to_um(spec.spacing), "min_spacing_um": tech.to_um(least)},
        )
    group = GroupSpec(
        spec.name,
        devices,
        _arrangement(spec),
        spec.dummies,
        spec.labels,
        separate=not spec.interdigitate,
        gap=tech.snap_up(spec.spacing),
        tags={device.id: letter for device, letter in zip(devices, LETTERS, strict=False)},
        ring=spec.ring,
    )
    module = draw_group(layout, tech, group)
    return replace(module, warnings=(*_differences(spec), *module.warnings))


def _arrangement(spec: PairSpec) -> str:
    """Return the pattern: one row per unit if the axis is horizontal."""
    if spec.axis == "vertical" or "/" in spec.arrangement:
        return spec.arrangement
    if spec.arrangement in {AUTO, INTERDIGITATED, STACKED}:
        return STACKED
    devices = [device.id for device in (spec.first, spec.second, *spec.others)]
    ((*units,),) = parse_pattern(spec.arrangement, devices)
    return "/".join(LETTERS[devices.index(unit)] for unit in units)


def _differences(spec: PairSpec) -> list[str]:
    a, b = spec.first, spec.second
    differences = []
    if spec.others:
        return []  # a group of a ratio; its plan states what is unequal
    if a.width != b.width:
        differences.append(f"{a.id} and {b.id} differ in total width; they do not match")
    elif (a.finger_width, a.fingers) != (b.finger_width, b.fingers):
        differences.append(f"{a.id} and {b.id} differ in finger width; they match less well")
    if a.length != b.length:
        differences.append(f"{a.id} and {b.id} differ in length; they do not match")
    return differences


@dataclass(frozen=True)
class MirrorSpec:
    """A current mirror to be drawn.

    Attributes:
        name: Name of the cell.
        mirror: The transistors that share gate and source; the reference is the first.
        cascodes: One cascode per transistor of ``mirror``, in the same order; empty for a simple mirror.
        arrangement: ``auto``, ``interdigitated``, ``stacked``, or a pattern, see ``pattern``.
        dummies: Dummy fingers at each end of each row.
        labels: Whether pins carry net names.
        ring: Which taps surround it.
        twins: Nets that are to be wired as mirror images, in pairs, the left one first; see ``risers``.
        most_rows: Largest number of rows of mirror devices that ``auto`` may choose.
        guards: Dummies of the netlist at the ends of the rows of ``mirror``; see ``mos.with_guards``.
    """

    name: str
    mirror: tuple[Transistor, ...]
    cascodes: tuple[Transistor, ...] = ()
    arrangement: str = AUTO
    dummies: int = 2
    labels: bool = True
    ring: RingStyle = FULL_RING
    twins: tuple[tuple[str, str], ...] = ()
    most_rows: int = MOST_ROWS
    guards: tuple[GuardDummy, ...] = ()


def draw_mirror(layout: kdb.Layout, tech: Technology, spec: MirrorSpec) -> Module:
    """Draw the mirror and return its module; the cascodes of a cascode mirror are in the same pattern above it.

    Where the taps do not reach all rows, ``auto`` uses fewer rows. Units are named ``<id>_ref_1``, ``<id>_out_1``,
    ``<id>_cas_1`` and so on.

    Raises:
        GeometryError: If the transistors do not form such a mirror; the message says why.
    """
    plan = mirror_plan(tech, spec)
    rows = len(plan.rows)
    group = GroupSpec(
        spec.name, spec.mirror, dummies=spec.dummies, labels=spec.labels, ring=spec.ring, twins=spec.twins
    )
    if spec.cascodes:
        upper = _cascode_plan(tech, spec, plan.pattern)
        plan = plan._replace(
            rows=(*plan.rows, *upper.rows),
            transistors=(*plan.transistors, *upper.transistors),
            warnings=(*plan.warnings, *upper.warnings),
        )
    try:
        return drawn_plan(layout, tech, group, plan, tuple(t.id for t in spec.mirror))
    except FarFromTapsError:
        if spec.arrangement != AUTO or rows == 1:
            raise
    return draw_mirror(layout, tech, replace(spec, most_rows=rows - 1))


def mirror_plan(tech: Technology, spec: MirrorSpec) -> GroupPlan:
    """Return the rows of the devices that share gate and source, without the cascodes.

    Raises:
        GeometryError: If the transistors do not form such a mirror; the message says why.
    """
    check_mirror(spec)
    reference = spec.mirror[0]
    tags = dict.fromkeys((t.id for t in spec.mirror), "out_") | {reference.id: "ref_"}
    if spec.cascodes and spec.arrangement == STACKED:
        raise GeometryError(
            "a cascode mirror is drawn as rows of mirror devices with rows of cascodes above; arrangement stacked is "
            "for simple mirrors. Use auto or a pattern",
            code="UNSUPPORTED_OPERATION",
        )
    storeys = 2 if spec.cascodes else 1
    wish = GroupWish(spec.mirror, spec.arrangement, spec.dummies, tags, storeys=storeys, most_rows=spec.most_rows)
    return plan_group(tech, replace(wish, guards=spec.guards))


def _cascode_plan(tech: Technology, spec: MirrorSpec, pattern: str) -> GroupPlan:
    """Return the cascodes' rows: in the pattern of the mirror below, or in their own, with a warning."""
    tags = dict.fromkeys((t.id for t in spec.cascodes), "cas_")
    wish = GroupWish(spec.cascodes, pattern, spec.dummies, tags)
    try:
        return plan_group(tech, wish)
    except GeometryError:
        plan = plan_group(tech, replace(wish, arrangement=AUTO, storeys=2, most_rows=spec.most_rows))
    text = f"the cascodes do not split into the units of the mirror below ({pattern}); they are drawn as {plan.pattern}"
    return plan._replace(warnings=(text, *plan.warnings))


def drawn_ratios(mirror: Sequence[Transistor]) -> dict[str, Fraction]:
    """Return the width over length of every transistor relative to the first one's, exactly."""
    reference = Fraction(mirror[0].width, mirror[0].length)
    return {t.id: Fraction(t.width, t.length) / reference for t in mirror}


def check_ratios(mirror: Sequence[Transistor], wanted: Mapping[str, float]) -> None:
    """Check that the sizes agree with the requested ratios.

    Raises:
        GeometryError: If a requested ratio differs from the drawn one; the details hold both.
    """
    drawn = drawn_ratios(mirror)
    unknown = sorted(set(wanted) - set(drawn))
    if unknown:
        raise GeometryError(
            f"matching_ratio names {', '.join(unknown)}, which are not devices of the mirror: {', '.join(drawn)}"
        )
    base = float(wanted.get(mirror[0].id, 1.0))
    for device, ratio in sorted(wanted.items()):
        exact = float(drawn[device])
        if abs(ratio / base - exact) > 1e-6 * exact:
            raise GeometryError(
                f"matching_ratio says {device} is {ratio / base:g} x {mirror[0].id}, but the sizes give {exact:g}; "
                "change m or w, or the ratio",
                details={"device_id": device, "matching_ratio": ratio / base, "drawn_ratio": exact},
            )


def check_mirror(spec: MirrorSpec) -> None:
    """Check that the transistors form a mirror that is drawn as one module, its cascodes above it.

    Raises:
        GeometryError: If they do not; the message says why.
    """
    if len(spec.mirror) < 2:
        raise GeometryError(f"a current mirror needs at least 2 devices, got {len(spec.mirror)}")
    if spec.cascodes and len(spec.cascodes) != len(spec.mirror):
        raise GeometryError(
            f"a cascode mirror needs one cascode for each of its {len(spec.mirror)} mirror devices, "
            f"got {len(spec.cascodes)}"
        )
    check_alike((*spec.mirror, *spec.cascodes))
    for attribute in ("gate", "source"):
        nets = sorted({getattr(t, attribute) for t in spec.mirror})
        if len(nets) > 1:
            raise GeometryError(f"the devices of a mirror must have the same {attribute}, got {', '.join(nets)}")
    gates = sorted({t.gate for t in spec.cascodes})
    if len(gates) > 1:
        raise GeometryError(f"the cascodes must have the same gate net, got {', '.join(gates)}")
    for lower, upper in zip(spec.mirror, spec.cascodes, strict=False):
        if upper.source != lower.drain:
            raise GeometryError(
                f"cascode {upper.id} has source {upper.source}, but the drain of {lower.id} below is {lower.drain}"
            )
    lengths = sorted({t.length for t in spec.mirror})
    if len(lengths) > 1:
        raise GeometryError("the devices of a mirror must have the same channel length")
    widths = sorted({t.finger_width for t in spec.mirror})
    if len(widths) > 1:
        raise GeometryError(
            "the devices of a mirror must have the same finger width (w / nf), and none divides all widths; set the "
            "ratio by m, or by w and nf",
            details={"finger_widths_dbu": {t.id: t.finger_width for t in spec.mirror}},
        )
