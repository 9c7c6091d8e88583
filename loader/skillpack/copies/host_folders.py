"""The folders in which hosts look for skills."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from skillpack.exceptions import RootError
from skillscript.faults import sentences
from sturdy.near_names import did_you_mean

USER, PROJECT = "user", "project"
# Below the home folder (of a user's skills) and below the working folder (of a project's).
_FOLDERS = {
    "claude": ".claude/skills",
    "codex": ".agents/skills",
    "agents": ".agents/skills",
    "gemini": ".gemini/skills",
}
HOSTS = tuple(_FOLDERS)


class HostFolder(NamedTuple):
    """A folder of skills.

    Attributes:
        folder: Where it is.
        hosts: Those of the requested hosts that look there; empty for a folder given by its path.
        scope: ``user`` or ``project``; "" for a folder given by its path.
    """

    folder: Path
    hosts: tuple[str, ...] = ()
    scope: str = ""

    def __str__(self) -> str:
        """Return the folder, and whose it is."""
        return f"{self.folder} ({', '.join(self.hosts)}; {self.scope})" if self.hosts else str(self.folder)


def host_folders(wanted: tuple[str, ...], scopes: tuple[str, ...]) -> list[HostFolder]:
    """Return the folders of hosts, each once, also if several hosts share it or one is a link to another.

    Args:
        wanted: Names of hosts, or paths of folders; all known hosts if empty.
        scopes: ``user``, ``project`` or both; a folder given by its path has none.

    Raises:
        RootError: If a name is neither a host nor a folder; the message gives all such names.
    """
    unknown = [name for name in wanted if name not in _FOLDERS and not _is_path(name)]
    if unknown:
        raise RootError(sentences([*map(_not_a_host, unknown)]))
    found: dict[str, HostFolder] = {}
    for name in dict.fromkeys(wanted or HOSTS):
        for scope in scopes if name in _FOLDERS else ("",):
            folder = _place(name, scope)
            key = os.path.realpath(folder)
            known = found.get(key, HostFolder(folder, (), scope))
            hosts = (*known.hosts, name) if name in _FOLDERS else known.hosts
            found[key] = known._replace(hosts=tuple(dict.fromkeys(hosts)))
    return list(found.values())


def _place(name: str, scope: str) -> Path:
    """Return the folder of a host, or the one that a path names, as an absolute path."""
    if name not in _FOLDERS:
        if (expanded := os.path.expanduser(name)).startswith("~"):  # noqa: PTH111 - it raises no error
            raise RootError(f"{name!r}: no such user is known; write ./{name} to create a folder")
        return Path(os.path.abspath(expanded))  # noqa: PTH100 - a link stays a link
    if scope == PROJECT:
        return Path.cwd() / _FOLDERS[name]
    configured = os.environ.get("CLAUDE_CONFIG_DIR") if name == "claude" else None
    if configured:  # where Claude Code keeps what is otherwise in ~/.claude
        return Path(configured).absolute() / "skills"
    home = Path(os.path.expanduser("~") if os.environ.get("HOME") != "" else "")  # noqa: PTH111 - "~" without a home
    if not home.is_absolute():
        raise RootError("no home folder is known: set HOME to an absolute path, or choose --project or a folder")
    return home / _FOLDERS[name]


def _is_path(name: str) -> bool:
    """Return whether a name can only mean a folder."""
    is_there = name != "" and os.path.isdir(name)  # noqa: PTH112 - it raises no error for a long name
    return is_there or name.startswith(("~", ".")) or "/" in name or os.sep in name


def _not_a_host(name: str) -> str:
    hosts = ", ".join(HOSTS)
    hint = did_you_mean(name, HOSTS)
    return f"{name!r} is neither a host ({hosts}) nor a folder{hint}; write ./{name or 'NAME'} to create a folder"
