"""What a check of a graph has found."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

SEVERITIES = ("error", "warning", "info")


@dataclass(frozen=True)
class Finding:
    """Something that is wrong.

    Attributes:
        rule: Id of the rule that is broken.
        severity: ``error``, ``warning`` or ``info``.
        message: What is wrong.
        ids: The nodes concerned.
        suggestion: What would put it right.
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
            "ids": list(self.ids),
            "suggestion": self.suggestion,
        }


@dataclass(frozen=True)
class Unchecked:
    """Something that could not be judged.

    Attributes:
        rule: Id of the rule.
        reason: Why not.
        ids: The nodes concerned.
    """

    rule: str
    reason: str
    ids: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {"rule": self.rule, "reason": self.reason, "ids": list(self.ids)}


@dataclass
class Findings:
    """Collects what is found.

    Attributes:
        found: What is wrong.
        unchecked: What could not be judged.
    """

    found: list[Finding] = field(default_factory=list)
    unchecked: list[Unchecked] = field(default_factory=list)

    def add(self, rule: dict[str, Any], message: str, ids: tuple[str, ...]) -> None:
        """Add a breach of ``rule``, with the rule's severity and suggestion."""
        finding = Finding(rule["id"], rule.get("severity", "error"), message, ids, rule.get("suggestion", ""))
        self.found.append(finding)

    def skip(self, rule: dict[str, Any], reason: str, ids: tuple[str, ...] = ()) -> None:
        """Add what ``rule`` could not judge."""
        self.unchecked.append(Unchecked(rule["id"], reason, ids))
