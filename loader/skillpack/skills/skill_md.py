"""One skill: its SKILL.md, its folder, and its resources, which are read confined to that folder (layer 3)."""

# Paths stay strings: a scan handles tens of thousands of them, and Path objects would cost as much as the parsing.
# ruff: noqa: PTH100, PTH113, PTH114, PTH118, PTH119, PTH120, PTH202
# Paths stay strings: a scan handles tens of thousands of them, and Path objects would cost as much as the parsing.
# ruff: noqa: PTH118
from __future__ import annotations

import ntpath
import os
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from skillpack.exceptions import FileRefusedError, ResourceError, SkillFileError
from skillpack.untrusted.file_access import CONTROL, HIDING, inside, one_line, read_bounded, text_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SKILL_FILE = "SKILL.md"
DECLARATION_FILE = "skill.yaml"
JSON_DECLARATION_FILE = "skill.json"  # the same declaration as JSON
RESOURCE_FOLDERS = ("assets", "references", "scripts")
OUTPUT_FOLDERS = ("build", "workspace")  # what commands that run in the skill's folder write; no part of the skill
MAX_RESOURCES = 2000
MAX_RESOURCE_BYTES = 1 << 20


class Skill(NamedTuple):
    """A usable skill; its body and resources are read from disk on demand.

    Attributes:
        name: Unique name: the name in the frontmatter, or else the name of the folder.
        description: What it does and when to use it.
        path: Absolute path of its SKILL.md.
        dir: Absolute path of its folder.
        more: The other fields of the frontmatter, scalars as strings.
        repairs: Faults of the frontmatter that were repaired when it was read.
        is_unnamed: Whether the frontmatter has no name, so that the folder's name is used, as in Claude Code.
    """

    name: str
    description: str
    path: str
    dir: str
    more: Mapping[str, Any] = MappingProxyType({})
    repairs: tuple[str, ...] = ()
    is_unnamed: bool = False

    @property
    def fields(self) -> dict[str, Any]:
        """Return all fields of the frontmatter, scalars as strings."""
        return {"name": self.name, "description": self.description, **self.more}

    @property
    def summary(self) -> str:
        """Return the description on one line, so that it cannot imitate other parts of a prompt or terminal."""
        text = self.description
        if text.isprintable() and "  " not in text:  # true for nearly all descriptions, and ten times as fast
            return text

        return one_line(text)

    @property
    def body(self) -> str:
        """Return the Markdown below the frontmatter, read from disk now.

        Raises:
            FileNotFoundError: If the file no longer exists.
            SkillFileError: If the file has become unusable since the scan.
        """
        from skillpack.untrusted.strict_yaml import body_of

        return body_of(self.read())

    def read(self) -> bytes:
        """Return the current bytes of its SKILL.md.

        Raises:
            FileNotFoundError: If the file no longer exists.
            SkillFileError: If it is no longer a regular file of this skill, or is too large.
        """
        return read_skill_file(self.path, self.dir, is_link=os.path.islink(self.path))

    @property
    def resources(self) -> list[str]:
        """Return the files in scripts, references and assets, as sorted paths relative to ``dir``.

        Bytecode, special files and links to files outside the skill are left out.
        """
        return [path for path, _ in self.sized_resources]

    @property
    def sized_resources(self) -> list[tuple[str, int]]:
        """Return at most ``MAX_RESOURCES`` resources with their sizes, sorted by path. [bytes]"""
        found: list[tuple[str, int]] = []
        for folder in RESOURCE_FOLDERS:
            top = os.path.join(self.dir, folder)
            if os.path.islink(top) and not inside(self.dir, top):
                continue
            for entry in self._files(top):
                found.append(entry)
                if len(found) >= MAX_RESOURCES:
                    return sorted(found)
        return sorted(found)

    def _files(self, top: str) -> Iterator[tuple[str, int]]:
        """Yield path and size of every regular file of this skill below ``top``."""
        for parent, folders, files in os.walk(top):
            folders[:] = sorted(name for name in folders if name != "__pycache__")
            for path in (os.path.join(parent, name) for name in sorted(files)):
                if self._owns(path):
                    yield os.path.relpath(path, self.dir).replace(os.sep, "/"), os.path.getsize(path)

    def _owns(self, path: str) -> bool:
        """Return whether ``path`` is a regular file of this skill."""
        if not os.path.isfile(path) or path.endswith(".pyc"):
            return False
        return not os.path.islink(path) or inside(self.dir, path)


def load_skill(path: str | os.PathLike[str]) -> Skill:
    """Return the skill whose SKILL.md is ``path``.

    Raises:
        FileNotFoundError: If there is no such file.
        SkillFileError: If it cannot be used; the message gives the reason.
    """
    location = os.path.abspath(path)
    return read_skill(location, os.path.dirname(location), is_link=os.path.islink(location))


