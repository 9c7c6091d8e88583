"""What tests run instead of layouts: small functions ``(params, folder)`` that succeed, fail or hang."""
# ruff: noqa: ARG001 - the functions of jobs have one signature

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from layoutkit.errors import FileError, GeometryError


def square(params, folder):
    """Return the square, and leave it and the inputs in files."""
    (folder / "more").mkdir()
    (folder / "more" / "square.txt").write_text(str(params["n"] ** 2))
    return {"square": params["n"] ** 2, "read": sorted(path.name for path in folder.glob("*.in"))}


def refuse(params, folder):
    """Fail as the engine does."""
    raise GeometryError("it cannot be drawn", details={"n": params.get("n")})


def find_the_disk_full(params, folder):
    """Fail as the engine does on a full disk."""
    raise FileError("cannot write") from OSError(errno.ENOSPC, "No space left on device")


def divide(params, folder):
    """Fail as a program with a fault does."""
    return 1 / params["n"]


def crash(params, folder):
    """End without an answer."""
    print("last words", flush=True)
    os.kill(os.getpid(), signal.SIGSEGV)


def ask_for_memory(params, folder):
    """Ask for much memory at once."""
    return len(bytearray(params["mb"] * 1_000_000))


def fill_memory_of_children(params, folder):
    """Have two processes hold half of the memory each; the limit is of all of them together."""
    program = f"import time; held = [bytearray(10_000_000) for _ in range({params['mb']} // 20)]; time.sleep(600)"
    return [other.wait() for other in [subprocess.Popen([sys.executable, "-c", program]) for _ in range(2)]]


def wait(params, folder):
    """Wait for ever, with a process of one's own, and say which they are."""
    other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    with Path(params["pids"]).open("a") as file:
        file.write(f"{os.getpid()} {other.pid}\n")
    time.sleep(600)


def write_much(params, folder):
    """Leave a large file."""
    (folder / "large.bin").write_bytes(bytes(params["mb"] * 1_000_000))


def mark(params, folder):
    """Leave a line in a file for each time this is run, then do what ``then`` says, once ``wait_for`` exists."""
    with Path(params["log"]).open("a") as file:
        file.write(f"{params['n']} {os.getpid()}\n")
    while params.get("wait_for") and not Path(params["wait_for"]).exists():
        time.sleep(0.02)
    return square(params, folder)
