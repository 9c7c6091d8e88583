"""User rule files in JSON or YAML: ``{"rules": [{"rule_id": "M1_MIN_WIDTH", "kind": "width", ...}]}``.

The entries are those of a technology file's ``rules`` list (technology-format.md of the skill technology-files). The
longer names of older rule sets are understood as well: ``rule_id`` and ``rule_description``, ``type`` for ``kind``, and
the kinds of ``KIND_ALIASES``. Layers may be given by name, by number (``4``) or by layer and datatype (``"4/0"``).
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from reprlib import repr as short
from typing import TYPE_CHECKING, Any

from layoutkit.drc.kinds import KINDS
from layoutkit.drc.rule_cases import faults_in, fields_of, kind_of
from layoutkit.errors import FileError, TechnologyError, did_you_mean, sentences
from layoutkit.layout.files import read_bytes
from layoutkit.technology.bounded_yaml import check_numbers, read_yaml
from layoutkit.technology.expressions import require
from layoutkit.technology.technology_reader import read_rule

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping

    from layoutkit.technology.technology import Rule, Technology

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
    import json

    try:
        data = json.loads(text)
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

    def known(expression: str) -> None:
        require(expression, technology)

    try:
        cases = fields_of(rule, kind, technology.measured_layers)
    except TechnologyError as error:
        return rule, [str(error)]
    return rule, list(dict.fromkeys(fault for case in cases for fault in faults_in(rule, kind, case, known)))


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
