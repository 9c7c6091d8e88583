"""Skills as MCP resources, and the Skills extension of MCP (SEP-2640): skills/list, skills/get, directory reads."""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, Any, TypeVar

from skillpack.exceptions import ResourceError
from skillpack.hosts.mcp import skill_files, work_resources
from skillpack.hosts.mcp.work_resources import NotServedError
from skillpack.hosts.media_types import media_type
from skillpack.hosts.work_files import WorkFile
from skillpack.skills.skill_md import SKILL_FILE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillpack.hosts.pack import View
    from skillpack.hosts.work_files import WorkFiles
    from skillpack.skills.skill_md import Skill

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
    resources = [work_resources.resource(item) if isinstance(item, WorkFile) else _resource(item) for item in page]
    return {**_cacheable({"resources": resources}, following), "ttlMs": 0}


def _resource(skill: Skill) -> dict[str, Any]:
    return {
        "uri": skill_files.file_uri(skill.name, SKILL_FILE),
        "name": skill.name,
        "description": skill.summary,
        "mimeType": "text/markdown",
    }


def list_templates() -> dict[str, Any]:
    """Return the URI templates of the files of skills and of those that tools work on."""
    template = {
        "uriTemplate": f"{skill_files.SCHEME}{{skill}}/{{+path}}",
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
        data = skill_files.content(skill, path)
    except ResourceError as error:
        raise NotServedError(f"{uri}: {error}") from error
    contents = {"uri": uri, "mimeType": media_type(path, data)}
    try:
        contents["text"] = data.decode("utf-8")
    except UnicodeDecodeError:
        contents["blob"] = base64.b64encode(data).decode("ascii")
    return _cacheable({"contents": [contents]}, None)


def list_skills(view: View, cursor: str | None) -> dict[str, Any]:
    """Return the result of ``skills/list``: complete manifests; a skill that cannot be served is left out."""
    page, following = _page(_served(view), cursor)
    entries = []
    for skill in page:
        try:
            entries.append(skill_files.entry(skill))
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
        return _cacheable({"skill": skill_files.entry(skill)}, None)
    except ResourceError as error:
        raise NotServedError(f"the skill at {uri} cannot be served: {error}") from error


def read_directory(view: View, uri: str, cursor: str | None) -> dict[str, Any]:
    """Return the result of ``resources/directory/read``: the direct children of a folder of a skill.

    Raises:
        NotServedError: If there is no such folder.
    """
    skill, folder = _target(view, uri)
    children = skill_files.children(skill, folder)
    if children is None:
        raise NotServedError(f"{uri} is not a directory resource")
    page, following = _page(children, cursor)
    resources = [
        {
            "uri": skill_files.file_uri(skill.name, path),
            "name": path.rpartition("/")[2],
            "mimeType": skill_files.DIRECTORY if is_folder else media_type(path),
        }
        for path, is_folder in page
    ]
    result: dict[str, Any] = {"resultType": "complete", "resources": resources}
    return result if following is None else {**result, "nextCursor": following}


def _served(view: View) -> list[Skill]:
    """Return the skills that can be served, in the catalogue's order."""
    return [skill for skill in view.skills.values() if skill_files.is_served(skill)]


def _target(view: View, uri: str) -> tuple[Skill, str]:
    """Return the skill and the path in it that a URI names."""
    target = skill_files.parse_uri(uri)
    skill = view.skills.get(target[0]) if target is not None else None
    if target is None or skill is None or not skill_files.is_served(skill):
        raise NotServedError(f"no skill is served at {uri}")
    return skill, target[1]


def _page(items: Sequence[_Item], cursor: str | None) -> tuple[Sequence[_Item], str | None]:
    """Return one page of ``items`` and the cursor of the next, if there is one."""
    start = 0
    if cursor is not None:
        try:
            start = int(base64.b64decode(cursor.encode(), validate=True))
        except (ValueError, binascii.Error) as error:
            raise NotServedError("this cursor does not come from this server") from error
        if not 0 < start <= len(items):
            raise NotServedError("this cursor is no longer valid; list again from the start")
    end = start + PAGE
    following = base64.b64encode(str(end).encode()).decode() if end < len(items) else None
    return items[start:end], following


def _cacheable(result: dict[str, Any], following: str | None) -> dict[str, Any]:
    """Return a result with the cache fields of revision 2026-07-28."""
    full = {"resultType": "complete", **result, "ttlMs": TTL_MS, "cacheScope": "private"}
    return full if following is None else {**full, "nextCursor": following}
