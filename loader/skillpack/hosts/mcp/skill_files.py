"""The files of a skill as MCP resources (SEP-2640): their URIs, sizes and digests."""

# Paths stay strings: a skill's whole tree is walked, and Path objects would cost as much as the reading.
# ruff: noqa: PTH118

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from skillpack.authoring.skill_rules import MAX_NAME, NAME
from skillpack.exceptions import FileRefusedError, ResourceError, SkillFileError, YamlError
from skillpack.skills.resources import read_resource
from skillpack.skills.skill_md import OUTPUT_FOLDERS, SKILL_FILE
from skillpack.skills.strict_frontmatter import MAX_FILE_BYTES, decode, split
from skillpack.untrusted.file_access import inside, is_text_name, read_bounded
from skillpack.untrusted.strict_yaml import load_typed_mapping
from skillscript.file_state import file_state

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillpack.skills.skill_md import Skill
    from skillscript.file_state import FileState

SCHEME = "skill://"
DIRECTORY = "inode/directory"
MAX_FILES = 512  # SEP-2640: every host must accept this many
MAX_BYTES = 16 << 20


@dataclass(frozen=True)
class SkillFile:
    """One file of a skill.

    Attributes:
        path: Path relative to the skill's folder, with forward slashes.
        size: Length. [bytes]
        digest: ``sha256:`` and 64 hexadecimal digits.
    """

    path: str
    size: int
    digest: str


def file_uri(skill: str, path: str = "") -> str:
    """Return the URI of a file or folder of a skill; without a path that of its folder."""
    return SCHEME + quote(f"{skill}/{path}" if path else skill)


def parse_uri(uri: str) -> tuple[str, str] | None:
    """Return the skill name and path of a URI; the path of the skill's folder is "". None if it is no such URI."""
    if not uri.startswith(SCHEME):
        return None
    try:
        name, *steps = unquote(uri.removeprefix(SCHEME), errors="strict").split("/")
    except UnicodeDecodeError:
        return None
    return None if {"", ".", ".."} & {name, *steps} else (name, "/".join(steps))


def is_served(skill: Skill) -> bool:
    """Return whether a skill can be served by SEP-2640, which requires a name that follows the specification."""
    return len(skill.name) <= MAX_NAME and NAME.fullmatch(skill.name) is not None


def entry(skill: Skill) -> dict[str, Any]:
    """Return the ``Skill`` entry of SEP-2640: URI, frontmatter as written, and every file with digest and size.

    Raises:
        ResourceError: If a file cannot be read, or the skill exceeds the limits of SEP-2640.
    """
    files = list(served_files(skill))
    if len(files) > MAX_FILES or sum(file.size for file in files) > MAX_BYTES:
        raise ResourceError(f"skill {skill.name!r} has more than {MAX_FILES} files or {MAX_BYTES} bytes")
    return {
        "uri": file_uri(skill.name, SKILL_FILE),
        "frontmatter": frontmatter(skill),
        "resources": [
            {"uri": file_uri(skill.name, file.path), "digest": file.digest, "size": file.size} for file in files
        ],
    }


def frontmatter(skill: Skill) -> dict[str, Any]:
    """Return the frontmatter as JSON: as YAML reads it, or as texts if it had to be repaired."""
    try:
        header, _ = split(decode(read_bounded(skill.path, MAX_FILE_BYTES)))
        typed = load_typed_mapping(header)
    except (OSError, FileRefusedError, SkillFileError, YamlError):
        typed = dict(skill.fields)
    found: dict[str, Any] = _json_value(typed)
    if skill.is_unnamed:  # a client needs one
        found["name"] = skill.name
    return found


def served_files(skill: Skill) -> Iterator[SkillFile]:
    """Yield the regular files of a skill, sorted by path, without caches and files outside of it.

    Raises:
        ResourceError: If one cannot be read, is too large, or there are far too many.
    """
    paths = sorted(_walk(skill.dir))
    if len(paths) > MAX_FILES:
        raise ResourceError(f"skill {skill.name!r} has more than {MAX_FILES} files")
    for path in paths:
        location = os.path.join(skill.dir, *path.split("/"))
        try:
            status = os.stat(location)  # noqa: PTH116
        except OSError as error:
            raise ResourceError(f"{path!r} cannot be read: {error.strerror}") from error
        if status.st_size > MAX_BYTES:
            raise ResourceError(f"{path!r} has {status.st_size} bytes, more than the {MAX_BYTES} allowed")
        yield SkillFile(path, status.st_size, _digest(location, file_state(status)))


def children(skill: Skill, folder: str) -> list[tuple[str, bool]] | None:
    """Return the path of each direct child of a skill's folder and whether it is a folder; None for no such folder.

    Args:
        skill: The skill.
        folder: Path relative to the skill's folder, "" for that itself.
    """
    prefix = f"{folder}/" if folder else ""
    below = [path for path in _walk(skill.dir) if path.startswith(prefix)]
    if not below:
        return None
    steps = {(prefix + rest.partition("/")[0], "/" in rest) for rest in (path[len(prefix) :] for path in below)}
    return sorted(steps)


def content(skill: Skill, path: str) -> bytes:
    """Return the bytes of a served file.

    Raises:
        ResourceError: If the skill serves no such file.
    """
    parts = [part for part in path.split("/") if part]
    if any(_is_hidden(part) for part in parts) or parts[:1] in ([name] for name in OUTPUT_FOLDERS):
        raise ResourceError(f"skill {skill.name!r} has no file {path!r}")
    return read_resource(skill, path, max_bytes=MAX_BYTES).data


def _walk(top: str) -> Iterator[str]:
    """Yield the paths of a skill's regular files, without hidden files, caches, output and links to outside."""
    for parent, folders, names in os.walk(top):
        left_out = OUTPUT_FOLDERS if parent == top else ()
        folders[:] = [name for name in folders if not _is_hidden(name) and name not in left_out]
        for name in names:
            path = os.path.join(parent, name)
            if not _is_hidden(name) and os.path.isfile(path) and (not os.path.islink(path) or inside(top, path)):  # noqa: PTH113, PTH114
                yield os.path.relpath(path, top).replace(os.sep, "/")


def _is_hidden(name: str) -> bool:
    """Return whether a file or folder is not served: it is hidden, a cache, or has a name that a URI cannot express."""
    return name.startswith(".") or name == "__pycache__" or name.endswith(".pyc") or not is_text_name(name)


@lru_cache(maxsize=8192)
def _digest(path: str, _state: FileState) -> str:
    """Return the digest of a file as it is now; an unchanged one is not read again."""
    try:
        return "sha256:" + hashlib.sha256(read_bounded(os.path.realpath(path), MAX_BYTES)).hexdigest()
    except (OSError, FileRefusedError) as error:
        raise ResourceError(f"{os.path.basename(path)!r} cannot be read: {error}") from error  # noqa: PTH119


def _json_value(value: Any) -> Any:
    """Return a YAML value as JSON; a date as its ISO text."""
    if isinstance(value, dict):
        return {str(key): _json_value(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_json_value(item) for item in value]
    if hasattr(value, "isoformat"):
        return value.isoformat()
    return value if value is None or isinstance(value, (str, int, float, bool)) else str(value)
