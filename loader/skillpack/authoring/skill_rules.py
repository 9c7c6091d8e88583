"""Rules for a SKILL.md: the Agent Skills specification of frontmatter, and further rules of single hosts.

Sources of the hosts' rules: the Agent Skills client guide; the loader of Codex; the validator of anthropics/skills,
which claude.ai applies to uploads; Agent Plugins 1.0.0. ``skillpack validate --strict`` takes the names of the hosts.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Level = Literal["error", "warning", "info"]
LEVELS: tuple[Level, ...] = ("error", "warning", "info")
HOSTS = ("agent-plugins", "claude-ai", "claude-code", "codex", "manus")
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
YAML_READERS = ("agent-plugins", "claude-ai", "codex", "manus")  # parse the frontmatter with a plain YAML library
UPLOADS = ("claude-ai", "manus")  # one archive per skill, checked against a fixed pattern
_RESERVED = ("anthropic", "claude")
_CLAUDE_CODE_VARIABLE = re.compile(r"\$\{CLAUDE_[A-Z_]+\}")
_OPENING = re.compile(rb"---\r?\n")


class Finding(NamedTuple):
    """One finding on a skill.

    Attributes:
        level: "error": violates a specification; "warning": a host refuses or misreads the skill; "info": a hint.
        rule: Short name of the rule, such as ``name-folder``.
        message: What was found, what is allowed, what to do.
        path: Absolute path of the file or folder; "" if it is clear from the context.
        line: 1-based line, or None.
        hosts: The hosts that a warning concerns, from ``HOSTS``.
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
    """Return a finding that violates a specification."""
    return Finding("error", rule, message)


def warning(rule: str, message: str, hosts: tuple[str, ...] = HOSTS, line: int | None = None) -> Finding:
    """Return a finding that concerns ``hosts``, by default all of them."""
    return Finding("warning", rule, message, line=line, hosts=hosts)


def info(rule: str, message: str) -> Finding:
    """Return a finding that is not a fault."""
    return Finding("info", rule, message)


def field_findings(fields: Mapping[str, Any], folder: str) -> list[Finding]:
    """Return the violations of the specification.

    Args:
        fields: The frontmatter, scalars as strings.
        folder: Name of the skill's folder.
    """
    found = [_unknown(key) for key in fields if key not in FIELDS]
    texts = {"name": UNNAMED, "description": "the frontmatter has no description"}
    found += [error(f"{key}-missing", text) for key, text in texts.items() if key not in fields]
    found += [fault for key in FIELDS if key in fields for fault in _value_findings(key, fields[key])]
    name = fields.get("name")
    if isinstance(name, str) and name.strip() and name.strip() != folder:
        found.append(error("name-folder", f"the name {name.strip()!r} differs from the folder {folder!r}"))
    return found


def name_problem(name: str) -> str | None:
    """Return what is wrong with the name of a skill, or None."""
    if len(name) <= MAX_NAME and NAME.fullmatch(name):
        return None
    return f"the name {name!r} is not 1-{MAX_NAME} characters of a-z, 0-9 and single hyphens"


def _unknown(key: str) -> Finding:
    """Return the finding for a field that the specification does not define."""
    from sturdy.near_names import did_you_mean

    where = "belongs to Claude Code alone and " if key in _CLAUDE_CODE_FIELDS else ""
    message = (
        f"the field {key!r} {where}is none of {', '.join(FIELDS)}; put it under metadata or leave it out"
        f"{did_you_mean(key, FIELDS)}"
    )
    return error("unknown-field", message)


