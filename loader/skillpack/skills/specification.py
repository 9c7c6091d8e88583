"""The Agent Skills specification of frontmatter: six fields, each with its rule. Everything wrong is told at once."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from skillpack.skills.findings import Finding, error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

FIELDS = ("name", "description", "license", "compatibility", "metadata", "allowed-tools")
MAX_NAME = 64
MAX_DESCRIPTION = 1024
MAX_COMPATIBILITY = 500
UNNAMED = "the frontmatter has no name: the folder's name is used, as Claude Code does; other hosts refuse the skill"
NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_CLAUDE_CODE_FIELDS = (
    *("agent", "argument-hint", "arguments", "context", "disable-model-invocation", "effort", "hooks", "model"),
    *("paths", "shell", "user-invocable", "when_to_use"),
)


def field_findings(fields: Mapping[str, Any], folder: str) -> list[Finding]:
    """Return what the specification objects to.

    Args:
        fields: The frontmatter, scalars as strings.
        folder: Name of the skill's folder.
    """
    found = [_unknown(key) for key in fields if key not in FIELDS]
    texts = {"name": UNNAMED, "description": "the frontmatter has no description"}
    found += [error(f"{key}-missing", text) for key, text in texts.items() if key not in fields]
    for key, check in _CHECKS.items():
        if key in fields:
            found += check(fields[key])
    name = fields.get("name")
    if isinstance(name, str) and name.strip() and name.strip() != folder:
        found.append(error("name-folder", f"the name {name.strip()!r} differs from the folder {folder!r}"))
    return found


def name_problem(name: str) -> str | None:
    """Return what is wrong with a skill's name by itself, or None."""
    if len(name) <= MAX_NAME and NAME.fullmatch(name):
        return None
    return f"the name {name!r} is not 1-{MAX_NAME} characters of a-z, 0-9 and single hyphens"


def _unknown(key: str) -> Finding:
    """Return the finding for a field that the specification does not have."""
    from skillscript.faults import did_you_mean

    where = "belongs to Claude Code alone and " if key in _CLAUDE_CODE_FIELDS else ""
    message = (
        f"the field {key!r} {where}is none of {', '.join(FIELDS)}; put it under metadata or leave it out"
        f"{did_you_mean(key, FIELDS)}"
    )
    return error("unknown-field", message)


def _name(value: Any) -> Iterator[Finding]:
    if _is_text("name", value):
        problem = name_problem(value.strip())
        if problem is not None:
            yield error("name-form", problem)
    else:
        yield _not_text("name", value)


def _description(value: Any) -> Iterator[Finding]:
    if not _is_text("description", value):
        yield _not_text("description", value)
        return
    if len(value.strip()) > MAX_DESCRIPTION:
        text = f"the description has {len(value.strip())} characters, more than {MAX_DESCRIPTION}"
        yield error("description-length", text)
    if "<" in value or ">" in value:
        yield error("description-brackets", "the description contains '<' or '>'")


def _license(value: Any) -> Iterator[Finding]:
    if not _is_text("license", value):
        yield _not_text("license", value)


def _compatibility(value: Any) -> Iterator[Finding]:
    if not _is_text("compatibility", value):
        yield _not_text("compatibility", value)
    elif len(value.strip()) > MAX_COMPATIBILITY:
        text = f"the field compatibility has {len(value.strip())} characters, more than {MAX_COMPATIBILITY}"
        yield error("compatibility-length", text)


def _metadata(value: Any) -> Iterator[Finding]:
    if value == "":  # written without a value, it says nothing wrong
        return
    if not isinstance(value, dict):
        yield error("metadata-form", f"metadata must be a mapping of text to text, not {_kind(value)}")
        return
    for key, item in value.items():
        if not isinstance(item, str):
            yield error("metadata-form", f"metadata {key!r} must be text, not {_kind(item)}")


def _allowed_tools(value: Any) -> Iterator[Finding]:
    if not isinstance(value, str):
        yield error("allowed-tools-form", f"allowed-tools must be one space-separated text, not {_kind(value)}")


_CHECKS: dict[str, Callable[[Any], Iterator[Finding]]] = {
    "name": _name,
    "description": _description,
    "license": _license,
    "compatibility": _compatibility,
    "metadata": _metadata,
    "allowed-tools": _allowed_tools,
}


def _is_text(key: str, value: Any) -> bool:
    """Return whether ``value`` is text that says something; an empty ``license`` says nothing wrong."""
    return isinstance(value, str) and (bool(value.strip()) or key == "license")


def _not_text(key: str, value: Any) -> Finding:
    """Return the finding for a field that is no text, or an empty one."""
    if isinstance(value, str):
        return error(f"{key}-missing", f"the field {key} is empty")
    return error(f"{key}-form", f"the {key} must be text, not {_kind(value)}")


def _kind(value: Any) -> str:
    """Return what a frontmatter value is, with its article."""
    return "a list" if isinstance(value, list) else "a mapping" if isinstance(value, dict) else f"{value!r}"
