"""Has the code of this process been edited since it was loaded? A warm worker must not answer with stale code."""

from __future__ import annotations

import os
import sys
import time

_INSTALLED = (
    os.path.dirname(os.__file__) + os.sep,  # noqa: PTH120 - compared as text
    f"{os.sep}site-packages{os.sep}",
    f"{os.sep}dist-packages{os.sep}",
)


class LoadedSources:
    """The files of the modules this process has loaded, but for Python's own and installed packages."""

    def __init__(self) -> None:
        self._known: set[str] = set()  # installed ones too
        self._seen: dict[str, tuple[int, int] | None] = {}
        self.take_note(time.time_ns())

    def take_note(self, since: int) -> None:
        """Note the modules loaded by now; those not noted before were loaded after ``since`` [ns since 1970].

        A file written between its loading and now is one that has been edited.
        """
        now = time.time_ns()
        for module in list(sys.modules.values()):
            file = getattr(module, "__file__", None)
            if not isinstance(file, str) or file in self._known:
                continue
            self._known.add(file)
            if any(part in file for part in _INSTALLED):
                continue
            stamp = _stamp(file)
            self._seen[file] = None if stamp is not None and since <= stamp[0] <= now else stamp

    def edited(self) -> bool:
        """Return whether one of them has been edited or removed."""
        return any(stamp is None or stamp != _stamp(file) for file, stamp in self._seen.items())


def _stamp(file: str) -> tuple[int, int] | None:
    """Return time of change [ns] and size [bytes] of a file, None if it is not there."""
    try:
        status = os.stat(file)  # noqa: PTH116 - hundreds of files before each call
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size
