"""The rules of the check as data: the built-in rules and those in the project's ``rules.yaml``::

without: [orphan]                       # built-in rules that do not apply here
rules:
  - id: clock_is_one_bit
    kind: property
    types: [Signal]
    when: {role: clock}
    property: width
    one_of: ["1"]
    severity: error
    suggestion: A clock is one wire.

The second part of the module holds what a check finds.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from designgraph.graph import GraphFileError, is_id
from designgraph.type_rule import read_yaml
from sturdy.near_names import sentences

FILE = "rules.yaml"
MAX_LISTED = 20  # findings, and nodes of each
MAX_RULES = 500
_TYPES = {"str": str, "list": list, "dict": dict, "bool": bool, "int": int}


def rules_for(folder: str, graph_id: str) -> list[dict[str, Any]]:
    """Return the rules of a graph whose file is in ``folder``, the built-in ones first.

    Raises:
        GraphFileError: If the project's ``rules.yaml`` cannot be used; all its faults are reported.
    """
    path = str(Path(folder, FILE))
    written = read_yaml(path)
    faults = [f"{name} is unknown; known are without, rules" for name in written if name not in ("without", "rules")]
    own, off = written.get("rules", []), written.get("without", [])
    if not isinstance(own, list) or len(own) > MAX_RULES:
        faults.append(f"rules must be a list of at most {MAX_RULES}")
        own = []
    known = {rule["id"] for rule in _built_in_rules()}
    unknown = [name for name in off if name not in known] if isinstance(off, list) else ["(no list)"]
    faults += [f"without: {name!r} is not a built-in rule ({', '.join(sorted(known))})" for name in unknown]
    for index, rule in enumerate(own):
        faults += [f"rules[{index}]: {fault}" for fault in rule_faults(rule)]
    if faults:
        raise GraphFileError(f"{path} cannot be used: {sentences(faults)}", {"path": path, "faults": faults})
    rules = [rule for rule in _built_in_rules() if rule["id"] not in off] + own
    return [rule for rule in rules if graph_id in rule.get("graphs", [graph_id])]


def rule_faults(rule: Any) -> list[str]:
    """Return the faults of one rule."""
    if not isinstance(rule, dict):
        return ["must be a mapping"]
    kind, form = rule.get("kind"), _form()
    if kind not in form["kinds"]:
        return [f"kind must be one of {', '.join(form['kinds'])}, got {kind!r}"]
    known, words = {**form["common"], **form["kinds"][kind]}, form["words"]
    faults = [f"{name} is unknown; a rule of kind {kind} has {', '.join(known)}" for name in rule if name not in known]
    faults += [f"lacks {name}" for name in ("id", *form["needed"].get(kind, ())) if name not in rule]
    for name, value in rule.items():
        wanted = known.get(name)
        if wanted and (not isinstance(value, _TYPES[wanted]) or (wanted == "int" and isinstance(value, bool))):
            faults.append(f"{name} must be a {wanted}")
        elif name in words and value not in words[name]:
            faults.append(f"{name} must be one of {', '.join(words[name])}, got {value!r}")
    if isinstance(rule.get("id"), str) and not is_id(rule["id"]):
        faults.append(f"id {rule['id']!r} is not a valid id")
    if kind == "clash" and not all(isinstance(p, list) and len(p) == 2 for p in rule.get("pairs") or ()):
        faults.append("pairs must be a list of [value, value]")
    return faults + _pattern_faults(rule.get("pattern"))


def _pattern_faults(pattern: Any) -> list[str]:
    try:
        re.compile(pattern or "")
    except (re.error, TypeError, RecursionError) as error:
        return [f"pattern is not a regular expression: {error}"]
    return []


@cache
def _form() -> dict[str, dict[str, Any]]:
    """Return which fields a rule has: those of all kinds and of each, those that it needs, and the words of some."""
    found: dict[str, dict[str, Any]] = json.loads(Path(__file__).with_name("rule_fields.json").read_bytes())
    return found


@cache
def _built_in_rules() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(Path(__file__).with_name("rules.json").read_bytes())["rules"]
    return found


@dataclass(frozen=True)
class Breach:
    """A violation of a rule.

    Attributes:
        rule: Id of the violated rule.
        severity: ``error``, ``warning`` or ``info``.
        message: Description of the violation.
        ids: Nodes concerned.
        suggestion: How to correct it.
    """

    rule: str
    severity: str
    message: str
    ids: tuple[str, ...]
    suggestion: str

    def to_json(self) -> dict[str, Any]:
        """Return the finding as JSON."""
        return {**vars(self), **_ids(self.ids)}


@dataclass(frozen=True)
class Unchecked:
    """Something that a rule could not check.

    Attributes:
        rule: Id of the rule.
        reason: The reason.
        ids: Nodes concerned.
    """

    rule: str
    reason: str
    ids: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the item as JSON."""
        return {**vars(self), **_ids(self.ids)}


def _ids(ids: tuple[str, ...]) -> dict[str, Any]:
    """Return the first nodes concerned, and how many they are, as JSON."""
    return {"ids": list(ids[:MAX_LISTED]), "idsTotal": len(ids)}


@dataclass
class Breaches:
    """Collects the results of a check.

    Attributes:
        found: Breaches.
        unchecked: What could not be checked.
    """

    found: list[Breach] = field(default_factory=list)
    unchecked: list[Unchecked] = field(default_factory=list)

    def add(self, rule: dict[str, Any], message: str, ids: tuple[str, ...], **instead: str) -> None:
        """Add a violation of ``rule``, with the rule's id, severity and suggestion or those given ``instead``."""
        told = {**rule, **instead}
        self.found.append(Breach(told["id"], told.get("severity", "error"), message, ids, told.get("suggestion", "")))

    def skip(self, rule: dict[str, Any], reason: str, ids: tuple[str, ...] = ()) -> None:
        """Add something that ``rule`` could not check."""
        self.unchecked.append(Unchecked(rule["id"], reason, ids))
