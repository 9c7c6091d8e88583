"""The cases of a rule, and the rule files of users.

A file is JSON or YAML: ``{"rules": [{"rule_id": "M1_MIN_WIDTH", "kind": "width", ...}]}``.

The entries are those of a technology file's ``rules`` list (technology-format.md of the skill technology-files). The
longer names of older rule sets are understood as well: ``rule_id`` and ``rule_description``, ``type`` for ``kind``,
and the kinds of ``KIND_ALIASES``. Layers may be given by name, by number (``4``) or by layer and datatype (``"4/0"``).

A case holds the kind of a rule, its fields, and what is wrong with them.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from reprlib import repr as short
from typing import TYPE_CHECKING, Any

from layoutkit.drc.kind_register import Case, Kind
from layoutkit.drc.kinds import KINDS
from layoutkit.errors import FileError, TechnologyError, did_you_mean, listed, sentences
from layoutkit.file_schema import check_numbers, read_yaml
from layoutkit.layout.files import read_bytes
from layoutkit.technology.expressions import require
from layoutkit.technology.technology_reader import read_rule
from sturdy.strict_json import load_json

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping

    from layoutkit.drc.regions import LayerRegions
    from layoutkit.technology.technology import Rule, Technology


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


def faults_in(rule: Rule, kind: Kind, fields: Mapping[str, Any], technology: Technology) -> Iterator[str]:
    """Yield what is wrong with one case of ``rule``: missing, unknown or malformed fields, and layers that are none.

    Args:
        rule: The rule.
        kind: Its kind.
        fields: The case's fields.
        technology: Names the layers.
    """
    for name in sorted(set(fields) - kind.fields):
        meant, known = did_you_mean(name, kind.fields), listed(sorted(kind.fields))
        yield f"kind {kind.name} has no field '{name}'{meant}; it has: {known}"
    for name in (*kind.operands, *kind.optional):
        if name not in fields and name in kind.operands:
            yield f"kind {kind.name} needs the field '{name}'"
        elif name in fields and (isinstance(fields[name], bool) or not isinstance(fields[name], (str, int))):
            yield f"'{name}' must be a layer or an expression of layers, got {short(fields[name])}"
        elif name in fields:
            try:
                require(str(fields[name]), technology)
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


def cases_of(rule: Rule, kind: Kind, layers: LayerRegions) -> list[Case]:
    """Return the cases of ``rule``, bound to ``layers``.

    Raises:
        TechnologyError: If one has a fault; also where the layout has nothing the rule would look at, so that a
            fault never reads as clean.
    """
    cases = []
    for fields in _faultless(rule, layers.technology):
        flat = kind.flat or fields.get("nets", "any") != "any" or "one_net" in fields
        cases.append(Case(rule, kind, fields, layers.flat() if flat else layers))
    return cases


@lru_cache(maxsize=4096)
def _faultless(rule: Rule, technology: Technology) -> list[dict[str, Any]]:
    kind = KINDS[rule.kind]
    cases = fields_of(rule, kind, technology.measured_layers)
    for fields in cases:
        faults = list(faults_in(rule, kind, fields, technology))
        if faults:
            raise TechnologyError(f"rule {rule.id}: {'; '.join(faults)}")
    return cases


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


DECKS = (".drc", ".lydrc", ".rb")
MAX_BYTES = 4_000_000
SEVERITIES = ("error", "warning")
FIELD_ALIASES = {"rule_id": "id", "type": "kind", "rule_description": "description"}
KIND_ALIASES = {
    "min_width": "width",
    "min_space": "space",
    "min_spacing": "space",
    "spacing": "space",
    "min_area": "area",
    "min_enclosure": "enclosure",
    "enclosing": "enclosure",
}
_TOP_FIELDS = frozenset({"rules", "derived", "name", "description", "version", "technology"})


def is_deck(path: str | os.PathLike[str]) -> bool:
    """Return whether ``path`` is named as a rule deck, a program that only the KLayout application runs."""
    return Path(path).suffix.lower() in DECKS


def with_rules_of(path: str | os.PathLike[str], technology: Technology) -> Technology:
    """Return ``technology`` with the rules of the file ``path`` in the place of its own.

    The file's ``derived`` layers are added to the technology's.

    Raises:
        FileError: If it cannot be read or is neither JSON nor YAML.
        TechnologyError: If it has faults; the message and ``details["faults"]`` name all of them.
    """
    data = _parsed(path)
    entries = data.get("rules") if isinstance(data, dict) else data
    faults: list[str] = []
    if not isinstance(entries, list) or not entries:
        faults.append('the file must hold {"rules": [...]} with at least one rule')
        entries = []
    if isinstance(data, dict) and entries:  # otherwise it is not a rule file and must not be quoted
        faults += [f"unknown field '{name}' beside 'rules'" for name in sorted(set(map(str, data)) - _TOP_FIELDS)]
    derived = data.get("derived", {}) if isinstance(data, dict) else {}
    if not isinstance(derived, dict) or not all(isinstance(text, str) for text in derived.values()):
        faults.append("derived must be an object of expressions by name")
        derived = {}
    surroundings = replace(technology, derived={**technology.derived, **derived})
    rules: list[Rule] = []
    for number, entry in enumerate(entries):
        rule, found = rule_with_faults(entry, surroundings)
        faults += [f"rules[{number}]: {fault}" for fault in found]
        if rule is not None and rule.id in {known.id for known in rules}:
            faults.append(f"rules[{number}]: there is another rule '{rule.id}'")
        rules += [] if rule is None else [rule]
    if faults:
        raise TechnologyError(
            f"rule file {Path(path).name} has {len(faults)} fault(s): {sentences(faults)}", details={"faults": faults}
        )
    return replace(surroundings, rules=tuple(rules))


def _parsed(path: str | os.PathLike[str]) -> Any:
    text, name = read_bytes(path, max_bytes=MAX_BYTES), Path(path).name
    if Path(path).suffix.lower() in {".yaml", ".yml"}:
        try:
            return read_yaml(text.decode("utf-8"))
        except UnicodeDecodeError:
            raise FileError(f"rule file {name} is not readable YAML: it is not UTF-8 text") from None
        except ValueError as error:
            raise FileError(f"rule file {name} is not readable YAML: {error}") from None
    try:
        data = load_json(text.decode("utf-8-sig"), finite=False)
        check_numbers(data)
    except (ValueError, RecursionError) as error:
        raise FileError(f"rule file {name} is not readable JSON: {error}") from error
    return data


def rule_with_faults(entry: Any, technology: Technology) -> tuple[Rule | None, list[str]]:
    """Return the rule that ``entry`` states (None where it states none) and all its faults."""
    if not isinstance(entry, dict):
        return None, [f"a rule is an object, got {type(entry).__name__}"]
    fields = {FIELD_ALIASES.get(str(name), str(name)): value for name, value in entry.items()}
    faults = list(_plain_faults(fields))
    if faults:
        return None, faults
    fields["kind"] = KIND_ALIASES.get(fields["kind"], fields["kind"])
    try:
        rule = read_rule(fields, technology.dbu_um)
    except TechnologyError as error:
        return None, [str(error)]
    kind = kind_of(rule)
    if kind is None:
        meant = did_you_mean(rule.kind, [*KINDS, *KIND_ALIASES])
        return rule, [f"unknown kind '{rule.kind}'{meant}; there are: {', '.join(sorted(KINDS))}"]

    try:
        cases = fields_of(rule, kind, technology.measured_layers)
    except TechnologyError as error:
        return rule, [str(error)]
    return rule, list(dict.fromkeys(fault for case in cases for fault in faults_in(rule, kind, case, technology)))


def _plain_faults(fields: Mapping[str, Any]) -> Iterator[str]:
    missing = [name for name in ("id", "kind") if name not in fields]
    for name in missing:
        yield f"needs the field '{'rule_id' if name == 'id' else name}'"
    if len(missing) == 2:  # no rule; it must not be quoted
        return
    for name in ("id", "kind", "description", "severity", "source"):
        if name in fields and not isinstance(fields[name], str):
            yield f"'{name}' must be a text, got {short(fields[name])}"
    if isinstance(fields.get("severity", ""), str) and fields.get("severity", "error") not in SEVERITIES:
        yield f"severity must be one of {', '.join(SEVERITIES)}, got '{fields['severity']}'"
    value = fields.get("value")
    if value is not None and (isinstance(value, bool) or not isinstance(value, (int, float))):
        yield f"value must be a number, got {short(value)}"
    elif value is not None and not abs(value) < 1e12:
        yield f"value must be finite, got {short(value)}"
