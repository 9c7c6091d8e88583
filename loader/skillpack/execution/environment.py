"""The environment variables of a tool's process: the basic ones and those its declaration names."""

from __future__ import annotations

import os
import re
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import TYPE_CHECKING

from skillscript.call_log import LOG_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

# What a program needs to start, find its libraries and write its files, and the pack's own settings.
BASIC = (
    "PATH",
    "HOME",
    "USER",
    "LANG",
    "LANGUAGE",
    "LC_*",
    "TZ",
    "TERM",
    "TMPDIR",
    "TEMP",
    "TMP",
    "PYTHON*",
    "VIRTUAL_ENV",
    "LD_LIBRARY_PATH",
    "DYLD_*",
    "NUMBA_*",
    "OMP_NUM_THREADS",
    "XDG_*",
    "SYSTEMROOT",
    "COMSPEC",
    "PATHEXT",
    "APPDATA",
    "LOCALAPPDATA",
    "USERPROFILE",
    "ANALOG_LAYOUT_*",
    "SKILLPACK_*",
)
_NEVER = frozenset({LOG_VARIABLE, "SKILLPACK_TOKEN"})  # the runner's own log; what opens the server
_SECRET = re.compile(r"TOKEN|KEY|SECRET|PASSWORD|CREDENTIAL", re.IGNORECASE)


def tool_environment(declared: Iterable[str], surrounding: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment of a tool's process.

    A basic variable whose name looks like a secret is passed on only if it is declared. Never passed on are the call
    log, since a tool that the runner calls writes no second record, and the token of the server itself.

    Args:
        declared: Names the tool declares; a name that ends in ``*`` means all that start so.
        surrounding: What to choose from; default: this process's environment.
    """
    everything = os.environ if surrounding is None else surrounding
    wanted = tuple(declared)
    return {name: value for name, value in everything.items() if _is_passed(name, wanted)}


@lru_cache(maxsize=4096)
def _is_passed(name: str, wanted: tuple[str, ...]) -> bool:
    """Return whether a tool that declares ``wanted`` gets the variable ``name``."""
    if name in _NEVER:
        return False
    return _named(name, wanted) or (_named(name, BASIC) and not _SECRET.search(name))


def _named(name: str, patterns: Iterable[str]) -> bool:
    """Return whether one of the patterns names ``name``."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)
