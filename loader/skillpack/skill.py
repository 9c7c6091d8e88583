"""One skill: what its SKILL.md says, where it lies, which files it brings."""

# Paths stay strings: a scan handles tens of thousands of them, and Path objects would cost as much as the parsing.
# ruff: noqa: PTH100, PTH113, PTH114, PTH118, PTH119, PTH120

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from skillpack.errors import FileRefusedError, SkillFileError
from skillpack.files import inside, read_bounded
from skillpack.frontmatter import MAX_FILE_BYTES, Document, parse

SKILL_FILE = "SKILL.md"
DECLARATION_FILE = "skill.yaml"
RESOURCE_FOLDERS = ("assets", "references", "scripts")
MAX_RESOURCES = 2000
_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


@dataclass(frozen=True)
class Skill:
    """A usable skill; its body and resources are read from disk when they are asked for.

    Attributes:
        name: Unique name, as the frontmatter gives it.
        description: What it does and when to use it.
        path: Absolute path of its SKILL.md.
        dir: Absolute path of its folder.
        fields: The whole frontmatter, scalars as strings.
        warnings: Departures from the specification that do not stop the skill from being used.
    """

    name: str
    description: str
    path: str
    dir: str
    fields: Mapping[str, Any] = field(default_factory=dict, repr=False, hash=False)
    warnings: tuple[str, ...] = ()

    @property
    def summary(self) -> str:
        """Return the description on one line, so that it cannot pose as another part of a prompt or terminal."""
        return " ".join(_CONTROL.sub(" ", self.description).split())

    @property
    def body(self) -> str:
        """Return the Markdown below the frontmatter as it is on disk now.

        Raises:
            SkillFileError: If the file has become unusable since it was scanned.
        """
        return _read_document(self.path, self.dir).body

    @property
    def resources(self) -> list[str]:
        """Return the files below scripts, references and assets, as sorted paths relative to ``dir``.

        Left out: caches, files that a link brings in from outside the skill, and special files.
        """
        found: list[str] = []
        for folder in RESOURCE_FOLDERS:
            top = os.path.join(self.dir, folder)
            if os.path.islink(top) and not inside(self.dir, top):
                continue
            for parent, folders, files in os.walk(top):
                folders[:] = sorted(name for name in folders if name != "__pycache__")
                paths = (os.path.join(parent, name) for name in sorted(files))
                found += [os.path.relpath(path, self.dir).replace(os.sep, "/") for path in paths if self._owns(path)]
                if len(found) >= MAX_RESOURCES:
                    return sorted(found[:MAX_RESOURCES])
        return sorted(found)

    def _owns(self, path: str) -> bool:
        """Return whether ``path`` is a regular file of this skill."""
        if not os.path.isfile(path) or path.endswith(".pyc"):
            return False
        return not os.path.islink(path) or inside(self.dir, path)


def load_skill(path: str | os.PathLike[str]) -> Skill:
    """Return the skill whose SKILL.md is ``path``.

    Raises:
        FileNotFoundError: If there is no such file.
        SkillFileError: If it cannot be used; the message is the reason.
    """
    location = os.path.abspath(path)
    folder = os.path.dirname(location)
    document = _read_document(location, folder)
    name = _required(document, "name")
    description = _required(document, "description")
    if _CONTROL.search(name):
        raise SkillFileError("the name contains a line break or a control character")
    warnings = document.warnings + tuple(_departures(name, description, os.path.basename(folder)))
    return Skill(name, description, location, folder, document.fields, warnings)


def _read_document(path: str, folder: str) -> Document:
    """Return the parsed SKILL.md, which a link must not bring in from outside its folder."""
    if os.path.islink(path) and not inside(folder, path):
        raise SkillFileError("is a link to a file outside its skill")
    try:
        return parse(read_bounded(path, MAX_FILE_BYTES))
    except FileRefusedError as error:
        raise SkillFileError(str(error)) from error


def _required(document: Document, key: str) -> str:
    """Return the non-empty text of a required field."""
    value = document.fields.get(key)
    if value is not None and not isinstance(value, str):
        raise SkillFileError(f"the {key} must be text, not a {'list' if isinstance(value, list) else 'mapping'}")
    if value is None or not value.strip():
        raise SkillFileError(f"the frontmatter has no {key}")
    return value.strip()


def _departures(name: str, description: str, folder: str) -> list[str]:
    """Return what the Agent Skills specification would object to in a skill that can be used all the same."""
    found = []
    if name != folder:
        found.append(f"the name {name!r} differs from the folder {folder!r}")
    if len(name) > 64 or not _NAME.fullmatch(name):
        found.append(f"the name {name!r} is not 1-64 characters of a-z, 0-9 and single hyphens")
    if len(description) > 1024:
        found.append(f"the description has {len(description)} characters, more than 1024")
    if "<" in description or ">" in description:
        found.append("the description contains '<' or '>'")
    return found