def read_skill(path: str, folder: str, *, is_link: bool) -> Skill:
    """Return the skill in ``folder``.

    Args:
        path: Absolute path of its SKILL.md.
        folder: Absolute path of its folder.
        is_link: Whether ``path`` is a symbolic link; a file that becomes a link later is refused.

    Raises:
        FileNotFoundError: If there is no such file.
        SkillFileError: If it cannot be used; the message gives the reason.
    """
    from skillpack.untrusted.strict_yaml import parse

    document = parse(read_skill_file(path, folder, is_link=is_link))
    given = document.fields.get("name", "")
    unnamed = isinstance(given, str) and not given.strip()
    name = os.path.basename(folder) if unnamed else _required(document.fields, "name")
    description = _required(document.fields, "description")
    if not name or CONTROL.search(name) or HIDING.search(name):
        raise SkillFileError("the name contains a line break or a control character")
    more = {key: value for key, value in document.fields.items() if key not in {"name", "description"}}
    return Skill(name, description, path, folder, more, document.repairs, unnamed)


def read_skill_file(path: str, folder: str, *, is_link: bool) -> bytes:
    """Return the content of a SKILL.md; a link to a file outside its folder is refused.

    Args:
        path: Absolute path of the SKILL.md.
        folder: Absolute path of its folder.
        is_link: Whether ``path`` is a symbolic link; a file that becomes a link later is refused.

    Raises:
        FileNotFoundError: If there is no such file.
        SkillFileError: If it is not a regular file of this skill, or is too large.
    """
    from skillpack.untrusted.strict_yaml import MAX_FILE_BYTES

    if is_link and not inside(folder, path):
        raise SkillFileError("is a link to a file outside its skill")
    try:
        return read_bounded(path, MAX_FILE_BYTES, follow=is_link)
    except FileRefusedError as error:
        raise SkillFileError(str(error)) from error


def _required(fields: Mapping[str, Any], key: str) -> str:
    """Return the non-empty text of a required field."""
    value = fields.get(key)
    if value is not None and not isinstance(value, str):
        raise SkillFileError(f"the {key} must be text, not a {'list' if isinstance(value, list) else 'mapping'}")
    if value is None or not value.strip():
        raise SkillFileError(f"the frontmatter has no {key}")
    return value.strip()


class Resource(NamedTuple):
    """The content of one file.

    Attributes:
        path: Path relative to the skill's folder, with forward slashes.
        data: Its bytes.
    """

    path: str
    data: bytes

    @property
    def digest(self) -> str:
        """Return ``sha256:`` and the hexadecimal digest of the bytes."""
        import hashlib

        return f"sha256:{hashlib.sha256(self.data).hexdigest()}"

    def to_json(self) -> dict[str, object]:
        """Return path, size in bytes, digest, encoding ("utf-8" or "base64") and content, ready for JSON."""
        import base64

        text = text_of(self.data)
        return {
            "path": self.path,
            "size": len(self.data),
            "digest": self.digest,
            "encoding": "base64" if text is None else "utf-8",
            "content": base64.b64encode(self.data).decode("ascii") if text is None else text,
        }


def read_resource(skill: Skill, path: str, *, max_bytes: int | None = None) -> Resource:
    """Return the file ``path`` of ``skill``.

    Args:
        skill: The skill.
        path: Path relative to the skill's folder, with forward slashes.
        max_bytes: Maximum size of the file; default ``MAX_RESOURCE_BYTES``. [bytes]

    Raises:
        ResourceError: If the path is not inside the skill, is not a regular file, or the file is too large.
    """
    limit = MAX_RESOURCE_BYTES if max_bytes is None else max_bytes
    parts = _parts(path)
    relative = "/".join(parts)
    target = os.path.join(skill.dir, *parts)
    try:
        if not inside(skill.dir, target):
            raise ResourceError(f"{relative!r} leads out of the skill {skill.name!r}")
        return Resource(relative, read_bounded(os.path.realpath(target), limit))
    except FileNotFoundError as error:
        raise ResourceError(f"skill {skill.name!r} has no file {relative!r}") from error
    except FileRefusedError as error:
        raise ResourceError(f"{relative!r} {error}") from error
    except ValueError as error:  # a surrogate that no file name can hold
        raise ResourceError("the path holds characters that no file name can have") from error


def _parts(path: str) -> list[str]:
    """Return the components of a relative path; raise an error for a path that could lead elsewhere."""
    if "\x00" in path:
        raise ResourceError("the path contains a NUL character")
    if "\\" in path:
        raise ResourceError(f"the path {path!r} contains a backslash; use forward slashes")
    if path.startswith("/") or ntpath.splitdrive(path)[0]:
        raise ResourceError(f"the path {path!r} is absolute; give it relative to the skill's folder")
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise ResourceError(f"the path {path!r} contains '..'; a resource must be inside the skill")
    if not parts:
        raise ResourceError("the path is empty")
    return parts
