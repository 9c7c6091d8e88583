"""The findings of a consistency check."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from designgraph.graph_errors import MAX_LISTED

SEVERITIES = ("error", "warning", "info")


@dataclass(frozen=True)
class Finding:
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
        return {
            "rule": self.rule,
            "severity": self.severity,
            "message": self.message,
            **_ids(self.ids),
            "suggestion": self.suggestion,
        }


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
        return {"rule": self.rule, "reason": self.reason, **_ids(self.ids)}


def _ids(ids: tuple[str, ...]) -> dict[str, Any]:
    """Return the first nodes concerned, and how many they are, as JSON."""
    return {"ids": list(ids[:MAX_LISTED]), "idsTotal": len(ids)}


@dataclass
class Findings:
    """Collects the results of a check.

    Attributes:
        found: Violations.
        unchecked: What could not be checked.
    """

    found: list[Finding] = field(default_factory=list)
    unchecked: list[Unchecked] = field(default_factory=list)

    def add(self, rule: dict[str, Any], message: str, ids: tuple[str, ...]) -> None:
        """Add a violation of ``rule``, with the rule's severity and suggestion."""
        finding = Finding(rule["id"], rule.get("severity", "error"), message, ids, rule.get("suggestion", ""))
        self.found.append(finding)

    def skip(self, rule: dict[str, Any], reason: str, ids: tuple[str, ...] = ()) -> None:
        """Add something that ``rule`` could not check."""
        self.unchecked.append(Unchecked(rule["id"], reason, ids))
