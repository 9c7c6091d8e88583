"""Names that come near to one that does not exist."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

MOST = 3
_MAX_LENGTH = 200  # difflib takes time with the square of it


def near(wanted: str, names: Sequence[str]) -> list[str]:
    """Return up to three of ``names`` that ``wanted`` may have meant, the nearest first.

    A name that is the same but for case, blanks and underscores comes first, then names spelt alike, then names that
    contain it.
    """
    from difflib import get_close_matches

    plain = _plain(wanted[:_MAX_LENGTH])
    by_plain: dict[str, str] = {}
    for name in names:
        by_plain.setdefault(_plain(name), name)
    found = [by_plain[plain]] if plain in by_plain else []
    found += [by_plain[match] for match in get_close_matches(plain, by_plain, n=MOST, cutoff=0.6)]
    if len(plain) >= 3:
        found += [by_plain[name] for name in sorted(by_plain) if plain in name]
    return list(dict.fromkeys(found))[:MOST]


def _plain(name: str) -> str:
    """Return a name as it is compared."""
    return "-".join(name.casefold().replace("_", " ").replace("-", " ").split())
