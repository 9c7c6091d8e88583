"""The skills and tools that a server offers, and calls of them; of declarations, changed files are read again.

Several tools are called at a time: from threads, or from an event loop.
"""

# ruff: noqa: PTH116, PTH118, PTH120, PTH208

from __future__ import annotations

import contextlib
import math
import os
import threading
import time
from collections import deque
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from threading import Condition, Lock
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from skillpack.execution.limits import CallLimits, program_suffixes
from skillpack.execution.runner import DEFAULT_TIMEOUT_S, Call, Runner
from skillpack.execution.worker_pool import WorkerPool
from skillpack.hosts.work_files import WorkFiles
from skillpack.registry.declaration import find_tools, read_tools
from skillpack.skills.loader import SkillLoader
from skillscript.envelope import ErrorCode, SkillError, SkillResult
from sturdy.atomic_files import file_state
from sturdy.bounded_run import Cancellation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from anyio import CapacityLimiter

    from skillpack.registry.declaration import ToolDeclaration, ToolFault, Tools
    from skillpack.skills.skill_md import Skill
    from sturdy.atomic_files import FileState

FRESH_SECONDS = 2.0
MAX_UPLOAD_BYTES = 4 << 20
PROGRAMS = (".py", ".pyc", ".pyd", ".pth", ".so", ".dll", ".dylib", ".exe", ".sh", ".bat", ".cmd", ".ps1")
IDLE_SECONDS = 600.0  # a server keeps its tools' processes between the turns of a conversation
MAX_WAITING = 64
MAX_LINES = 20
MAX_LINE = 500
_Result = TypeVar("_Result")


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


class Pack(contextlib.AbstractContextManager["Pack"]):
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
        self.pool = WorkerPool(max_workers=max_workers, idle_seconds=IDLE_SECONDS)
        self._lock = threading.Lock()
        self._view: View | None = None
        self._seen = 0.0

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    @property
    def max_workers(self) -> int:
        """Most tool processes at one time."""
        return self.pool.max_workers

    def view(self) -> View:
        """Return the current view, at most ``FRESH_SECONDS`` old. It reads files: call it from a thread."""
        with self._lock:
            if self._view is None or time.monotonic() - self._seen > FRESH_SECONDS:
                if self._loader is None:
                    self._loader = SkillLoader(self.roots)
                else:
                    self._loader.reload()
                tools = self._known_tools.find(self._loader.declaring)
                runner = Runner(tools, timeout=self.timeout, pool=self.pool, limits=self.limits)
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
        self.pool.close()


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
            # the files of the declarations that are outside of ``_FOLDERS``
            found = {file for tool in tools for file in tool.shared_files}
            for tool in tools:
                named = [tool.entry[key] for key in _PATHS if isinstance(tool.entry.get(key), str)]
                found.update(os.path.join(skill.dir, name) for name in named if os.path.dirname(name) not in _FOLDERS)
            others = tuple(sorted(found))
            known = _Known(_state(skill, others), others, tools, faults)
        if not known.faults and _is_settled(known.state):  # what a faulty declaration depends on is not known
            self._known[f"{skill.dir}\0{skill.name}"] = known
        return known.tools, known.faults


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


@dataclass(frozen=True)
class Order:
    """One call to make.

    Attributes:
        tool_id: Which tool.
        params: Its parameters, as received.
        context: Context of the call, or None.
        timeout: Longest duration, including the wait for a free place. [s]
        output: Collects what the tool writes to stderr, or None.
    """

    tool_id: str
    params: Any
    context: Mapping[str, Any] | None = None
    timeout: float | None = None
    output: StderrLines | None = None


@dataclass(eq=False)
class Calls:
    """Makes calls, a limited number at a time; cancelling a call kills its tool.

    Attributes:
        max_running: Calls that run at one time.
        max_waiting: Calls that wait for a place; any further one is refused with SERVICE_UNAVAILABLE.
        running: Calls that run now.
        waiting: Calls that wait now.
    """

    max_running: int
    max_waiting: int = MAX_WAITING
    running: int = 0
    waiting: int = 0
    _changed: Condition = field(default_factory=Condition)

    async def make(self, runner: Runner, order: Order) -> Call:
        """Return the finished call, made in a thread. Only cancellation raises, after the tool was killed."""
        cancellation = Cancellation()
        return await in_thread(partial(self.make_here, runner, order, cancellation), cancellation)

    def make_here(self, runner: Runner, order: Order, cancellation: Cancellation) -> Call:
        """Return the finished call, made in this thread, which waits for a free place first."""
        limit = runner.timeout if order.timeout is None else order.timeout
        end = time.monotonic() + limit
        refusal = self._take_place(order.tool_id, limit, end, cancellation)
        if refusal is not None:
            return Call(SkillResult.failure(refusal))
        try:
            return runner.run(
                order.tool_id,
                order.params,
                context=order.context,
                timeout=end - time.monotonic() if limit > 0 else limit,
                on_stderr=None if order.output is None else order.output.feed,
                cancellation=cancellation,
            )
        finally:
            with self._changed:
                self.running -= 1
                self._changed.notify()

    def _take_place(self, tool_id: str, limit: float, end: float, cancellation: Cancellation) -> SkillError | None:
        """Take a place, or return why there is none; a cancelled call takes one, as its tool is not started."""
        with cancellation.calling(self._wake), self._changed:
            if self.running >= self.max_running and self.waiting >= self.max_waiting:
                text = f"busy: {self.running} calls run and {self.waiting} wait; try again later"
                return SkillError(ErrorCode.SERVICE_UNAVAILABLE, text)
            self.waiting += 1
            try:
                while self.running >= self.max_running and not cancellation.cancelled:
                    left = end - time.monotonic() if limit > 0 and math.isfinite(limit) else None
                    if left is not None and left <= 0:
                        text = f"no place was free for tool {tool_id} within {limit:g} s"
                        return SkillError(ErrorCode.TIMEOUT, text, {"timeout_s": limit})
                    self._changed.wait(left)
                self.running += 1
            finally:
                self.waiting -= 1
        return None

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()


async def in_thread(
    work: Callable[[], _Result], cancellation: Cancellation, threads: CapacityLimiter | None = None
) -> _Result:
    """Return what ``work`` returns, done in a thread; ``cancellation`` is cancelled with the caller, which then waits.

    ``work`` must not raise. It waits for a place among ``threads``, if these are given.
    """
    import anyio
    import anyio.lowlevel
    import anyio.to_thread

    async def cancel_with_caller() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            cancellation.cancel()

    async with anyio.create_task_group() as group:
        group.start_soon(cancel_with_caller)
        result = await anyio.to_thread.run_sync(work, limiter=threads or anyio.CapacityLimiter(1))
        group.cancel_scope.cancel()
    await anyio.lowlevel.checkpoint_if_cancelled()
    return result


class StderrLines:
    """The last lines a tool wrote to stderr; one thread adds them, another takes them."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._lines: deque[str] = deque(maxlen=MAX_LINES)
        self._unfinished = b""

    def feed(self, chunk: bytes) -> None:
        """Add a piece of output."""
        with self._lock:
            *whole, unfinished = (self._unfinished + chunk).split(b"\n")
            self._unfinished = unfinished[-MAX_LINE:]
            texts = (line.decode("utf-8", "replace").strip()[:MAX_LINE] for line in whole[-MAX_LINES:])
            self._lines.extend(text for text in texts if text)

    def take(self) -> list[str]:
        """Return the complete lines since the last call, at most ``MAX_LINES``."""
        with self._lock:
            lines = list(self._lines)
            self._lines.clear()
            return lines
