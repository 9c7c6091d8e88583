"""Design rule check: a technology's rules on one cell, a verdict for each."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from time import perf_counter
from typing import TYPE_CHECKING, Literal, NamedTuple

from layoutkit.drc.drc_report import DrcReport, Marks, Verdict
from layoutkit.drc.kind_register import MeasuredNumber
from layoutkit.drc.kinds import KINDS
from layoutkit.drc.regions import LayerRegions, joined_fill
from layoutkit.drc.rule_files import cases_of, fields_of, kind_of
from layoutkit.errors import GeometryError, LayoutkitError, RuleNotFoundError
from layoutkit.layout.drawn_layers import Coverage, coverage, drawn_layers, made_for_plates, waived_layers
from layoutkit.technology.expressions import Expression, Numbered, Selection, names, parse, whole_layers
from sturdy.near_names import near_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import klayout.db as kdb

    from layoutkit.drc.kind_register import Case, Shapes
    from layoutkit.technology.technology import Rule, Technology

    Gds = tuple[int, int]

__all__ = ["DrcReport", "Options", "check", "select_rules"]

Mode = Literal["auto", "flat", "hierarchical"]
HIERARCHICAL_FROM = 20_000  # shapes; a smaller cell is checked flat in less time than a hierarchy is set up
HIERARCHICAL_GAIN = 25
"""How many times a shape must occur on average: at 7 times (an oscillator of 158 devices) a flat check takes half the
CPU time of a hierarchical one, at 22 times three quarters, at 35 times 1.6 times."""


@dataclass(frozen=True)
class Options:
    """What to check and report.

    Attributes:
        rule_ids: Check only these rules; all by default.
        max_violations: How many locations the report's data lists; counts are always complete.
        region: Report only violations whose marker touches this box; the shapes outside still count. [um]
        mode: ``flat``, ``hierarchical`` (what repeats is checked once where its surroundings allow) or ``auto``,
            which decides by how much repeats. The verdicts are the same: what fails is measured again flat.
        waived_layers: Layers that may be drawn without being judged: names of the technology, or ``layer/datatype``.
        chosen_rules: Whether the caller chose the technology's rules, by a rule file for instance. Chosen rules, as
            ``rule_ids`` are, need not judge every layer.
    """

    rule_ids: Sequence[str] | None = None
    max_violations: int = 100
    region: kdb.DBox | None = None
    mode: Mode = "auto"
    waived_layers: Sequence[str] = ()
    chosen_rules: bool = False


def check(layout: kdb.Layout, cell: kdb.Cell, technology: Technology, options: Options | None = None) -> DrcReport:
    """Return the verdict of every rule of ``technology`` on ``cell`` and all below it.

    A rule that concerns no shapes is passed with ``shapes`` 0. A rule that cannot be run (an unknown kind or layer, a
    KLayout failure) is unchecked with the reason, and so is a drawn layer that no rule judges; the report is then
    neither complete nor passed. The same holds where nothing is drawn, or nothing that any rule concerns.

    Args:
        layout: Layout that owns ``cell``; it is left as it is.
        cell: What to check.
        technology: Layers and rules; ``dataclasses.replace(technology, rules=...)`` checks others.
        options: Which rules, where, how; all rules of a cell everywhere if not given.

    Raises:
        RuleNotFoundError: If ``options`` names a rule that the technology does not have.
        GeometryError: If the layout's database unit does not fit the technology's, the cell does not fit into 32 bits
            in a unit that is whole in both, or the region is empty.
        LayoutkitError: If a waived layer is neither a name of the technology nor a number.
    """
    start = perf_counter()
    options = options or Options()
    technology = made_for_plates(cell, technology)
    region = options.region
    if region is not None and region.empty():
        raise GeometryError("the region to check is empty; give left < right and bottom < top")
    rules = select_rules(technology, options.rule_ids)
    deep = options.mode == "hierarchical" or (options.mode == "auto" and repeats(layout, cell))
    layers = LayerRegions(layout, cell, technology, hierarchical=deep)
    window = None if region is None else (region * (1 / layers.unit_um)).to_itype(1.0)
    verdicts = tuple(_verdict(rule, layers, window) for rule in rules)
    return DrcReport(
        cell_name=cell.name,
        technology=technology.name,
        verdicts=verdicts,
        unit_um=layers.unit_um,
        max_violations=options.max_violations,
        check_time_ms=(perf_counter() - start) * 1000,
        coverage=_coverage(cell, technology, options, verdicts),
        chosen=options.rule_ids is not None,
        empty=not any(drawn_layers(cell)),
        hierarchical=layers.hierarchical,
    )


def repeats(layout: kdb.Layout, cell: kdb.Cell) -> bool:
    """Return whether so much of ``cell`` is repeated that checking it hierarchically is cheaper than flat."""
    used = {cell.cell_index(): 1}  # how often each cell occurs below this one
    flat = kept = 0
    for index in layout.each_cell_top_down():
        if index not in used:
            continue
        here, times = layout.cell(index), used[index]
        shapes = sum(here.shapes(layer).size() for layer in layout.layer_indexes())
        flat, kept = flat + times * shapes, kept + shapes
        for instance in here.each_inst():
            count = max(instance.na, 1) * max(instance.nb, 1)
            used[instance.cell_index] = used.get(instance.cell_index, 0) + times * count
    return flat >= HIERARCHICAL_FROM and flat >= HIERARCHICAL_GAIN * kept


def select_rules(technology: Technology, rule_ids: Sequence[str] | None) -> tuple[Rule, ...]:
    """Return the rules called ``rule_ids``, in the technology's order; for None all but those of a whole chip.

    Raises:
        RuleNotFoundError: If one is unknown; names all that are, and what was probably meant.
    """
    if rule_ids is None:
        return tuple(rule for rule in technology.rules if rule.options.get("scope") != "chip")
    known = [rule.id for rule in technology.rules]
    unknown = [rule_id for rule_id in dict.fromkeys(rule_ids) if rule_id not in set(known)]
    if unknown:
        meant = {name: near_names(name, known, 3) for name in unknown}
        listed = "; ".join(
            f"'{name}'" + (f" (did you mean {', '.join(near)}?)" if near else "") for name, near in meant.items()
        )
        raise RuleNotFoundError(
            f"no such rule: {listed}; there are {len(known)} rules", details={"unknown": unknown, "similar": meant}
        )
    wanted = set(rule_ids)
    return tuple(rule for rule in technology.rules if rule.id in wanted)


def _verdict(rule: Rule, layers: LayerRegions, window: kdb.Box | None) -> Verdict:
    kind = kind_of(rule)
    if rule.kind == "unchecked" and "layer" in rule.options:
        return _unchecked(rule, layers)
    if kind is None:
        known = ", ".join(sorted(KINDS))
        reason = rule.options.get("reason") or f"this engine has no rule kind '{rule.kind}'; it has: {known}"
        return Verdict(rule, "unchecked", reason=str(reason))
    try:
        looked_at = [_run(case, window) for case in cases_of(rule, kind, layers)]
    except (LayoutkitError, RuntimeError) as error:
        return Verdict(rule, "unchecked", reason=str(error))
    marks = tuple(mark for one in looked_at for mark in one.marks)
    count = sum(mark.shapes.count() for mark in marks)
    values = [value for one in looked_at for value in one.values]
    extreme = min if kind.whole and rule.options.get("bound", "min") == "min" else max
    return Verdict(
        rule,
        "failed" if count else "passed",
        sum(one.shapes for one in looked_at),
        count,
        marks,
        measured=extreme(values, default=None),
    )


def _unchecked(rule: Rule, layers: LayerRegions) -> Verdict:
    """Return the verdict of a rule that this engine cannot check: passed where its ``layer`` is empty."""
    reason = str(rule.options.get("reason", ""))
    try:
        subject = layers.region(str(rule.options["layer"]))
    except (LayoutkitError, RuntimeError) as error:
        return Verdict(rule, "unchecked", reason=str(error))
    if subject.is_empty():
        return Verdict(rule, "passed")
    at = subject.bbox().to_dtype(layers.unit_um).center()
    count = subject.count()
    where = f"{count} shape{'s' * (count > 1)} that it concerns, around ({at.x:g}, {at.y:g}) um"
    return Verdict(rule, "unchecked", shapes=count, reason=f"{reason}; {where}")


class _LookedAt(NamedTuple):
    """The polygons that one case of a rule examined, its marks and its measurements."""

    shapes: int
    marks: tuple[Marks, ...] = ()
    values: tuple[float, ...] = ()


def _run(case: Case, window: kdb.Box | None) -> _LookedAt:
    """Return how many polygons ``case`` looked at and the marks of what violates it."""
    subject = case.layers.region(case.subject)
    looked_at = subject.count()
    if case.kind.counts == "drawn":
        looked_at = sum(case.layers.region(name).count() for name in set(names(parse(case.subject))))
    if subject.is_empty() and not case.kind.whole:
        return _LookedAt(looked_at)
    marks, values, shown = [], [], case.layers.shown(case.subject)
    for found in case.kind.check(case):
        if isinstance(found, MeasuredNumber):
            values.append(found.value)
            continue
        if case.layers.hierarchical and not found.is_empty():
            # Something is wrong here, but the cells cut it into other pieces: measured again flat.
            return _run(replace(case, layers=case.layers.flat()), window)
        kept = found if window is None else touching(found, window)
        if not kept.is_empty():
            marks.append(Marks(shown, kept))
    return _LookedAt(looked_at, tuple(marks), tuple(values))


def touching(shapes: Shapes, window: kdb.Box) -> Shapes:
    """Return those of ``shapes`` whose boxes touch ``window``."""
    kept = type(shapes)()
    for shape in shapes.each():
        if shape.bbox().touches(window):
            kept.insert(shape)  # type: ignore[arg-type]  # takes what it yields
    return kept


def _coverage(cell: kdb.Cell, technology: Technology, options: Options, verdicts: Sequence[Verdict]) -> Coverage:
    """Return which drawn layers the checked rules judge; chosen rules need not judge any."""
    if options.chosen_rules or options.rule_ids is not None:
        waived_layers(options.waived_layers, technology)
        return Coverage()
    judged = judged_layers(technology, (verdict.rule for verdict in verdicts if verdict.status != "unchecked"))
    return coverage(cell, technology, judged, options.waived_layers, f"{technology.name} has no rule for it")


def judged_layers(technology: Technology, rules: Iterable[Rule]) -> set[Gds]:
    """Return the GDS layers that at least one of ``rules``, all without faults, judges.

    A rule judges a layer if it measures all polygons of the layer. Rules about the grid and about angles hold for every
    layer alike, whatever its purpose, so they do not count. A layer that only says which rules hold is judged if a
    rule refers to it.
    """
    return set().union(*(_judged_by(rule, technology) for rule in rules))


@lru_cache(maxsize=4096)
def _judged_by(rule: Rule, technology: Technology) -> frozenset[Gds]:
    judged: set[Gds] = set()
    kind = kind_of(rule)
    if kind is None:
        return frozenset()
    for fields in fields_of(rule, kind, technology.measured_layers):
        for operand in () if kind.any_layer else fields.keys() & {*kind.operands, *kind.optional}:
            judged.update(_rule_markers(parse(str(fields[operand])), technology))
        for operand in kind.judges:
            measured = parse(str(fields[operand]))
            if kind.name == "forbidden" and isinstance(measured, Selection) and measured.other is not None:
                measured = measured.layer  # to forbid some polygons of a layer, the rule examines each of them
            judged.update(_numbers(measured, technology))
    return frozenset(judged)


def _rule_markers(expression: Expression, technology: Technology) -> Iterator[Gds]:
    """Yield the layers with the purpose ``rule_marker`` that ``expression`` refers to."""
    for name in names(expression):
        if name in technology.derived:
            yield from _rule_markers(parse(technology.derived[name]), technology)
        elif (spec := technology.spec(name)).purpose == "rule_marker":
            yield spec.gds


def _numbers(expression: Expression, technology: Technology) -> Iterator[Gds]:
    for part in whole_layers(expression):
        if isinstance(part, Numbered):
            yield part.layer, part.datatype
        elif part.name in technology.derived:
            yield from _numbers(parse(technology.derived[part.name]), technology)
        else:
            spec = technology.spec(part.name)
            yield spec.gds
            yield from (technology.spec(name).gds for name in joined_fill(spec, technology))
