"""What can be said about a skill: an error breaks a specification, a warning some host, an info nothing."""

from typing import Any, Literal, NamedTuple

Level = Literal["error", "warning", "info"]
LEVELS: tuple[Level, ...] = ("error", "warning", "info")
HOSTS = ("agent-plugins", "claude-ai", "claude-code", "codex", "manus")


class Finding(NamedTuple):
    """One thing found.

    Attributes:
        level: "error": a specification is broken; "warning": some host objects or misreads; "info": worth knowing.
        rule: Short name of the rule, such as ``name-folder``.
        message: What was found, what is allowed, what to do.
        path: The file or folder, absolute; "" where the context says it.
        line: Its 1-based line, or None.
        hosts: The hosts a warning concerns, of ``HOSTS``.
    """

    level: Level
    rule: str
    message: str
    path: str = ""
    line: int | None = None
    hosts: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the finding as JSON values."""
        return {**self._asdict(), "hosts": list(self.hosts)}


def error(rule: str, message: str) -> Finding:
    """Return a finding that breaks a specification."""
    return Finding("error", rule, message)


def warning(rule: str, message: str, hosts: tuple[str, ...] = HOSTS, line: int | None = None) -> Finding:
    """Return a finding that concerns ``hosts``, by default all of them."""
    return Finding("warning", rule, message, line=line, hosts=hosts)


def info(rule: str, message: str) -> Finding:
    """Return a finding that is no fault."""
    return Finding("info", rule, message)
