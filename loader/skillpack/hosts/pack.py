"""The skills and tools that a server offers; of the files of their declarations, those that changed are read again."""

# ruff: noqa: PTH116, PTH118, PTH120, PTH208

from __future__ import annotations

import contextlib
import os
import threading
import time
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, NamedTuple

from skillpack.execution.limits import CallLimits, program_suffixes
from skillpack.execution.runner import DEFAULT_TIMEOUT_S, Runner
from skillpack.execution.worker_pool import WorkerPool
from skillpack.hosts.work_files import WorkFiles
from skillpack.registry.declaration import find_tools, read_tools
from skillpack.skills.loader import SkillLoader
from sturdy.atomic_files import file_state

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from skillpack.registry.declaration import ToolDeclaration, ToolFault, Tools
    from skillpack.skills.skill_md import Skill
    from sturdy.atomic_files import FileState


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
                runner = Runner(tools, timeout=self.timeout, pool=self._pool, limits=self.limits)
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


SETTLED_SECONDS = 2.0  # a file that changed since then may change again at the same time stamp
_FOLDERS = ("", "scripts", "schemas")
_PATHS = ("script", "worker", "input_schema", "output_schema")
_State = tuple[tuple[str, int, int, int], ...]


class _Known(NamedTuple):
    """What was read of a skill, and the state of the files it was read from."""

    state: _State
    others: tuple[str, ...]
    tools: list[ToolDeclaration]
    faults: list[ToolFault]


class KnownTools:
    """The tools found last time; a skill is read again when one of its files has changed."""

    def __init__(self) -> None:
        self._known: dict[str, _Known] = {}

    def find(self, skills: Iterable[Skill]) -> Tools:
        """Return what ``find_tools`` returns."""
        before, self._known = self._known, {}
        return find_tools(skills, lambda skill: self._read(skill, before.get(f"{skill.dir}\0{skill.name}")))

    def _read(self, skill: Skill, known: _Known | None) -> tuple[list[ToolDeclaration], list[ToolFault]]:
        """Return what ``read_tools`` returns."""
        if known is None or _state(skill, known.others) != known.state:
            tools, faults = read_tools(skill)
            others = _others(skill, tools)
            known = _Known(_state(skill, others), others, tools, faults)
        if not known.faults and _is_settled(known.state):  # what a faulty declaration depends on is not known
            self._known[f"{skill.dir}\0{skill.name}"] = known
        return known.tools, known.faults


def _others(skill: Skill, tools: Iterable[ToolDeclaration]) -> tuple[str, ...]:
    """Return the files of the tools' declarations that are outside of ``_FOLDERS``."""
    found = {file for tool in tools for file in tool.shared_files}
    for tool in tools:
        named = [tool.entry[key] for key in _PATHS if isinstance(tool.entry.get(key), str)]
        found.update(os.path.join(skill.dir, name) for name in named if os.path.dirname(name) not in _FOLDERS)
    return tuple(sorted(found))


def _state(skill: Skill, others: Iterable[str]) -> _State:
    """Return the state of each file in the folders of a skill that declare its tools, and of these others."""
    paths = list(others)
    for name in _FOLDERS:
        with contextlib.suppress(OSError):
            folder = f"{skill.dir}/{name}"
            # Python itself changes the folder of its compiled files
            paths += [f"{folder}/{file}" for file in os.listdir(folder) if file != "__pycache__"]
    return tuple((path, *_change(path)) for path in sorted(paths))


def _change(path: str) -> FileState:
    """Return the state of the file that a path leads to; zeros if none."""
    try:
        return file_state(os.stat(path))
    except OSError:
        return 0, 0, 0


def _is_settled(state: _State) -> bool:
    """Return whether the last change is so old that a further one would have a later time stamp."""
    return max((changed for _, changed, _, _ in state), default=0) < time.time_ns() - SETTLED_SECONDS * 1e9
