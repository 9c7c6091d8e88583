"""Draw current mirrors: units interleaved in a row, units as rows, or two rows with cascodes in the upper one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Literal

from layoutkit.draw.arrange import Unit, arranged_row
from layoutkit.draw.group import centroid_warnings, check_alike, pattern_units
from layoutkit.draw.mos import with_dummies
from layoutkit.draw.pair import mirrored_rows
from layoutkit.draw.pattern import Pattern, matched_units
from layoutkit.draw.stack import RowStack, draw_row_module
from layoutkit.errors import GeometryError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import klayout.db as kdb

    from layoutkit.draw.module import Module
    from layoutkit.draw.mos import Transistor
    from layoutkit.draw.row import Row
    from layoutkit.technology import Technology

MirrorArrangement = Literal["interdigitated", "stacked"]

_MOST_ROWS = 12  # in a taller stack the inner rows are too far from every tap


@dataclass(frozen=True)
class MirrorSpec:
    """A current mirror to be drawn.

    Attributes:
        name: Name of the cell.
        mirror: The transistors that share gate and source; the reference is the first.
        cascodes: One cascode per transistor of ``mirror``, in the same order; empty for a simple mirror.
        arrangement: ``interdigitated``: units side by side; ``stacked``: one row per unit.
        dummies: Dummy fingers at each end of each row.
        labels: Whether pins carry net names.
    """

    name: str
    mirror: tuple[Transistor, ...]
    cascodes: tuple[Transistor, ...] = ()
    arrangement: MirrorArrangement = "interdigitated"
    dummies: int = 0
    labels: bool = True


def draw_mirror(layout: kdb.Layout, tech: Technology, spec: MirrorSpec) -> Module:
    """Draw the mirror and return its module; a cascode mirror has its cascodes in a second row above.

    Units are named ``<id>_ref_1``, ``<id>_out_1``, ``<id>_cas_1`` and so on.

    Raises:
        GeometryError: If the transistors do not form such a mirror; the message says why.
    """
    _check(spec)
    reference = spec.mirror[0]
    transistors = (*spec.mirror, *spec.cascodes)
    warnings = [text for transistor in transistors for text in transistor.warnings]
    tags = dict.fromkeys((t.id for t in spec.mirror), "out_") | {reference.id: "ref_"}
    size, pattern = matched_units({t.id: t.fingers for t in spec.mirror})
    units = pattern_units(pattern, spec.mirror, size, tags)
    stack = RowStack(spec.name, reference.spec, reference.bulk, (), labels=spec.labels)
    rows: tuple[Row, ...]
    if spec.cascodes:
        if spec.arrangement == "stacked":
            warnings.append("a cascode mirror is always drawn as two rows; arrangement stacked has no effect")
        rows = (arranged_row(units), arranged_row(_cascode_units(spec, pattern)))
    elif spec.arrangement == "stacked":
        if len(units) > _MOST_ROWS:
            raise GeometryError(
                f"{len(units)} units are too many rows to stack (at most {_MOST_ROWS}); use arrangement interdigitated",
                code="UNSUPPORTED_OPERATION",
            )
        rows = mirrored_rows(list(units))
        stack = replace(stack, bulk_rails="both")
    else:
        rows = (arranged_row(units),)
    rows = tuple(with_dummies(row, spec.dummies, reference.bulk) for row in rows)
    module = draw_row_module(layout, tech, replace(stack, rows=rows))
    centroids = centroid_warnings(module, tech, [t.id for t in spec.mirror])
    if centroids and size == 1 and all(t.fingers == reference.fingers for t in spec.mirror):
        centroids = (*centroids, "an even number of fingers (nf) would make the centroids coincide")
    return replace(module, warnings=(*warnings, *centroids))


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


def _cascode_units(spec: MirrorSpec, pattern: Pattern) -> tuple[Unit, ...]:
    """Return the cascodes' units in the order of the mirror's units below them."""
    above = {lower.id: upper.id for lower, upper in zip(spec.mirror, spec.cascodes, strict=True)}
    size = spec.cascodes[0].fingers // pattern.count(spec.mirror[0].id)
    uneven = [
        upper.id
        for lower, upper in zip(spec.mirror, spec.cascodes, strict=True)
        if upper.fingers != size * pattern.count(lower.id)
    ]
    if size < 1 or uneven:
        counts = {lower.id: pattern.count(lower.id) for lower in spec.mirror}
        raise GeometryError(
            f"the cascodes {', '.join(t.id for t in spec.cascodes)} do not split into units as the mirror does: "
            f"{counts}; give them fingers (nf x m) in the mirror's ratio"
        )
    tags = dict.fromkeys(above.values(), "cas_")
    return pattern_units(tuple(above[device] for device in pattern), spec.cascodes, size, tags)


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
            "the devices of a mirror must have the same finger width (w / nf); set the ratio by m, or by w and nf",
            details={"finger_widths_dbu": {t.id: t.finger_width for t in spec.mirror}},
        )
