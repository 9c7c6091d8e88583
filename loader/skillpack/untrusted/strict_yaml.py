"""Read YAML without duplicate keys, without aliases and with bounded depth, and the frontmatter of a SKILL.md.

PyYAML keeps the last of two equal keys, expands aliases, and its C composer recurses on the C stack, so that 30 kB of
``[`` crash the process. This module reads the events of PyYAML one by one, without recursion, and refuses all three.

A SKILL.md is read and written with python-frontmatter, through a handler that is stricter than the library's own: only
a line that is exactly ``---`` closes the frontmatter; ``---`` inside a value, a line of more dashes and rules in the
body do not. Decision 0003 describes what the library does, what this module does, and why.
"""

from __future__ import annotations

import codecs
import re
from typing import TYPE_CHECKING, Any, NamedTuple

import frontmatter
import yaml
from frontmatter.default_handlers import YAMLHandler

from skillpack.exceptions import SkillFileError, YamlError

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_DEPTH = 32
NULLS = frozenset({"", "~", "null", "Null", "NULL"})  # the plain scalars that mean no value
_TextLoader: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
_TypedLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_Dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_PLAIN_TAG = re.compile(r"tag:yaml\.org,2002:[a-z]+")  # tags such as !!str; not !name or !!python/name
MAX_FILE_BYTES = 1 << 20
MAX_FRONTMATTER_CHARACTERS = 1 << 16
_OPENING = re.compile(r"---[ \t]*\n")
_CLOSING = re.compile(r"^---[ \t]*$", re.MULTILINE)
_OPENING_KEY = re.compile(r"[A-Za-z_][\w-]*:[ \t]*")
_PLAIN_VALUE = re.compile(r"""([A-Za-z_][\w-]*):[ \t]+([^\s'"|>\[{&*!%@`#][^\n]*)""")


def load_text_mapping(text: str) -> dict[str, Any]:
    """Return the mapping in ``text`` with all scalars as strings (``1.10`` stays ``"1.10"``, null becomes "").

    Raises:
        YamlError: If the text is not one YAML mapping, or has duplicate keys, aliases or too many levels.
    """
    tree = _Tree()
    try:
        next_event = _TextLoader(text).get_event
        while not isinstance(event := next_event(), yaml.StreamEndEvent):
            tree.add(event)
    except yaml.YAMLError as error:
        raise _as_yaml_error(error) from error
    return tree.root or {}


def load_typed_mapping(text: str) -> dict[str, Any]:
    """Return the mapping in ``text`` with typed numbers, booleans and null.

    Raises:
        YamlError: As ``load_text_mapping``, and for tags outside plain YAML.
    """
    load_text_mapping(text)
    try:
        value: dict[str, Any] | None = yaml.load(text, Loader=_TypedLoader)  # noqa: S506 - a safe loader
    except (yaml.YAMLError, ValueError) as error:  # ValueError: a date such as 2026-99-99
        raise _as_yaml_error(error) from error
    return value or {}


def dump_mapping(value: Mapping[str, object]) -> str:
    """Return a mapping as block-style YAML, with the keys in order, each text on one line and Unicode unescaped."""
    text: str = yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1 << 20)
    return text


class _Tree:
    """The value that is built from events, scalars as strings."""

    def __init__(self) -> None:
        self.root: dict[str, Any] | None = None
        self._open: list[dict[str, Any] | list[Any]] = []  # collections that are not yet complete
        self._keys: list[str | None] = []  # for each of them, the key whose value comes next

    def add(self, event: Any) -> None:
        """Process the next event.

        Raises:
            YamlError: If the value is not allowed.
        """
        kind = type(event)
        if kind is yaml.ScalarEvent:
            self._place(event, "" if not event.style and event.value in NULLS else event.value)
        elif kind is yaml.MappingStartEvent:
            self._begin(event, {})
        elif kind is yaml.SequenceStartEvent:
            self._begin(event, [])
        elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
            self._open.pop()
            self._keys.pop()
        elif kind is yaml.AliasEvent:
            raise YamlError("has a YAML alias (*name); write the value out each time", _line(event))
        elif kind is yaml.DocumentStartEvent and self.root is not None:
            raise YamlError("is not valid YAML: expected a single document", _line(event))

    def _begin(self, event: Any, collection: dict[str, Any] | list[Any]) -> None:
        """Add a collection and make it the current one."""
        self._place(event, collection)
        self._open.append(collection)
        self._keys.append(None)
        if len(self._open) > MAX_DEPTH:
            raise YamlError(f"is nested more than {MAX_DEPTH} levels deep", _line(event))

    def _place(self, event: Any, value: Any) -> None:
        """Add a value to the current collection, or keep it as the key of the next value."""
        if event.tag is not None and not _PLAIN_TAG.fullmatch(event.tag):
            text = f"is not valid YAML: the tag {event.tag!r} means nothing here; quote a text that begins with '!'"
            raise YamlError(text, _line(event))
        if not self._open:
            if not isinstance(value, dict):
                raise YamlError("is not a mapping of keys to values", _line(event))
            self.root = value
            return
        holder, key = self._open[-1], self._keys[-1]
        if isinstance(holder, list):
            holder.append(value)
        elif key is not None:
            holder[key] = value
            self._keys[-1] = None
        elif not isinstance(value, str):
            raise YamlError("has a key that is not text", _line(event))
        elif event.value in holder:
            raise YamlError(f"has the key {event.value!r} twice", _line(event))
        else:
            self._keys[-1] = event.value  # as written, because a key may be "null"


def _line(event: Any) -> int:
    """Return the 1-based line of an event."""
    return int(event.start_mark.line) + 1


def _as_yaml_error(error: Exception) -> YamlError:
    """Return the error of PyYAML as one short line with its position."""
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
    problem = problem.partition("; use sys.")[0]  # Python's advice on integers of many digits
    context = getattr(error, "context", None)
    mark = getattr(error, "problem_mark", None)
    text = f"{context}, {problem}" if context else problem
    return YamlError(f"is not valid YAML: {text}", None if mark is None else mark.line + 1)


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
