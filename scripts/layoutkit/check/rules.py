"""What a rule kind is, and the register of all kinds.

A kind is one function from a ``Case`` (a rule's operands and numbers, bound to one layout) to the marks of its
violations, with a declaration of the fields a rule of this kind has. Adding a kind is writing one such function
under ``@rule_kind``; the table in ``references/technology-format.md`` lists them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from layoutkit.errors import TechnologyError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import klayout.db as kdb

    from layoutkit.check.regions import LayerRegions
    from layoutkit.technology.model import Rule

    Shapes = kdb.Region | kdb.Edges | kdb.EdgePairs

ValueMeaning = Literal["length", "area", "angle", "ratio", "none"]


@dataclass(frozen=True)
class Kind:
    """One rule kind: how it is checked and which fields its rules have.

    Attributes:
        name: What a rule's ``kind`` says.
        check: Yields the marks of one case's violations.
        operands: Fields that hold a layer expression and must be there; the first is the subject, whose polygons
            are counted, and a case without any is clean.
        optional: Fields that hold a layer expression and may be there.
        lengths: Optional fields that hold a length, by name in the rule (``wide_um``). [um]
        choices: Optional fields that hold one of some words; the first is the default.
        value: What the rule's ``value`` means; ``none`` where there is no number.
        counts: Whether the polygons of the subject are counted, or, where the subject is the violation itself, those
            of the layers it is made from.
        summary: What must hold, in one line.
    """

    name: str
    check: Callable[[Case], Iterator[Shapes]]
    operands: tuple[str, ...]
    optional: tuple[str, ...] = ()
    lengths: tuple[str, ...] = ()
    choices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    value: ValueMeaning = "length"
    counts: Literal["subject", "drawn"] = "subject"
    summary: str = ""

    @property
    def fields(self) -> frozenset[str]:
        """The names of all fields a case of this kind may have."""
        return frozenset((*self.operands, *self.optional, *self.lengths, *self.choices))


KINDS: dict[str, Kind] = {}


def rule_kind(
    name: str, *operands: str, **declaration: Any
) -> Callable[[Callable[[Case], Iterator[Shapes]]], Callable[[Case], Iterator[Shapes]]]:
    """Register the decorated function as the check of kind ``name``; see ``Kind`` for the declaration."""

    def register(check: Callable[[Case], Iterator[Shapes]]) -> Callable[[Case], Iterator[Shapes]]:
        summary = (check.__doc__ or "").strip().splitlines()[0]
        KINDS[name] = Kind(name, check, operands, summary=summary, **declaration)
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
        if name not in self.fields:
            raise TechnologyError(f"rule {self.rule.id} of kind {self.kind.name} needs the field '{name}'")
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

    def choice(self, name: str) -> str:
        """Return the word that field ``name`` holds, or its default."""
        allowed = self.kind.choices[name]
        word = str(self.fields.get(name, allowed[0]))
        if word not in allowed:
            raise TechnologyError(f"rule {self.rule.id}: {name} must be one of {', '.join(allowed)}, got '{word}'")
        return word


def kind_of(rule: Rule) -> Kind | None:
    """Return the kind of ``rule``, None where this engine has no such kind."""
    from layoutkit.check import kinds_of_distance, kinds_of_relation, kinds_of_shape  # noqa: F401 - they register

    return KINDS.get(rule.kind)


def cases_of(rule: Rule, kind: Kind, layers: LayerRegions, all_layers: tuple[str, ...]) -> Iterator[Case]:
    """Yield the cases of ``rule``: one for each entry of ``cases`` or ``layers``, else the rule itself.

    Raises:
        TechnologyError: If the rule lacks a field or value, has one that its kind does not know, or names a layer
            that is none; also where the layout has nothing the rule would look at, so that a fault never reads as
            clean.
    """
    common = {name: value for name, value in rule.options.items() if name not in {"cases", "layers"}}
    several: list[Mapping[str, Any]] = [{}]
    if "cases" in rule.options:
        several = list(rule.options["cases"])
    elif "layers" in rule.options:
        listed = rule.options["layers"]
        several = [{kind.operands[0]: name} for name in (all_layers if listed == "all" else listed)]
    for own in several:
        fields = {**common, **own}
        unknown = sorted(set(fields) - kind.fields)
        if unknown:
            known = ", ".join(sorted(kind.fields))
            raise TechnologyError(f"rule {rule.id}: kind {kind.name} has no field '{unknown[0]}'; it has: {known}")
        case = Case(rule, kind, fields, layers)
        for name in (*kind.operands, *(name for name in kind.optional if name in fields)):
            layers.require(case.text(name))
        if kind.value != "none" and rule.value_um is None:
            raise TechnologyError(f"rule {rule.id} of kind {kind.name} needs a value")
        yield case
