"""What a rule kind is, and the register of all kinds.

A kind is one function from a ``Case`` (a rule's operands and numbers, bound to one layout) to the marks of its
violations, with a declaration of the fields a rule of this kind has. Adding a kind is writing one such function
under ``@rule_kind``; the table in ``technology-format.md`` of the skill technology-files lists them. Where the number
is an area or has no unit, ``AREA_KINDS`` or ``DIMENSIONLESS_KINDS`` of ``technology.py`` has the kind, too.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from layoutkit.technology.technology import AREA_KINDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import klayout.db as kdb

    from layoutkit.drc.regions import LayerRegions
    from layoutkit.technology.technology import Rule

    Shapes = kdb.Region | kdb.Edges | kdb.EdgePairs
    Found = Iterator[Shapes | "MeasuredNumber"]

ValueMeaning = Literal["length", "area", "angle", "ratio", "none"]


@dataclass(frozen=True)
class MeasuredNumber:
    """A number that a kind measured besides its marks: minimum or maximum density, maximum antenna ratio."""

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
        whole: Whether an empty subject is examined as well: nothing drawn is a density of 0.
        mutual: Whether the second operand is measured as the first is.
        any_layer: Whether the rule holds for any layer alike, as those about the grid and about angles do.
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
    """Register the decorated function as the check of kind ``name``; see ``Kind`` for the declaration.

    Raises:
        ValueError: If there is another kind of that name.
    """

    def register(check: Callable[[Case], Found]) -> Callable[[Case], Found]:
        if name in KINDS:
            raise ValueError(f"there are two rule kinds '{name}'")
        KINDS[name] = Kind(name, check, operands, **{"value": "area" if name in AREA_KINDS else "length"} | declaration)
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
