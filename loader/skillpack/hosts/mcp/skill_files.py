"""Skills and their files as MCP resources, and the Skills extension of MCP (SEP-2640).

The extension has skills/list, skills/get and directory reads. The last part of this module has the URIs, sizes and
digests of the files.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote, unquote

from skillpack.authoring.skill_rules import MAX_NAME, NAME
from skillpack.exceptions import FileRefusedError, ResourceError, SkillFileError, YamlError
from skillpack.hosts.mcp import work_resources
from skillpack.hosts.mcp.work_resources import NotServedError
from skillpack.hosts.work_files import WorkFile, media_type
from skillpack.skills import skill_md
from skillpack.skills.skill_md import OUTPUT_FOLDERS, SKILL_FILE
from skillpack.untrusted.file_access import inside, is_text_name, read_bounded
from skillpack.untrusted.strict_yaml import MAX_FILE_BYTES, decode, load_typed_mapping, split
from sturdy.atomic_files import file_state

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from skillpack.hosts.pack import View
    from skillpack.hosts.work_files import WorkFiles
    from skillpack.skills.skill_md import Skill
    from sturdy.atomic_files import FileState

# Paths stay strings: a skill's whole tree is walked, and Path objects would cost as much as the reading.
# ruff: noqa: PTH118


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
    return skill_md.read_resource(skill, path, max_bytes=MAX_BYTES).data


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


EXTENSIONS: dict[str, dict[str, Any]] = {"io.modelcontextprotocol/skills": {"directoryRead": True}}
"""The extensions of the protocol that are served, with their settings."""
PAGE = 100
TTL_MS = 5_000  # the catalogue is read again every few seconds
_Item = TypeVar("_Item")


def list_resources(view: View, files: WorkFiles, cursor: str | None) -> dict[str, Any]:
    """Return the SKILL.md of every skill, then the files that tools work on.

    The other files of a skill are found through skills/list or directory reads.
    """
    listed: list[Skill | WorkFile] = [*_served(view), *files.listing()[0]]
    page, following = _page(listed, cursor)
    skill_md = [
        work_resources.resource(item)
        if isinstance(item, WorkFile)
        else {
            "uri": file_uri(item.name, SKILL_FILE),
            "name": item.name,
            "description": item.summary,
            "mimeType": "text/markdown",
        }
        for item in page
    ]
    return {**_cacheable({"resources": skill_md}, following), "ttlMs": 0}


def list_templates() -> dict[str, Any]:
    """Return the URI templates of the files of skills and of those that tools work on."""
    template = {
        "uriTemplate": f"{SCHEME}{{skill}}/{{+path}}",
        "name": "skill-file",
        "description": "A file of a skill, by its path relative to the skill's folder.",
    }
    return {**_cacheable({"resourceTemplates": [template, work_resources.TEMPLATE]}, None), "ttlMs": 0}


def read_resource(view: View, files: WorkFiles, uri: str) -> dict[str, Any]:
    """Return one file of a skill, or one that tools work on, as text if it is UTF-8.

    Raises:
        NotServedError: If no skill serves a file there.
    """
    if uri.startswith(work_resources.SCHEME):
        return work_resources.read(files, uri)
    skill, path = _target(view, uri)
    if not path:
        raise NotServedError(f"{uri} is a folder; read {uri}/{SKILL_FILE}, or list it with resources/directory/read")
    try:
        data = content(skill, path)
    except ResourceError as error:
        raise NotServedError(f"{uri}: {error}") from error
    return _cacheable({"contents": [work_resources.contents_of(uri, path, data)]}, None)


def list_skills(view: View, cursor: str | None) -> dict[str, Any]:
    """Return the result of ``skills/list``: complete manifests; a skill that cannot be served is left out."""
    page, following = _page(_served(view), cursor)
    entries = []
    for skill in page:
        try:
            entries.append(entry(skill))
        except ResourceError:  # noqa: PERF203 - one bad skill hides no other; skills/get reports its fault
            continue
    return _cacheable({"skills": entries}, following)


def get_skill(view: View, uri: str) -> dict[str, Any]:
    """Return the result of ``skills/get``.

    Raises:
        NotServedError: If no skill is served there.
    """
    skill, path = _target(view, uri)
    if path != SKILL_FILE:
        raise NotServedError(f"no skill is served at {uri}; a skill is named by the URI of its {SKILL_FILE}")
    try:
        return _cacheable({"skill": entry(skill)}, None)
    except ResourceError as error:
        raise NotServedError(f"the skill at {uri} cannot be served: {error}") from error


def read_directory(view: View, uri: str, cursor: str | None) -> dict[str, Any]:
    """Return the result of ``resources/directory/read``: the direct children of a folder of a skill.

    Raises:
        NotServedError: If there is no such folder.
    """
    skill, folder = _target(view, uri)
    listed = children(skill, folder)
    if listed is None:
        raise NotServedError(f"{uri} is not a directory resource")
    page, following = _page(listed, cursor)
    skill_md = [
        {
            "uri": file_uri(skill.name, path),
            "name": path.rpartition("/")[2],
            "mimeType": DIRECTORY if is_folder else media_type(path),
        }
        for path, is_folder in page
    ]
    result: dict[str, Any] = {"resultType": "complete", "resources": skill_md}
    return result if following is None else {**result, "nextCursor": following}


def _served(view: View) -> list[Skill]:
    """Return the skills that can be served, in the catalogue's order."""
    return [skill for skill in view.skills.values() if is_served(skill)]


def _target(view: View, uri: str) -> tuple[Skill, str]:
    """Return the skill and the path in it that a URI names."""
    target = parse_uri(uri)
    skill = view.skills.get(target[0]) if target is not None else None
    if target is None or skill is None or not is_served(skill):
        raise NotServedError(f"no skill is served at {uri}")
    return skill, target[1]


def _page(items: Sequence[_Item], cursor: str | None) -> tuple[Sequence[_Item], str | None]:
    """Return one page of ``items`` and the cursor of the next, if there is one."""
    start = 0
    if cursor is not None:
        try:
            start = int(cursor)
        except ValueError as error:
            raise NotServedError("this cursor does not come from this server") from error
        if not 0 < start <= len(items):
            raise NotServedError("this cursor is no longer valid; list again from the start")
    end = start + PAGE
    following = str(end) if end < len(items) else None
    return items[start:end], following


def _cacheable(result: dict[str, Any], following: str | None) -> dict[str, Any]:
    """Return a result with the cache fields of revision 2026-07-28."""
    full = {"resultType": "complete", **result, "ttlMs": TTL_MS, "cacheScope": "private"}
    return full if following is None else {**full, "nextCursor": following}
