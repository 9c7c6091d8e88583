"""The skills and tools that a server offers; files that changed are read again."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from skillpack.execution.limits import CallLimits, program_suffixes
from skillpack.execution.runner import DEFAULT_TIMEOUT_S, Runner
from skillpack.execution.worker_pool import WorkerPool
from skillpack.hosts.work_files import WorkFiles
from skillpack.registry.known_tools import KnownTools
from skillpack.skills.loader import SkillLoader

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from skillpack.registry.declaration import Tools
    from skillpack.skills.skill_md import Skill

FRESH_SECONDS = 2.0
MAX_UPLOAD_BYTES = 4 << 20
PROGRAMS = (".py", ".pyc", ".pyd", ".pth", ".so", ".dll", ".dylib", ".exe", ".sh", ".bat", ".cmd", ".ps1")
IDLE_SECONDS = 600.0  # a server keeps its tools' processes between the turns of a conversation


@dataclass(frozen=True, eq=False)
class View:
    """The skills and tools at one moment.

    Attributes:
        loader: Serves the skills' text.
        tools: The tools they declare.
        runner: Calls them.
        toolsets: The toolsets whose tools an MCP server lists and calls; none means every tool.
    """

    loader: SkillLoader
    tools: Tools
    runner: Runner
    toolsets: tuple[str, ...] = ()

    @property
    def skills(self) -> Mapping[str, Skill]:
        """The usable skills by name."""
        return self.loader.skills


class Pack:
    """The skills below some folders. New, changed and removed skills take effect without a restart.

    Args:
        roots: Folders that hold skills, the first having precedence.
        timeout: Longest duration of a call. [s]
        max_workers: Most tool processes at one time.
        limits: Which paths and programs a call may name. Default: any.
        files: The files that tools work on. Default: those of the folders that calls use.
        toolsets: The toolsets whose tools an MCP server lists and calls. Default: every tool.
    """

    max_upload = MAX_UPLOAD_BYTES
    """Longest file that a client can upload. [bytes]"""

    def __init__(
        self,
        roots: Sequence[str | os.PathLike[str]],
        *,
        timeout: float = DEFAULT_TIMEOUT_S,
        max_workers: int | None = None,
        limits: CallLimits | None = None,
        files: WorkFiles | None = None,
        toolsets: Sequence[str] = (),
    ) -> None:
        self.roots = tuple(roots)
        self.timeout = timeout
        self.limits = limits or CallLimits()
        self.files = files or WorkFiles()
        self.toolsets = tuple(toolsets)
        self._loader: SkillLoader | None = None
        self._known_tools = KnownTools()
        self._pool = WorkerPool(max_workers=max_workers, idle_seconds=IDLE_SECONDS)
        self._lock = threading.Lock()
        self._view: View | None = None
        self._seen = 0.0

    def __enter__(self) -> Pack:  # noqa: PYI034 - typing.Self needs Python 3.11
        """Return the pack itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    @property
    def max_workers(self) -> int:
        """Most tool processes at one time."""
        return self._pool.max_workers

    def view(self) -> View:
        """Return the current view, at most ``FRESH_SECONDS`` old. It reads files: call it from a thread."""
        with self._lock:
            if self._view is None or time.monotonic() - self._seen > FRESH_SECONDS:
                if self._loader is None:
                    self._loader = SkillLoader(self.roots)
                else:
                    self._loader.reload()
                tools = self._known_tools.find(self._loader.declaring)
                runner = Runner(tools, timeout=self.timeout, pool=self._pool, limits=self.limits, rescan=False)
                self._view = View(self._loader, tools, runner, self.toolsets)
                self._seen = time.monotonic()
            return self._view

    def take_file(self, path: str, content: bytes, *, replace: bool) -> bool:
        """Write a file that a client uploads; return whether it is new.

        Unless calls may name programs, files that a tool or Python would run are refused, and files in a folder of
        skills: a new ``skill.yaml`` would make a program of any file.

        Raises:
            FileRefusedError: As ``WorkFiles.write``.
        """
        programs: tuple[str, ...] = ()
        closed: tuple[str, ...] = ()
        if not self.limits.programs:
            view = self.view()
            programs = (*PROGRAMS, *program_suffixes(view.tools.by_id.values()))
            closed = (*(os.fspath(root) for root in self.roots), *(skill.dir for skill in view.skills.values()))
        return self.files.write(path, content, replace=replace, programs=programs, closed=closed)

    def close(self) -> None:
        """End the tools' processes: idle ones now, busy ones after their calls."""
        self._pool.close()


def pack_version() -> str:
    """Return the version of the installed distribution."""
    try:
        return version("analog-layout-skills")
    except PackageNotFoundError:
        return "0"
