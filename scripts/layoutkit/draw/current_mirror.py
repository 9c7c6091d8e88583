"""Draw current mirrors of equal units: in one row or several, with the cascodes in rows of their own above."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

from layoutkit.draw.group import GroupSpec, check_alike, drawn_plan
from layoutkit.draw.group_plan import MOST_ROWS, GroupWish, plan_group
from layoutkit.draw.pattern import AUTO, STACKED
from layoutkit.draw.ring import FULL_RING, RingStyle
from layoutkit.errors import FarFromTapsError, GeometryError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import klayout.db as kdb

    from layoutkit.draw.group_plan import GroupPlan
    from layoutkit.draw.module import Module
    from layoutkit.draw.mos import Guard, Transistor
    from layoutkit.technology import Technology


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
    guards: tuple[Guard, ...] = ()


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
    _check(spec)
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


def _check(spec: MirrorSpec) -> None:
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
