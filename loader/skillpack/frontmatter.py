"""Split a SKILL.md into frontmatter and body, and read the frontmatter.

Only a line that is exactly ``---`` closes the frontmatter: ``---`` inside a value, a longer rule of dashes
and the body's own rules do not. See references/decisions/0003-own-frontmatter-split.md.
"""

import re
from typing import Any, NamedTuple

from skillpack.errors import SkillFileError, YamlError

MAX_FILE_BYTES = 1 << 20
MAX_FRONTMATTER_CHARACTERS = 1 << 16
_OPENING = re.compile(r"---[ \t]*\n")
_CLOSING = re.compile(r"^---[ \t]*$", re.MULTILINE)
_SIMPLE_LINE = re.compile(r"""([A-Za-z][A-Za-z0-9_-]{0,63}): +(?:(\w|\w.*[^ ])|"([^"\\]*)"|'([^']*)') *""")
NULLS = frozenset({"", "~", "null", "Null", "NULL"})  # what a plain scalar says that says nothing
_PLAIN_VALUE = re.compile(r"""([A-Za-z_][\w-]*):[ \t]+([^\s'"|>\[{&*!%@`#][^\n]*)""")


class Document(NamedTuple):
    """A SKILL.md in parts: its fields as strings, its Markdown body, and what was repaired on the way."""

    fields: dict[str, Any]
    body: str
    repairs: tuple[str, ...]


def parse(data: bytes) -> Document:
    """Return the parts of a SKILL.md.

    The body keeps its inner layout; blank lines around it are dropped.

    Raises:
        SkillFileError: If it is not UTF-8, has no frontmatter, or the frontmatter is not acceptable YAML.
    """
    header, body = split(decode(data))
    fields, repairs = read_fields(header)
    return Document(fields, _trimmed(body), repairs)


def body_of(data: bytes) -> str:
    """Return the Markdown body of a SKILL.md, whose frontmatter is not read.

    Raises:
        SkillFileError: If it is not UTF-8 or has no frontmatter.
    """
    return _trimmed(split(decode(data))[1])


def _trimmed(body: str) -> str:
    """Return the body without the blank lines around it; an indented first line keeps its indentation."""
    return body.strip("\n").rstrip()


def decode(data: bytes) -> str:
    """Return the text of a file: UTF-8, with or without BOM, lines ending in LF.

    Raises:
        SkillFileError: If the bytes are not UTF-8.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SkillFileError(f"is not UTF-8: byte 0x{data[error.start]:02x} at offset {error.start}") from error
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def split(text: str) -> tuple[str, str]:
    """Return the frontmatter between the two ``---`` lines, and everything after them.

    Raises:
        SkillFileError: If the text does not open with ``---``, never closes it, or the frontmatter is too long.
    """
    opening = _OPENING.match(text)
    if opening is None:
        raise SkillFileError("does not start with a line '---'")
    closing = _CLOSING.search(text, opening.end())
    if closing is None:
        raise SkillFileError("the frontmatter is not closed by a line '---'")
    header = text[opening.end() : closing.start()]
    if len(header) > MAX_FRONTMATTER_CHARACTERS:
        raise SkillFileError(
            f"the frontmatter has {len(header)} characters, more than the {MAX_FRONTMATTER_CHARACTERS} allowed"
        )
    return header, text[closing.end() :]


def read_fields(header: str) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the frontmatter's fields, and what had to be repaired.

    ``description: Use when: ...`` is not YAML, yet common; such plain values are read as if they were quoted.

    Raises:
        SkillFileError: If the YAML is not acceptable even so.
    """
    fields = simple_fields(header)
    if fields is not None:
        return fields, ()
    from skillpack.strict_yaml import load_text_mapping

    try:
        return load_text_mapping(header), ()
    except YamlError as error:
        quoted, keys = _quote_plain_values(header)
        if not keys:
            raise _refusal(error) from error
        try:
            fields = load_text_mapping(quoted)
        except YamlError:
            raise _refusal(error) from error
    return fields, tuple(f"the value of {key!r} contains ': ' and should be quoted" for key in keys)


def simple_fields(header: str) -> dict[str, str] | None:
    """Return what YAML makes of a header in which each line is ``key: text``, or None for every other.

    Most frontmatter is no more than that, and is read here in a tenth of the time; see decision 0003. What YAML could
    read in another way (indicators, comments, escapes, indentation, a key twice) is left to YAML.
    """
    fields: dict[str, str] = {}
    for line in header.split("\n"):
        if not line:
            continue
        match = _SIMPLE_LINE.fullmatch(line)
        if match is None or not line.isprintable():
            return None
        key, plain, double, single = match.groups()
        if plain is not None:
            if ": " in plain or " #" in plain or plain[-1] == ":":
                return None
            value = "" if plain in NULLS else plain
        else:
            value = single if double is None else double
        if key in fields:
            return None
        fields[key] = value
    return fields


def _refusal(error: YamlError) -> SkillFileError:
    """Return the error with its line counted in the file, where the frontmatter starts on line 2."""
    place = "" if error.line is None else f" (line {error.line + 1})"
    return SkillFileError(f"the frontmatter {error}{place}")


def _quote_plain_values(header: str) -> tuple[str, list[str]]:
    """Return ``header`` with top-level plain values that contain a colon quoted, and their keys."""
    lines = header.split("\n")
    result: list[str] = []
    keys: list[str] = []
    index = 0
    while index < len(lines):
        end = index + 1
        match = _PLAIN_VALUE.fullmatch(lines[index])
        if match is not None:
            while end < len(lines) and lines[end][:1] == " ":  # the value goes on, indented
                end += 1
            value = " ".join([match[2], *lines[index + 1 : end]])
            if ": " in value or value.rstrip().endswith(":"):
                keys.append(match[1])
                text = " ".join(value.split()).replace("'", "''")
                result.append(f"{match[1]}: '{text}'")
                index = end
                continue
        result.extend(lines[index:end])
        index = end
    return "\n".join(result), keys
