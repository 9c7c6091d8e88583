"""Waiting in tests. This is the only module of the tests that reads a clock, and only so that nothing waits for ever.

No test may pass or fail by how long something took: machines differ and are shared. What must be fast is counted
(imports, files, calls), compared with itself in ``tests/bench``, or would hang for ever if it were wrong; then
``WATCHDOG_S`` here or ``faulthandler_timeout`` in ``pyproject.toml`` ends the test.
"""

import time
from pathlib import Path

WATCHDOG_S = 300.0


def eventually(condition, seconds=WATCHDOG_S):
    """Return whether ``condition()`` becomes true; give up after ``seconds``, which no healthy machine needs."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return bool(condition())


def is_alive(pid):
    """Return whether a process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def gone(pid):
    """Return whether a process ends."""
    return eventually(lambda: not is_alive(pid))
