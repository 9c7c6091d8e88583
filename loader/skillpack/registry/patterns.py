"""Can a regular expression take for ever? Python's matcher tries every way to split a text that does not match.

``(a+)+`` needs twice the time for each further letter: a text of 40 would stop the process that checks it for hours.
"""

from __future__ import annotations

import re
import sys
from importlib import import_module
from typing import Any

_REPEATED_GROUP = re.compile(r"\)[*+{]")


def never_ends(pattern: str) -> bool:
    """Return whether ``pattern``, which compiles, repeats without bound what may be nothing but such a repetition.

    That is the usual form of a pattern whose time grows exponentially. Others, such as ``(a|a)*``, are not recognised.
    """
    if _REPEATED_GROUP.search(pattern) is None:
        return False
    parser: Any = import_module("re._parser" if sys.version_info >= (3, 11) else "sre_parse")
    return _has_nested(parser.parse(pattern))


def _has_nested(sequence: Any) -> bool:
    """Return whether one of the repetitions in a parsed sequence is of such a kind."""
    for item in sequence:
        if _is_unbounded(item) and _may_be_one_repetition(item[1][2]):
            return True
        if any(_has_nested(inner) for inner in _inner(item)):
            return True
    return False


def _may_be_one_repetition(sequence: Any) -> bool:
    """Return whether a sequence may consist of one unbounded repetition, the rest of it being empty."""
    least = sequence.getwidth()[0]
    for index, item in enumerate(sequence):
        others = least - sequence[index : index + 1].getwidth()[0]
        if others == 0 and (_is_unbounded(item) or any(map(_may_be_one_repetition, _inner(item)))):
            return True
    return False


def _is_unbounded(item: Any) -> bool:
    """Return whether a parsed item repeats something any number of times, and may give some of it back."""
    return str(item[0]) in ("MAX_REPEAT", "MIN_REPEAT") and str(item[1][1]) == "MAXREPEAT"


def _inner(item: Any) -> list[Any]:
    """Return the sequences directly inside a parsed item."""
    kind, content = str(item[0]), item[1]
    if kind == "BRANCH":
        return list(content[1])
    if kind in ("SUBPATTERN", "MAX_REPEAT", "MIN_REPEAT"):
        return [content[-1]]
    return [content[1]] if kind in ("ASSERT", "ASSERT_NOT") else []
