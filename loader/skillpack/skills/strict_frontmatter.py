"""Read and write a SKILL.md with python-frontmatter, through a handler that is stricter than the library's own.

Only a line that is exactly ``---`` closes the frontmatter; ``---`` inside a value, a line of more dashes and rules in
the body do not. Decision 0003 describes what the library does, what this module does, and why.
"""

from __future__ import annotations

import codecs
import re
from typing import TYPE_CHECKING, Any, NamedTuple

import frontmatter
from frontmatter.default_handlers import YAMLHandler

from skillpack.exceptions import SkillFileError, YamlError
from skillpack.untrusted.strict_yaml import dump_mapping, load_text_mapping

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_FILE_BYTES = 1 << 20
MAX_FRONTMATTER_CHARACTERS = 1 << 16
_OPENING = re.compile(r"---[ \t]*\n")
_CLOSING = re.compile(r"^---[ \t]*$", re.MULTILINE)
_OPENING_KEY = re.compile(r"[A-Za-z_][\w-]*:[ \t]*")
_PLAIN_VALUE = re.compile(r"""([A-Za-z_][\w-]*):[ \t]+([^\s'"|>\[{&*!%@`#][^\n]*)""")


class Document(NamedTuple):
    """The parts of a SKILL.md: fields with scalars as strings, Markdown body, and repaired faults."""

    fields: dict[str, Any]
    body: str
    repairs: tuple[str, ...]


def parse(data: bytes) -> Document:
    """Return the parts of a SKILL.md.

    The body keeps its layout, without the blank lines around it.

    Raises:
        SkillFileError: If it is not UTF-8, has no frontmatter, or the frontmatter is not acceptable YAML.
    """
    text, handler = decode(data), StrictHandler()
    split(text)  # checked here, because python-frontmatter strips the text before it calls the handler
    fields, body = frontmatter.parse(text, handler=handler)
    return Document(fields, body, handler.repairs)


def write(fields: Mapping[str, str], body: str) -> str:
    """Return the text of a SKILL.md that ``parse`` reads as these fields and this body.

    Raises:
        SkillFileError: If it would be read as other fields.
    """
    return frontmatter.dumps(frontmatter.Post(body, StrictHandler(), **fields)) + "\n"


class StrictHandler(YAMLHandler):
    """Handler for python-frontmatter: an exact boundary, a strict loader, and a body that keeps its layout.

    One handler serves one text.

    Attributes:
        repairs: Faults that ``load`` repaired.
    """

    FM_BOUNDARY = _CLOSING

    def __init__(self) -> None:
        super().__init__()
        self.repairs: tuple[str, ...] = ()

    def detect(self, text: str) -> bool:
        """Return whether the text starts with a line ``---``."""
        return _OPENING.match(text) is not None

    def split(self, text: str) -> tuple[str, str]:
        """Return frontmatter and body as ``split`` does; the library's ``strip`` leaves the body's indentation."""
        header, body = split(text)
        return header, _Body(body)

    def load(self, fm: str, **_: object) -> dict[str, Any]:
        """Return the fields; see ``read_fields``."""
        fields, self.repairs = read_fields(fm)
        return fields

    def export(self, metadata: dict[str, object], **_: object) -> str:
        """Return the fields as YAML, one line each, in their order.

        Raises:
            SkillFileError: If ``load`` would read something else.
        """
        text = dump_mapping(metadata)
        if load_text_mapping(text) != metadata:
            raise SkillFileError("the frontmatter has a value that is not text")
        return text.rstrip("\n")


class _Body(str):
    """A body from which ``strip`` removes blank lines, but not the indentation of the first line."""

    __slots__ = ()

    def strip(self, _: str | None = None, /) -> str:
        return _trimmed(str(self))


def body_of(data: bytes) -> str:
    """Return the Markdown body of a SKILL.md without reading its frontmatter.

    Raises:
        SkillFileError: If it is not UTF-8 or has no frontmatter.
    """
    return _trimmed(split(decode(data))[1])


def _trimmed(body: str) -> str:
    """Return the body without blank lines around it; the first line keeps its indentation."""
    return body.strip("\n").rstrip()


def decode(data: bytes) -> str:
    """Decode a file as UTF-8, with or without a BOM, and return its text with LF line endings.

    Raises:
        SkillFileError: If the bytes are not UTF-8.
    """
    content = data.removeprefix(codecs.BOM_UTF8)
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        offset = error.start + len(data) - len(content)
        raise SkillFileError(f"is not UTF-8: byte 0x{data[offset]:02x} at offset {offset}") from error
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def split(text: str) -> tuple[str, str]:
    """Return the frontmatter between the two ``---`` lines, and everything after them.

    Raises:
        SkillFileError: If the text does not start with ``---``, the frontmatter is not closed, or it is too long.
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
    """Return the fields of the frontmatter and the faults that were repaired.

    ``description: Use when: ...`` is common, but not valid YAML; such plain values are read as if they were quoted.

    Raises:
        SkillFileError: If the YAML is not acceptable after these repairs.
    """
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


def _refusal(error: YamlError) -> SkillFileError:
    """Return the error with its line number in the file, in which the frontmatter starts on line 2."""
    place = "" if error.line is None else f" (line {error.line + 1})"
    return SkillFileError(f"the frontmatter {error}{place}")


def _quote_plain_values(header: str) -> tuple[str, list[str]]:
    """Quote the plain values that contain a colon; return the new header and the keys of these values.

    Only values at the top level and in a mapping below it are quoted; lines with other indentation belong to a text.
    """
    lines = header.split("\n")
    result: list[str] = []
    keys: list[str] = []
    opened, indent = "", ""  # a top-level key without a value on its line, and the indentation of its mapping
    index = 0
    while index < len(lines):
        line, end = lines[index], index + 1
        lead = line[: len(line) - len(line.lstrip(" "))]
        if line.strip() and not lead:
            opened, indent = (line.rstrip()[:-1], "") if _OPENING_KEY.fullmatch(line) else ("", "")
        elif opened and not indent:
            indent = lead
        match = _PLAIN_VALUE.fullmatch(line, len(lead)) if lead == indent else None
        if match is not None:
            while end < len(lines) and lines[end].startswith(
                lead + " "
            ):  # the value continues on lines that are indented further
                end += 1
            value = " ".join([match[2], *lines[index + 1 : end]])
            if ": " in value or value.rstrip().endswith(":"):
                keys.append(f"{opened}.{match[1]}" if lead else match[1])
                text = " ".join(value.split()).replace("'", "''")
                result.append(f"{lead}{match[1]}: '{text}'")
                index = end
                continue
        result.extend(lines[index:end])
        index = end
    return "\n".join(result), keys
