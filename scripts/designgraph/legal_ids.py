"""Ids for things that have names of their own, such as ``X1.M2`` or ``data[3]``."""

from __future__ import annotations

import re
from hashlib import blake2b

from designgraph.names import MAX_ID_LENGTH, is_id

_FOREIGN = re.compile(r"[^A-Za-z0-9_-]")
_MARK_LENGTH = 8


class LegalIds:
    """Gives each name an id that is legal, belongs to it alone, and is the same the next time.

    Args:
        prefix: What every id begins with.
    """

    def __init__(self, prefix: str = "") -> None:
        self.prefix = prefix
        self._by_name: dict[tuple[str, str], str] = {}
        self._taken: set[str] = set()

    def give(self, name: str, kind: str = "") -> str:
        """Return the id of ``name``; ``kind`` (``net_``) is put before it and keeps its names apart from others."""
        key = (kind, name)
        if key not in self._by_name:
            self._by_name[key] = self._new(name, kind)
            self._taken.add(self._by_name[key])
        return self._by_name[key]

    def changed(self) -> dict[str, str]:
        """Return the names whose id is not prefix, kind and name, with that id."""
        plain = self.prefix
        return {name: made for (kind, name), made in self._by_name.items() if made != f"{plain}{kind}{name}"}

    def _new(self, name: str, kind: str) -> str:
        wanted = _FOREIGN.sub("_", f"{self.prefix}{kind}{name}")
        if not is_id(wanted[:1]):
            wanted = f"_{wanted}"
        if len(wanted) <= MAX_ID_LENGTH and wanted not in self._taken:
            return wanted
        mark = blake2b(f"{kind}\0{name}".encode(), digest_size=_MARK_LENGTH // 2).hexdigest()
        return f"{wanted[: MAX_ID_LENGTH - 1 - _MARK_LENGTH]}_{mark}"
