"""What one host or another objects to in a skill that the specification allows.

Sources: the Agent Skills client guide; Codex's loader; the validator of anthropics/skills, by which claude.ai judges
uploads; Agent Plugins 1.0.0. A host's name here is what ``skillpack validate --strict`` takes.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from skillpack.skills.findings import HOSTS, Finding, warning
from skillpack.skills.specification import FIELDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from skillpack.skills.skill_md import Skill

YAML_READERS = ("agent-plugins", "claude-ai", "codex", "manus")  # hand the frontmatter to a plain YAML library
UPLOADS = ("claude-ai", "manus")  # one archive a skill, judged by a pattern that knows no variation
CODEX_LISTING = 8000  # characters of all descriptions
_RESERVED = ("anthropic", "claude")
_CLAUDE_CODE_VARIABLE = re.compile(r"\$\{CLAUDE_[A-Z_]+\}")
_OPENING = re.compile(rb"---\r?\n")
_TEXT_TAG = "tag:yaml.org,2002:str"


def text_findings(data: bytes, header: str) -> Iterator[Finding]:
    """Yield what hosts misread in the frontmatter as it is written.

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


def field_findings(fields: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield what hosts object to in the values of the frontmatter (scalars as strings as they are written)."""
    name = fields.get("name")
    for word in _RESERVED:
        if isinstance(name, str) and word in name:
            yield warning("reserved-name", f"the name contains the reserved word {word!r}", ("claude-ai",))


def type_findings(header: str) -> Iterator[Finding]:
    """Yield the values that typed YAML does not read as text; a header that had to be repaired has none to judge."""
    from skillpack.errors import YamlError
    from skillpack.skills.strict_yaml import load_typed_mapping

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
    """Yield what hosts do not understand in the instructions."""
    variable = _CLAUDE_CODE_VARIABLE.search(body)
    if variable is not None:
        others = tuple(host for host in HOSTS if host != "claude-code")
        text = f"the body uses {variable.group()}, which only Claude Code replaces; write paths relative to the skill"
        yield warning("host-variable", text, others)


def listing_findings(skills: Sequence[Skill]) -> Iterator[Finding]:
    """Yield what hosts object to in a set of skills as a whole."""
    length = sum(len(skill.description) for skill in skills)
    if length > CODEX_LISTING:
        text = f"the descriptions have {length} characters together; hosts cut a listing beyond {CODEX_LISTING}"
        yield warning("listing-length", text, ("codex",))
