"""The result of a design rule check: a verdict for every rule, as JSON data and as a report database for KLayout."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import klayout.db as kdb
from klayout import rdb

from layoutkit.drc.rule_files import kind_of
from layoutkit.errors import listed
from layoutkit.layout.drawn_layers import Coverage
from layoutkit.layout.files import write_bytes
from layoutkit.layout.reports import report_bytes

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping

    from layoutkit.drc.kind_register import Shapes
    from layoutkit.technology.technology import Rule

    _Placed = tuple[float, float, tuple[float, float, float, float], str, float]  # y, x, box, layer, distance or -1

Status = Literal["passed", "failed", "unchecked"]


@dataclass(frozen=True)
class Location:
    """Where a rule is violated. Micrometres throughout.

    Attributes:
        x_um: Centre of the marker. [um]
        y_um: Centre of the marker. [um]
        layer: The layer (or expression of layers) that violates.
        box_um: Left, bottom, right, top of the marker. [um]
        distance_um: For two edges that are too near: their distance. [um]
    """

    x_um: float
    y_um: float
    layer: str
    box_um: tuple[float, float, float, float]
    distance_um: float | None = None

    def to_data(self) -> dict[str, Any]:
        """Return the location as JSON data."""
        data: dict[str, Any] = {"x": self.x_um, "y": self.y_um, "layer": self.layer, "box": list(self.box_um)}
        if self.distance_um is not None:
            data["distance"] = self.distance_um
        return data


@dataclass(frozen=True)
class Marks:
    """The markers of one case of a rule: polygons, edges or edge pairs in working units, and their layer."""

    layer: str
    shapes: Shapes


@dataclass(frozen=True)
class Verdict:
    """The result of one rule.

    Attributes:
        rule: The rule.
        status: ``passed``, ``failed`` or ``unchecked``.
        shapes: Number of polygons that were examined; 0 if the layout has nothing that the rule concerns, None if
            a deck does not report it.
        count: Number of violations, listed or not.
        marks: All of them.
        reason: Why the rule was not checked.
        measured: Measurement of kinds that have one: minimum or maximum density, maximum antenna ratio.
    """

    rule: Rule
    status: Status
    shapes: int | None = 0
    count: int = 0
    marks: tuple[Marks, ...] = ()
    reason: str | None = None
    measured: float | None = None


@dataclass(frozen=True)
class DrcReport:
    """All verdicts on one cell.

    Attributes:
        cell_name: The checked cell.
        technology: Name of the technology.
        verdicts: One for each rule, in the order of the rules.
        unit_um: The unit of the marks. [um]
        max_violations: Maximum number of locations in ``to_data``.
        check_time_ms: How long the check took. [ms]
        coverage: Drawn layers that no rule judges.
        chosen: Whether the caller chose the rules by id, or gave a deck, so that they need not concern what is drawn.
        empty: Whether nothing is drawn.
        hierarchical: Whether cells were checked as cells.
    """

    cell_name: str
    technology: str
    verdicts: tuple[Verdict, ...]
    unit_um: float
    max_violations: int = 100
    check_time_ms: float = 0.0
    coverage: Coverage = field(default_factory=Coverage)
    chosen: bool = False
    empty: bool = False
    hierarchical: bool = False

    @property
    def violated(self) -> tuple[Verdict, ...]:
        """The verdicts of the rules that are violated."""
        return tuple(verdict for verdict in self.verdicts if verdict.status == "failed")

    @property
    def unchecked(self) -> tuple[Verdict, ...]:
        """The verdicts of the rules that could not be checked."""
        return tuple(verdict for verdict in self.verdicts if verdict.status == "unchecked")

    @property
    def total_violations(self) -> int:
        """The number of violations."""
        return sum(verdict.count for verdict in self.verdicts)

    @property
    def complete(self) -> bool:
        """Whether there were rules, all of them were checked, and they judge every layer that is drawn."""
        nothing = not self.verdicts or self.empty or self.foreign
        return not (nothing or self.unchecked or self.coverage.unchecked)

    @property
    def foreign(self) -> bool:
        """Whether shapes are drawn but no rule concerns any: the layout is most likely of another process."""
        specific = [verdict for verdict in self.verdicts if not _for_any_layer(verdict.rule)] or self.verdicts
        return not self.empty and not self.chosen and all(verdict.shapes == 0 for verdict in specific)

    @property
    def passed(self) -> bool:
        """Whether the layout is clean: every rule was checked and no rule of severity ``error`` is violated."""
        return self.complete and all(verdict.rule.severity != "error" for verdict in self.violated)

    def locations(self, verdict: Verdict, limit: int) -> list[Location]:
        """Return at most ``limit`` locations of ``verdict``, from the lower left on."""
        return [
            Location(x, y, layer, box, None if distance < 0 else distance)
            for y, x, box, layer, distance in heapq.nsmallest(limit, self._each(verdict))
        ]

    def summary(self) -> dict[str, Any]:
        """Return the verdict as JSON data, in the form in which every tool answers it."""
        shares = _shares([verdict.count for verdict in self.violated], self.max_violations)
        violations = [
            {
                "rule_id": verdict.rule.id,
                "rule_description": verdict.rule.description,
                "severity": verdict.rule.severity,
                "count": verdict.count,
                **({} if verdict.measured is None else {"measured": round(verdict.measured, 6)}),
                "locations": [place.to_data() for place in self.locations(verdict, share)],
            }
            for verdict, share in zip(self.violated, shares, strict=True)
        ]
        return {
            "passed": self.passed,
            "complete": self.complete,
            "total_violations": self.total_violations,
            "rules_checked": len(self.verdicts) - len(self.unchecked),
            "rules_unchecked": [{"rule_id": v.rule.id, "reason": v.reason or ""} for v in self.unchecked],
            **self.coverage.to_data(),
            "violations": violations,
        }

    def to_data(self, *, list_passed_rules: bool = False) -> dict[str, Any]:
        """Return the whole report as JSON data: the summary with its counts under ``summary``, and what passed.

        Args:
            list_passed_rules: Whether to list each passed rule under ``rules_passed``; their number is always there.
        """
        passed = [_passed(verdict) for verdict in self.verdicts if verdict.status == "passed"]
        verdict = self.summary()
        counts = {
            "total_violations": verdict.pop("total_violations"),
            "rules_checked": verdict.pop("rules_checked"),
            "rules_violated": len(self.violated),
            "rules_passed": len(passed),
            "check_time_ms": round(self.check_time_ms, 3),
        }
        return {
            "summary": counts,
            **verdict,
            **({"rules_passed": passed} if list_passed_rules else {}),
            "rules_without_shapes": sum(v.status == "passed" and v.shapes == 0 for v in self.verdicts),
            "notes": list(self._notes()),
            "cell_name": self.cell_name,
            "technology": self.technology,
            "hierarchical": self.hierarchical,
        }

    def _notes(self) -> Iterator[str]:
        if not self.verdicts:
            yield f"{self.technology} has no rules: nothing was checked"
        if self.empty:
            yield f"nothing is drawn in cell {self.cell_name}: nothing was checked"
        unchecked = listed(layer.shown for layer in self.coverage.unchecked)
        if self.foreign:
            yield (
                f"no rule of {self.technology} concerns anything drawn here"
                + (f" (layers {unchecked})" if unchecked else "")
                + ": name the technology that the layout is drawn in"
            )
        elif unchecked:
            yield f"no rule judges what is drawn on {unchecked}: the check is not complete"
        if self.coverage.waived:
            yield f"not judged, because waived: layers {', '.join(self.coverage.waived)}"

    def boxes(self, limit: int) -> list[tuple[str, kdb.DBox]]:
        """Return the rule and the box of at most ``limit`` violations, for a picture. [um]"""
        shares = _shares([verdict.count for verdict in self.violated], limit)
        return [
            (verdict.rule.id, kdb.DBox(*place.box_um))
            for verdict, share in zip(self.violated, shares, strict=True)
            for place in self.locations(verdict, share)
        ]

    def write_lyrdb(self, path: str | os.PathLike[str], sources: Mapping[str, str] | None = None) -> None:
        """Write all violations as a report database, which KLayout's marker browser opens.

        Every checked rule is a category, so that the browser also shows what is clean.

        Args:
            path: Target.
            sources: What the report was made from; see ``layoutkit.layout.reports``.

        Raises:
            FileError: If ``path`` cannot be written.
        """
        database = rdb.ReportDatabase("DRC")
        database.description = f"Design rules of {self.technology}"
        database.generator = "analog-layout-skills drc.run_check"
        database.top_cell_name = self.cell_name
        cell = database.create_cell(self.cell_name)
        to_um = kdb.CplxTrans(self.unit_um)
        for verdict in self.verdicts:
            category = database.create_category(verdict.rule.id)
            rule = verdict.rule
            number = "" if rule.value_um is None else f" ({rule.value_um:g})"
            note = f" - not checked: {verdict.reason}" if verdict.status == "unchecked" else ""
            category.description = f"{rule.description}{number}{note}"
            for marks in verdict.marks:
                category.scan_collection(cell, to_um, marks.shapes, True)
        write_bytes(path, report_bytes(database, sources))

    def _each(self, verdict: Verdict) -> Iterator[_Placed]:
        for marks in verdict.marks:
            for shape in marks.shapes.each():
                box = shape.bbox()
                yield (
                    self._um((box.bottom + box.top) / 2),
                    self._um((box.left + box.right) / 2),
                    (self._um(box.left), self._um(box.bottom), self._um(box.right), self._um(box.top)),
                    marks.layer,
                    self._um(shape.distance()) if isinstance(shape, kdb.EdgePair) else -1.0,
                )

    def _um(self, length: float) -> float:
        return round(length * self.unit_um, 6)


def nothing_to_check() -> dict[str, Any]:
    """Return the summary of a tool that has drawn nothing: there is nothing that could break a rule."""
    return {**DrcReport("", "", (), 1.0).summary(), "passed": True, "complete": True}


def _for_any_layer(rule: Rule) -> bool:
    kind = kind_of(rule)
    return kind is not None and kind.any_layer


def _passed(verdict: Verdict) -> dict[str, Any]:
    entry: dict[str, Any] = {"rule_id": verdict.rule.id}
    if verdict.shapes is not None:
        entry["shapes"] = verdict.shapes
    if verdict.measured is not None:
        entry["measured"] = round(verdict.measured, 6)
    return entry


def _shares(counts: list[int], total: int) -> list[int]:
    """Return the number of locations per rule, ``total`` in all; small counts are listed in full."""
    shares = [0] * len(counts)
    left = total
    for position, index in enumerate(sorted(range(len(counts)), key=lambda index: (counts[index], index))):
        shares[index] = min(counts[index], left // (len(counts) - position))
        left -= shares[index]
    return shares
