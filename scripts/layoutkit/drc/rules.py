"""What a rule kind is, and the register of all kinds.

A kind is one function from a ``Case`` (a rule's operands and numbers, bound to one layout) to the marks of its
violations, with a declaration of the fields a rule of this kind has. Adding a kind is writing one such function
under ``@rule_kind``; the table in ``technology-format.md`` of the skill technology-files lists them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from reprlib import repr as short
from typing import TYPE_CHECKING, Any, Literal

from layoutkit.errors import TechnologyError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    import klayout.db as kdb

    from layoutkit.drc.regions import LayerRegions
    from layoutkit.technology.technology import Rule

    Shapes = kdb.Region | kdb.Edges | kdb.EdgePairs
    Found = Iterator[Shapes | "Measured"]

ValueMeaning = Literal["length", "area", "angle", "ratio", "none"]


@dataclass(frozen=True)
class Measured:
    """A number that a kind measured beside its marks: the least or greatest density, the greatest antenna ratio."""

    value: float


@dataclass(frozen=True)
class Kind:
    """One rule kind: how it is checked and which fields its rules have.

    Attributes:
        name: What a rule's ``kind`` says.
        check: Yields the marks of one case's violations, and what it measured where that is a number.
        operands: Fields that hold a layer expression and must be there; the first is the subject, whose polygons
            are counted, and a case without any is clean.
        optional: Fields that hold a layer expression and may be there.
        lengths: Fields that may be there and hold a length (``wide_um``). [um]
        needed_lengths: Those of ``lengths`` that must be there.
        ratios: Fields that may be there and hold a number without unit.
        choices: Optional fields that hold one of some words; the first is the default.
        value: What the rule's ``value`` means; ``none`` where there is no number.
        counts: Whether the polygons of the subject are counted, or, where the subject is the violation itself, those
            of the layers it is made from.
        flat: Whether a hierarchical check flattens this kind's layers first, because it walks over polygons or nets.
        whole: Whether an empty subject is looked at as well: nothing drawn is a density of 0.
        mutual: Whether the second operand is measured as the first is.
        any_layer: Whether the rule holds for any layer, so that it says nothing of what a layer is for.
    """

    name: str
    check: Callable[[Case], Found]
    operands: tuple[str, ...]
    optional: tuple[str, ...] = ()
    lengths: tuple[str, ...] = ()
    needed_lengths: tuple[str, ...] = ()
    ratios: tuple[str, ...] = ()
    choices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    value: ValueMeaning = "length"
    counts: Literal["subject", "drawn"] = "subject"
    flat: bool = False
    whole: bool = False
    mutual: bool = False
    any_layer: bool = False

    @property
    def fields(self) -> frozenset[str]:
        """The names of all fields a case of this kind may have."""
        return frozenset((*self.operands, *self.optional, *self.lengths, *self.ratios, *self.choices))

    @property
    def judges(self) -> tuple[str, ...]:
        """The operands all of whose polygons a rule of this kind measures."""
        return () if self.any_layer else self.operands[: 2 if self.mutual else 1]


KINDS: dict[str, Kind] = {}


def rule_kind(
    name: str, *operands: str, **declaration: Any
) -> Callable[[Callable[[Case], Found]], Callable[[Case], Found]]:
    """Register the decorated function as the check of kind ``name``; see ``Kind`` for the declaration."""

    def register(check: Callable[[Case], Found]) -> Callable[[Case], Found]:
        KINDS[name] = Kind(name, check, operands, **declaration)
        return check

    return register


@dataclass(frozen=True)
class Case:
    """One set of operands of a rule, bound to the layers of one cell; numbers are in working units."""

    rule: Rule
    kind: Kind
    fields: Mapping[str, Any]
    layers: LayerRegions

    @property
    def subject(self) -> str:
        """The expression whose polygons are counted."""
        return self.text(self.kind.operands[0])

    @property
    def value(self) -> int:
        """The rule's number: a length or an area in working units, an angle in degrees."""
        scale = {"length": self.layers.refinement, "area": self.layers.refinement**2}
        return (self.rule.value or 0) * scale.get(self.kind.value, 1)

    @property
    def ratio(self) -> float:
        """The rule's number where it has no unit."""
        return self.rule.value_um or 0.0

    def text(self, name: str) -> str:
        """Return the expression of operand ``name``."""
        return str(self.fields[name])

    def has(self, name: str) -> bool:
        """Return whether the rule has the optional field ``name``."""
        return name in self.fields

    def region(self, name: str) -> kdb.Region:
        """Return the merged region of operand ``name``; not to be changed."""
        return self.layers.region(self.text(name))

    def edges(self, name: str) -> kdb.Edges:
        """Return the edges of operand ``name``; not to be changed."""
        return self.layers.edges(self.text(name))

    def length(self, name: str) -> int:
        """Return the optional length ``name`` in working units, 0 where it is absent."""
        return self.layers.length(float(self.fields.get(name, 0.0)))

    def number(self, name: str) -> float:
        """Return the number without unit that the field ``name`` holds, 0 where it is absent."""
        return float(self.fields.get(name, 0.0))

    def choice(self, name: str) -> str:
        """Return the word that field ``name`` holds, or its default."""
        return str(self.fields.get(name, self.kind.choices[name][0]))


