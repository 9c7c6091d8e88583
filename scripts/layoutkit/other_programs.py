"""Finds and runs programs that are not part of this package: KLayout's application, ngspice, Magic and KPEX.

A program runs in a folder of its own, without input, within a limit of time and of what it writes there. It never
outlives the call that started it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from layoutkit.errors import MissingProgramError, TimeLimitError, UnsupportedOperationError
from sturdy.child_process import end, ending_with_parent

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

LOG = "log"
"""File in the folder of a run that gets what the program says."""
MAX_BYTES = 4 << 30
_LOOK_S = 0.25


@dataclass(frozen=True)
class OtherProgram:
    """A program that a user installs.

    Attributes:
        name: Its command.
        need: Why it is needed, such as ``a rule deck is run by the KLayout application``.
        hint: How to get it.
        variable: Environment variable that may name it instead; "" for none.
    """

    name: str
    need: str
    hint: str
    variable: str = ""

    def path(self) -> str:
        """Return where the program is.

        Raises:
            MissingProgramError: If it is not installed; the message says how to get it.
        """
        named = os.environ.get(self.variable) if self.variable else None
        found = shutil.which(named or self.name)
        if found is None:
            why = (
                f"${self.variable} names '{named}', which is not a program"
                if named
                else f"{self.name} is not installed"
            )
            raise MissingProgramError(f"{self.need}, and {why}; {self.hint}", details={"program": self.name})
        return found


@dataclass(frozen=True)
class ProgramRun:
    """One run of a program.

    Attributes:
        command: The program and its arguments.
        folder: Where it runs; what it says goes into the file ``log`` there.
        timeout_s: Longest time. [s]
        subject: What messages call the run, such as ``a simulation``.
        environment: Variables beside those of this process.
        starts_others: Whether it may start further programs. It then leads a process group of its own, which is ended
            as a whole; else it stays in the group of this process, and ends with it.
        ends_itself: Whether it notices that this process was killed, and ends with all that it started; every other one
            is killed alone.
        max_bytes: Most that the files in its folder may take, its temporary files included.
    """

    command: Sequence[str]
    folder: Path
    timeout_s: float
    subject: str
    environment: Mapping[str, str] = field(default_factory=dict)
    starts_others: bool = True
    ends_itself: bool = False
    max_bytes: int = MAX_BYTES


def run_program(run: ProgramRun) -> int:
    """Return the exit status of a program; negative if a signal ended it.

    Raises:
        TimeLimitError: If the program took longer than allowed; it has ended.
        UnsupportedOperationError: If it wrote more than allowed; it has ended.
    """
    with (run.folder / LOG).open("wb") as stream:
        process = subprocess.Popen(
            run.command,
            cwd=run.folder,
            env={**os.environ, "TMPDIR": str(run.folder), **run.environment},
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=subprocess.STDOUT,
            start_new_session=run.starts_others,
            preexec_fn=None if run.ends_itself or os.name != "posix" else ending_with_parent(),  # noqa: PLW1509 - it makes one system call, and imports nothing
        )
        try:
            return _status(process, run)
        finally:
            end(process, group=run.starts_others)


def log_tail(folder: Path, most: int) -> str:
    """Return the last ``most`` bytes of what the program that ran in ``folder`` said."""
    with (folder / LOG).open("rb") as stream:
        stream.seek(max((folder / LOG).stat().st_size - most, 0))
        return stream.read().decode("utf-8", "replace")


def _status(process: subprocess.Popen[bytes], run: ProgramRun) -> int:
    end = time.monotonic() + run.timeout_s
    while True:
        left = max(0.0, end - time.monotonic())
        with suppress(subprocess.TimeoutExpired):
            status = process.wait(min(_LOOK_S, left))
            _check_size(run)
            return status
        _check_size(run)
        if time.monotonic() >= end:
            raise TimeLimitError(
                f"{run.subject} did not end within {run.timeout_s:g} s and was stopped; allow it more time with "
                "timeout_s",
                details={"timeout_s": run.timeout_s},
            )


def _check_size(run: ProgramRun) -> None:
    """Add up what the files take on the disk, without following links; a sparse file takes what it holds."""
    size = 0
    for place, _, names in os.walk(run.folder):
        for name in names:
            with suppress(OSError):  # it was removed meanwhile
                status = os.lstat(os.path.join(place, name))  # noqa: PTH118 - looked at four times a second
                size += min(status.st_size, 512 * getattr(status, "st_blocks", status.st_size))
    if size > run.max_bytes:
        raise UnsupportedOperationError(
            f"{run.subject} wrote more than {run.max_bytes} bytes and was stopped", details={"max_bytes": run.max_bytes}
        )
