"""Layer 3: read one file of a skill, confined to the skill's folder."""

# Paths stay strings: a scan handles tens of thousands of them, and Path objects would cost as much as the parsing.
# ruff: noqa: PTH118

from __future__ import annotations

import ntpath
import os
from typing import TYPE_CHECKING, NamedTuple

from skillpack.exceptions import FileRefusedError, ResourceError
from skillpack.untrusted.file_access import inside, read_bounded

if TYPE_CHECKING:
    from skillpack.skills.skill_md import Skill

MAX_RESOURCE_BYTES = 1 << 20


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

        try:
            encoding, content = "utf-8", self.data.decode("utf-8")
            binary = "\x00" in content
        except UnicodeDecodeError:
            binary = True
        if binary:
            encoding, content = "base64", base64.b64encode(self.data).decode("ascii")
        return {
            "path": self.path,
            "size": len(self.data),
            "digest": self.digest,
            "encoding": encoding,
            "content": content,
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
