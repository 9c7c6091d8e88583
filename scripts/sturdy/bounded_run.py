"""Run a program that may hang, flood its output, ignore signals or leave children behind."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
import uuid
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from sturdy.child_process import LIFELINE, end, kill_group

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

MAX_STDOUT_BYTES = 32 << 20
STDERR_TAIL_BYTES = 1 << 16
_MARK = "SKILLPACK_CALL"
_DRAIN_SECONDS = 2.0
_BLANK_SCANS = 2  # a process that is about to start a program shows no environment for a moment


@dataclass(frozen=True)
class RunOutcome:
    """How a program ended.

    Attributes:
        returncode: Exit code, or minus the signal that ended it.
        stdout: What it wrote, complete unless ``flooded``.
        stderr: The last of what it wrote there, at most ``STDERR_TAIL_BYTES``.
        timed_out: Whether it was killed because its time was over.
        flooded: Whether it was killed because it wrote more than was allowed.
    """

    returncode: int
    stdout: bytes
    stderr: bytes
    timed_out: bool = False
    flooded: bool = False


class Cancellation:
    """A request to stop, from any thread; it cannot be withdrawn."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._callbacks: list[Callable[[], None]] = []
        self._cancelled = False

    @property
    def cancelled(self) -> bool:
        """Whether ``cancel`` has been called."""
        return self._cancelled

    def cancel(self) -> None:
        """Stop the work that runs with this object, and any that would start later."""
        with self._lock:
            self._cancelled = True
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()

    @contextlib.contextmanager
    def calling(self, callback: Callable[[], None]) -> Iterator[None]:
        """Within the block, have ``cancel`` call ``callback`` in its own thread; at once if it was called before."""
        with self._lock:
            late = self._cancelled
            if not late:
                self._callbacks.append(callback)
        if late:
            callback()
        try:
            yield
        finally:
            with self._lock, contextlib.suppress(ValueError):  # called already
                self._callbacks.remove(callback)


def run_bounded(
    command: Sequence[str],
    stdin: bytes,
    timeout: float,
    *,
    environment: Mapping[str, str] | None = None,
    on_stderr: Callable[[bytes], None] | None = None,
    cancellation: Cancellation | None = None,
) -> RunOutcome:
    """Return how ``command`` ended; nothing it started outlives this call.

    The program leads a process group of its own, which is killed (SIGKILL) when the time is over, when the
    output is too long, and when the program has ended but left children. Where /proc shows environments,
    children that moved to another group or session are found by a mark in theirs, unless they removed it.

    Args:
        command: Program and arguments.
        stdin: What it reads.
        timeout: Longest duration. [s]
        environment: Its environment variables; default: those of this process.
        on_stderr: Called with each piece of stderr as it arrives, from another thread.
        cancellation: Kills it when cancelled.

    Raises:
        OSError: If the program cannot be started.
    """
    mark = uuid.uuid4().hex
    timed_out = False
    with contextlib.ExitStack() as ending:  # also when the caller is interrupted
        ending.callback(kill_marked, mark)
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=marked(os.environ if environment is None else environment, mark),
            start_new_session=True,
            **lifeline(),
        )
        ending.callback(end, process)
        pipes = _Pipes(process, stdin, MAX_STDOUT_BYTES, on_stderr)
        if cancellation is not None:
            ending.enter_context(cancellation.calling(lambda: kill_group(process.pid)))
        try:
            process.wait(timeout)
        except subprocess.TimeoutExpired:
            timed_out = True
    pipes.drained(_DRAIN_SECONDS)
    return RunOutcome(process.returncode, bytes(pipes.stdout), bytes(pipes.stderr), timed_out, pipes.flooded)


@lru_cache(maxsize=1)
def _lifeline(_process: int) -> int:
    """Return the reading end of a pipe that the system closes when this process ends; its other end is kept open."""
    reading, _ = os.pipe()
    return reading


def lifeline() -> dict[str, Any]:
    """Return the arguments of ``Popen`` by which a tool's supervisor ends when this process does, also if it is killed.

    The signal that Linux can send to children does not do: it follows the thread that started them.
    """
    return {"pass_fds": (_lifeline(os.getpid()),)} if os.name == "posix" else {}


def marked(environment: Mapping[str, str], mark: str) -> dict[str, str]:
    """Return ``environment`` with a mark by which the children of a call are found; a call inside a call has both."""
    ending = {}
    if os.name == "posix":
        pipe = _lifeline(os.getpid())
        ending = {LIFELINE: f"{pipe}:{os.fstat(pipe).st_ino}"}
    return {**environment, **ending, _MARK: f"{environment.get(_MARK, '')} {mark}"}


class _Pipes:
    """The three pipes of a process, served by a thread each so that none can block another."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        stdin: bytes,
        max_stdout: int,
        on_stderr: Callable[[bytes], None] | None,
    ) -> None:
        self.process = process
        self.max_stdout = max_stdout
        self.on_stderr = on_stderr
        self.stdout = bytearray()
        self.stderr = bytearray()
        self.flooded = False
        self._threads = [
            threading.Thread(target=work, args=arguments, daemon=True)
            for work, arguments in (
                (self._feed, (process.stdin, stdin)),
                (self._collect, (process.stdout, self._take_stdout)),
                (self._collect, (process.stderr, self._take_stderr)),
            )
        ]
        for thread in self._threads:
            thread.start()

    def drained(self, seconds: float) -> bool:
        """Return whether all pipes are at their end, waiting at most ``seconds``."""
        end = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(0.0, end - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)

    @staticmethod
    def _feed(pipe: IO[bytes], data: bytes) -> None:
        """Write the input; a program need not read it."""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError), pipe:
            pipe.write(data)

    @staticmethod
    def _collect(pipe: IO[bytes], take: Callable[[bytes], None]) -> None:
        """Read to the end, whatever happens to what is read."""
        with pipe:
            while chunk := os.read(pipe.fileno(), 1 << 16):
                take(chunk)

    def _take_stdout(self, chunk: bytes) -> None:
        """Keep a piece of stdout; kill a program that writes too much."""
        if self.flooded:
            return
        self.stdout += chunk
        if len(self.stdout) > self.max_stdout:
            self.flooded = True
            del self.stdout[self.max_stdout :]
            kill_group(self.process.pid)

    def _take_stderr(self, chunk: bytes) -> None:
        """Pass a piece of stderr on and keep the tail."""
        if self.on_stderr is not None:
            self.on_stderr(chunk)
        self.stderr += chunk
        del self.stderr[:-STDERR_TAIL_BYTES]


def kill_marked(mark: str) -> None:
    """Kill every process whose environment carries ``mark``, until none is left."""
    wanted = mark.encode()
    blank_scans = 0
    for _ in range(10):
        environments = {int(entry.name): environment_of(entry) for entry in Path("/proc").glob("[0-9]*")}
        found = [pid for pid, environment in environments.items() if wanted in environment]
        for pid in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        blank_scans = 0 if found else blank_scans + 1
        starting = any(not environments[pid] and _has_program(pid) for pid in environments)
        if not found and (not starting or blank_scans == _BLANK_SCANS):
            return
        time.sleep(0.01)


def environment_of(process: Path) -> bytes:
    """Return the environment a process was started with, or nothing when it cannot be read (yet)."""
    try:
        return (process / "environ").read_bytes()
    except OSError:
        return b""


def _has_program(pid: int) -> bool:
    """Return whether a process runs a program of ours to see; one that has ended, or the kernel's, runs none."""
    try:
        Path(f"/proc/{pid}/exe").readlink()
    except OSError:
        return False
    return True
