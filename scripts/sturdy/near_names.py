"""Words for messages: the name that was probably meant by an unknown one, and the first of many faults."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_LENGTH = 400  # characters of an unknown name that are compared
MAX_FAULTS = 20  # in a message
MIN_PART = 3  # characters of a part by which a longer name is found


def near_names(
    name: object, known: Iterable[object], most: int = 3, *, cutoff: float = 0.6, parts: bool = False
) -> list[str]:
    """Return the ``known`` names that ``name`` may have meant, the nearest first.

    Names are compared without differences of case, blanks, hyphens and underscores. Values that are not strings are
    ignored.

    Args:
        name: The unknown name.
        known: The names that exist.
        most: Names to return at most.
        cutoff: Least similarity, from 0 to 1; short names need a lower one.
        parts: Whether names that contain ``name`` follow those that are spelled like it.
    """
    from difflib import get_close_matches

    if not isinstance(name, str):
        return []
    folded: dict[str, list[str]] = {}
    for candidate in known:
        if isinstance(candidate, str):
            folded.setdefault(_folded(candidate), []).append(candidate)
    wanted = _folded(name[:MAX_LENGTH])
    close = get_close_matches(wanted, folded, most, cutoff)
    if parts and len(wanted) >= MIN_PART:
        close += [candidate for candidate in sorted(folded) if wanted in candidate]
    return list(dict.fromkeys(meant for key in close for meant in folded[key]))[:most]


def did_you_mean(name: object, known: Iterable[object]) -> str:
    """Return ``"; did you mean 'x'?"`` if one of the ``known`` names is spelled like ``name``, else ""."""
    too_long = isinstance(name, str) and len(name) > MAX_LENGTH
    return "" if too_long else suggestion(near_names(name, known, 1))


def suggestion(names: Iterable[str]) -> str:
    """Return ``"; did you mean 'x' or 'y'?"``, or "" without names."""
    shown = " or ".join(map(repr, names))
    return f"; did you mean {shown}?" if shown else ""


def sentences(faults: Iterable[object], most: int = MAX_FAULTS) -> str:
    """Return faults for a message: the first ones, and how many more there are."""
    known = [*map(str, faults)]
    more = [f"and {len(known) - most} more"] if len(known) > most else []
    return "; ".join([*known[:most], *more])


def _folded(name: str) -> str:
    return "-".join(name.casefold().replace("_", " ").replace("-", " ").split())
