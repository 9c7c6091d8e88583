"""The cases of a rule: its kind, the fields of each case, and what is wrong with them."""

from __future__ import annotations

from reprlib import repr as short
from typing import TYPE_CHECKING, Any

from layoutkit.drc.kind_register import Case
from layoutkit.drc.kinds import KINDS
from layoutkit.errors import TechnologyError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from layoutkit.drc.kind_register import Kind
    from layoutkit.drc.regions import LayerRegions
    from layoutkit.technology.technology import Rule


def kind_of(rule: Rule) -> Kind | None:
    """Return the kind of ``rule``, None where this engine has no such kind."""
    return KINDS.get(rule.kind)


def fields_of(rule: Rule, kind: Kind, all_layers: tuple[str, ...]) -> list[dict[str, Any]]:
    """Return the fields of each case of ``rule``: one for each entry of ``cases`` or ``layers``, else the rule's own.

    Raises:
        TechnologyError: If ``cases`` is no list of objects, or ``layers`` neither a list of layers nor ``all``.
    """
    common = {name: value for name, value in rule.options.items() if name not in {"cases", "layers", "scope"}}
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
        yield f"kind {kind.name} has no field '{name}'{did_you_mean(name, kind.fields)}; it has: {_listed(kind.fields)}"
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
        flat = kind.flat or fields.get("nets", "any") != "any" or "one_net" in fields
        cases.append(Case(rule, kind, fields, layers.flat() if flat else layers))
    return cases


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _listed(words: Iterable[str]) -> str:
    return ", ".join(sorted(words))
