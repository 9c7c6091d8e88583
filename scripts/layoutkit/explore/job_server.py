"""A warm process that runs one job after the other, each in a forked child of its own: ``python -m`` this module.

::

    engine or worker of a cluster  --orders-->  this process  --fork-->  child: one job, within its limits
                                   <-answers--    waits, measures, ends it

This process has imported what the jobs need, so a job begins within milliseconds. If a child crashes or exceeds its
time or memory, the answer says so. When the input closes, because the client ended or was killed, this process ends the
child with all its processes, and itself.
"""

from __future__ import annotations

import contextlib
import errno
import importlib
import json
import os
import select
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from layoutkit.errors import LayoutkitError
from layoutkit.explore.jobs import CRASHED, DONE, FAILED, MEMORY_LIMIT, TIME_LIMIT
from sturdy.child_process import ending_with_parent, kill_group

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import IO

POLL_S = 0.05
"""How often memory is measured."""
_TALK_BYTES = 2000
_MB = 1_000_000
_OF_MACHINE = {
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EIO,
    errno.EROFS,
    errno.EACCES,
    errno.EMFILE,
    errno.ENFILE,
    errno.ENOMEM,
}


def main() -> None:
    """Answer each order on standard input with a line on standard output."""
    import resource  # noqa: F401 - so that no child has to

    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a module prints as it is imported is no answer
    for line in iter(sys.stdin.buffer.readline, b""):
        order = json.loads(line)
        _prepare(order["job"])
        print(json.dumps(_run(order)), file=answers, flush=True)


def _prepare(job: Mapping[str, Any]) -> None:
    """Import the module of the job's function and call its ``prepare``. If that fails, the job itself reports why."""
    with contextlib.suppress(Exception):
        prepare = getattr(importlib.import_module(job["function"].partition(":")[0]), "prepare", None)
        if prepare is not None:
            prepare(job["params"])


def _run(order: Mapping[str, Any]) -> dict[str, Any]:
    """Return what came of one job, as fields of an outcome."""
    begun = time.monotonic()
    with tempfile.TemporaryFile() as talk:
        reader, writer = os.pipe()
        child = os.fork()
        if not child:
            os.close(reader)
            _work(order, writer, talk)
        os.close(writer)
        with contextlib.suppress(OSError):  # the child does the same; whoever is first
            os.setpgid(child, child)
        try:
            told, ended_by, peak = _watched(child, reader, order["limits"])
        finally:
            os.close(reader)
            kill_group(child)
        _, status, usage = os.wait4(child, 0)
        peak = max(peak, usage.ru_maxrss * 1024)
        figures = {"seconds": time.monotonic() - begun, "cpu_s": usage.ru_utime + usage.ru_stime, "peak_mb": peak / _MB}
        talk.seek(max(0, talk.seek(0, os.SEEK_END) - _TALK_BYTES))
        last_words = talk.read().decode("utf-8", "replace")
    answer = _judged(told, ended_by, status, order["limits"], last_words)
    return {**answer, **{name: round(value, 3) for name, value in figures.items()}}


def _judged(told: bytes, ended_by: str, status: int, limits: Mapping[str, Any], last_words: str) -> dict[str, Any]:
    if ended_by == TIME_LIMIT:
        return _fault(TIME_LIMIT, "TIMEOUT", f"not finished after {limits['seconds']:g} s")
    if ended_by == MEMORY_LIMIT:
        return _fault(MEMORY_LIMIT, "INTERNAL_ERROR", f"its processes held more than {limits['memory_mb']} MB")
    with contextlib.suppress(ValueError):
        answer: dict[str, Any] = json.loads(told)
        return answer
    how = signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else f"exit code {status >> 8}"
    text = f"the process ended with {how} before it answered"
    return _fault(CRASHED, "INTERNAL_ERROR", text, {"ended_with": how, "output": last_words})


def _watched(child: int, reader: int, limits: Mapping[str, Any]) -> tuple[bytes, str, int]:
    """Return what the child said, the limit that ended it or "", and the most memory its processes held. [bytes]"""
    deadline, said, peak = time.monotonic() + limits["seconds"], b"", 0
    while True:
        left = deadline - time.monotonic()
        ready, _, _ = select.select([reader, 0], [], [], max(0.0, min(POLL_S, left)))
        if reader in ready:
            piece = os.read(reader, 1 << 20)
            if not piece:
                return said, "", peak
            said += piece
            continue
        if 0 in ready:  # there is one order at a time: the input has closed
            kill_group(child)
            os._exit(1)
        peak = max(peak, _memory(child))
        if peak > limits["memory_mb"] * _MB:
            return said, MEMORY_LIMIT, peak
        if left <= 0:
            return said, TIME_LIMIT, peak


def _memory(process: int) -> int:
    """Return the memory that a process and those it started hold; 0 where the system does not tell. [bytes]"""
    try:
        pages = int(Path(f"/proc/{process}/statm").read_text("ascii").split()[1])
        children = Path(f"/proc/{process}/task/{process}/children").read_text("ascii").split()
    except (OSError, IndexError, ValueError):  # ended meanwhile, or no Linux
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE") + sum(_memory(int(each)) for each in children)


def _work(order: Mapping[str, Any], writer: int, talk: IO[bytes]) -> NoReturn:
    """Do the job in the child and end it."""
    try:
        _confine(order["limits"], talk)
        answer = _called(order["job"], Path(order["folder"]))
        _send(writer, json.dumps(answer, allow_nan=False))
    except MemoryError:
        text = f"a process of it tried to allocate more than {order['limits']['memory_mb']} MB"
        _send(writer, json.dumps(_fault(MEMORY_LIMIT, "INTERNAL_ERROR", text)))
    except Exception as error:  # noqa: BLE001 - the outermost boundary of a job
        text = f"{type(error).__name__}: {error}"[:_TALK_BYTES]
        status = CRASHED if _is_of_machine(error) else FAILED
        _send(writer, json.dumps(_fault(status, "INTERNAL_ERROR", text)))
    finally:
        os._exit(0)


def _send(writer: int, text: str) -> None:
    with os.fdopen(writer, "wb") as pipe:
        pipe.write(text.encode())


def _confine(limits: Mapping[str, Any], talk: IO[bytes]) -> None:
    import resource

    with contextlib.suppress(OSError):
        os.setpgid(0, 0)
    ending_with_parent()()
    most = limits["memory_mb"] * _MB
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    for stream in (1, 2):
        os.dup2(talk.fileno(), stream)


def _called(job: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return the answer of the job's function, or why it refused."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in job["inputs"].items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode("utf-8"))
    module, _, name = job["function"].partition(":")
    try:
        return {"status": DONE, "answer": getattr(importlib.import_module(module), name)(job["params"], folder)}
    except LayoutkitError as error:
        status = CRASHED if _is_of_machine(error) else FAILED
        message = error.message.replace(f"{folder}{os.sep}", "")  # the folder is gone when the message is read
        return _fault(status, error.code, message, error.details)


def _is_of_machine(error: BaseException | None) -> bool:
    """Return whether an error comes from a full disk or the like: another run may do the same job."""
    while error is not None and not (isinstance(error, OSError) and error.errno in _OF_MACHINE):
        error = error.__cause__
    return error is not None


def _fault(status: str, code: str, message: str, details: Mapping[str, Any] | None = None) -> dict[str, Any]:
    return {"status": status, "error": {"code": code, "message": message, "details": details}}


if __name__ == "__main__":
    main()