@cache
def _register_kinds() -> None:
    from layoutkit.drc.kinds import abutment, array, chip, distance, enclosure, relation, shape  # noqa: F401 - they register


def kind_of(rule: Rule) -> Kind | None:
    """Return the kind of ``rule``, None where this engine has no such kind."""
    _register_kinds()
    return KINDS.get(rule.kind)


def fields_of(rule: Rule, kind: Kind, all_layers: tuple[str, ...]) -> list[dict[str, Any]]:
    """Return the fields of each case of ``rule``: one for each entry of ``cases`` or ``layers``, else the rule's own.

    Raises:
        TechnologyError: If ``cases`` is no list of objects, or ``layers`` neither a list of layers nor ``all``.
    """
    common = {name: value for name, value in rule.options.items() if name not in {"cases", "layers"}}
    if "cases" in rule.options:
        several = rule.options["cases"]
        if not isinstance(several, list) or not several or not all(isinstance(own, dict) for own in several):
            raise TechnologyError(f"rule {rule.id}: cases must be a list of objects")
        return [{**common, **{str(name): value for name, value in own.items()}} for own in several]
    if "layers" in rule.options:
        listed = all_layers if rule.options["layers"] == "all" else rule.options["layers"]
        if not isinstance(listed, (list, tuple)) or not listed:
            raise TechnologyError(f"rule {rule.id}: layers must be a list of layers, or the word all")
        return [{**common, kind.operands[0]: layer} for layer in listed]
    return [common]


def faults_in(rule: Rule, kind: Kind, fields: Mapping[str, Any], require: Callable[[str], None]) -> Iterator[str]:
    """Yield what is wrong with one case of ``rule``: missing, unknown or malformed fields, and layers that are none.

    Args:
        rule: The rule.
        kind: Its kind.
        fields: The case's fields.
        require: Raises a TechnologyError for an expression that cannot be read or names an unknown layer.
    """
    for name in sorted(set(fields) - kind.fields):
        yield f"kind {kind.name} has no field '{name}'{_similar(name, kind.fields)}; it has: {_listed(kind.fields)}"
    for name in (*kind.operands, *kind.optional):
        if name not in fields and name in kind.operands:
            yield f"kind {kind.name} needs the field '{name}'"
        elif name in fields and (isinstance(fields[name], bool) or not isinstance(fields[name], (str, int))):
            yield f"'{name}' must be a layer or an expression of layers, got {short(fields[name])}"
        elif name in fields:
            try:
                require(str(fields[name]))
            except TechnologyError as error:
                yield f"'{name}': {error}"
    yield from _number_faults(kind, fields)
    for name, allowed in kind.choices.items():
        if fields.get(name, allowed[0]) not in allowed:
            yield f"'{name}' must be one of {', '.join(allowed)}, got {short(fields[name])}"
    yield from _value_faults(rule, kind)


def _number_faults(kind: Kind, fields: Mapping[str, Any]) -> Iterator[str]:
    for name in (name for name in kind.lengths if name in fields or name in kind.needed_lengths):
        if name not in fields:
            yield f"kind {kind.name} needs the field '{name}'"
        elif not _is_number(fields[name]) or not 0 <= fields[name] < 1e6:
            yield f"'{name}' must be a length in um, got {short(fields[name])}"
    for name in (name for name in kind.ratios if name in fields):
        if not _is_number(fields[name]) or not 0 <= fields[name] < 1e9:
            yield f"'{name}' must be a number that is not negative, got {short(fields[name])}"


def _value_faults(rule: Rule, kind: Kind) -> Iterator[str]:
    if kind.value == "none":
        if rule.value_um is not None:
            yield f"kind {kind.name} takes no value"
    elif rule.value_um is None:
        yield f"kind {kind.name} needs a value"
    elif not 0 <= rule.value_um < 1e9:
        yield f"value must not be negative, got {rule.value_um:g}"
    elif kind.name == "angle" and rule.value_um not in {45, 90}:
        yield f"value must be 90 or 45 degrees, got {rule.value_um:g}"
    elif kind.name == "density" and rule.value_um > 1:
        yield f"value must be a share from 0 to 1, got {rule.value_um:g}"
    elif kind.name == "grid" and not rule.value:
        yield f"value must be a grid of at least one database unit, got {rule.value_um:g}"


def cases_of(rule: Rule, kind: Kind, layers: LayerRegions, all_layers: tuple[str, ...]) -> list[Case]:
    """Return the cases of ``rule``, bound to ``layers``.

    Raises:
        TechnologyError: If one has a fault; also where the layout has nothing the rule would look at, so that a
            fault never reads as clean.
    """
    cases = []
    for fields in fields_of(rule, kind, all_layers):
        faults = list(faults_in(rule, kind, fields, layers.require))
        if faults:
            raise TechnologyError(f"rule {rule.id}: {'; '.join(faults)}")
        flat = kind.flat or fields.get("nets", "any") != "any"
        cases.append(Case(rule, kind, fields, layers.flat() if flat else layers))
    return cases


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _similar(name: str, known: Iterable[str]) -> str:
    from difflib import get_close_matches

    close = get_close_matches(name, list(known), 1)
    return f" (did you mean '{close[0]}'?)" if close else ""


def _listed(words: Iterable[str]) -> str:
    return ", ".join(sorted(words))