def _value_findings(key: str, value: Any) -> Iterator[Finding]:
    """Yield what is wrong with the value of a field."""
    if key == "metadata":
        entries = {} if value == "" else value  # a field without a value is allowed
        if not isinstance(entries, dict):
            yield error("metadata-form", f"metadata must be a mapping of text to text, not {_kind(value)}")
            return
        for name, item in entries.items():
            if not isinstance(item, str):
                yield error("metadata-form", f"metadata {name!r} must be text, not {_kind(item)}")
    elif key == "allowed-tools":
        if not isinstance(value, str):
            yield error("allowed-tools-form", f"allowed-tools must be one space-separated text, not {_kind(value)}")
    elif not isinstance(value, str):
        yield error(f"{key}-form", f"the {key} must be text, not {_kind(value)}")
    elif not value.strip():
        if key != "license":
            yield error(f"{key}-missing", f"the field {key} is empty")
    else:
        yield from _text_findings(key, value)


def _text_findings(key: str, value: str) -> Iterator[Finding]:
    """Yield what is wrong with the text of a field that is there."""
    if key == "name" and (problem := name_problem(value.strip())) is not None:
        yield error("name-form", problem)
    length = len(value.strip())
    if key == "compatibility" and length > MAX_COMPATIBILITY:
        text = f"the field compatibility has {length} characters, more than {MAX_COMPATIBILITY}"
        yield error("compatibility-length", text)
    if key == "description" and length > MAX_DESCRIPTION:
        text = f"the description has {length} characters, more than {MAX_DESCRIPTION}"
        yield error("description-length", text)
    if key == "description" and ("<" in value or ">" in value):
        yield error("description-brackets", "the description contains '<' or '>'")


def _kind(value: Any) -> str:
    """Return the kind of a frontmatter value, with its article."""
    return "a list" if isinstance(value, list) else "a mapping" if isinstance(value, dict) else f"{value!r}"


def text_findings(data: bytes, header: str) -> Iterator[Finding]:
    """Yield what hosts misread in the text of the frontmatter.

    Args:
        data: The SKILL.md.
        header: Its frontmatter.
    """
    if data.startswith(b"\xef\xbb\xbf"):
        text = "the file starts with a byte order mark, which these hosts take for text; save it without"
        yield warning("byte-order-mark", text, ("claude-ai", "codex", "manus"), 1)
    elif not _OPENING.match(data):
        yield warning("opening-line", "the first line is not exactly '---' and a line feed", UPLOADS, 1)
    for number, line in enumerate(header.split("\n"), 2):
        if line.strip() == "---":
            text = "a line '---' inside a value ends the frontmatter there; word the value differently"
            yield warning("dashes-in-value", text, ("codex",), number)


def host_field_findings(fields: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield what hosts refuse in the values of the frontmatter, whose scalars are strings."""
    name = fields.get("name")
    for word in _RESERVED:
        if isinstance(name, str) and word in name:
            yield warning("reserved-name", f"the name contains the reserved word {word!r}", ("claude-ai",))


def type_findings(header: str) -> Iterator[Finding]:
    """Yield the values that typed YAML does not read as text; none for a header that had to be repaired."""
    from skillpack.exceptions import YamlError
    from skillpack.untrusted.strict_yaml import load_typed_mapping

    try:
        typed = load_typed_mapping(header)
    except YamlError:
        return
    metadata = typed.get("metadata")
    values = [(key, typed[key]) for key in FIELDS if key in typed and key != "metadata"]
    values += [(f"metadata.{key}", value) for key, value in metadata.items()] if isinstance(metadata, dict) else []
    for key, value in values:
        if value is not None and not isinstance(value, (str, list, dict)):
            text = f"the value of {key!r} is {type(value).__name__} {str(value)!r} to typed YAML; quote it"
            yield warning("unquoted", text, YAML_READERS)


def body_findings(body: str) -> Iterator[Finding]:
    """Yield what some hosts do not understand in the instructions."""
    variable = _CLAUDE_CODE_VARIABLE.search(body)
    if variable is not None:
        others = tuple(host for host in HOSTS if host != "claude-code")
        text = f"the body uses {variable.group()}, which only Claude Code replaces; write paths relative to the skill"
        yield warning("host-variable", text, others)
