"""End child processes with all that they started, also when their parent was killed."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

LIFELINE = "SKILLSCRIPT_LIFELINE"
"""Variable: number and inode of a pipe's reading end; a program that gets it ends with the pipe."""
_PR_SET_PDEATHSIG = 1


def kill_group(leader: int) -> None:
    """Kill the process with the number ``leader`` and everything in the group that it leads."""
    with suppress(ProcessLookupError, PermissionError):  # gone already; zombies only (macOS)
        if sys.platform == "win32":
            os.kill(leader, signal.SIGTERM)  # there it ends the process at once
        else:
            os.killpg(leader, signal.SIGKILL)


def end(process: subprocess.Popen[bytes], *, group: bool = True) -> None:
    """Kill ``process``, if it still runs, and leave no zombie.

    Args:
        process: The process.
        group: Whether it leads a group (``start_new_session``), all of which is killed, also after it ended itself.
    """
    if group and sys.platform != "win32":
        kill_group(process.pid)
    else:
        process.kill()
    process.wait()


def ending_with_parent() -> Callable[[], object]:
    """Return a function by which a new child process asks to be killed when the thread that started it ends.

    Call it in the child, before its program starts (``preexec_fn``). Linux sends the signal, also after ``kill -9`` of
    the parent; elsewhere the function does nothing.
    """
    if sys.platform != "linux":
        return lambda: None
    import ctypes

    prctl = ctypes.CDLL(None).prctl  # loaded here: between fork and exec nothing must be imported
    return lambda: prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def end_with_pipe(reading: int) -> None:
    """Have this process end by SIGIO when the other end of a pipe closes, even while it computes in C++.

    Where the system cannot do that, nothing happens.
    """
    with suppress(ImportError, AttributeError, OSError):
        import fcntl

        fcntl.fcntl(reading, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(reading, fcntl.F_SETFL, fcntl.fcntl(reading, fcntl.F_GETFL) | fcntl.FASYNC)
