"""The version of the package that this process runs. Workers of a cluster must run the client's version."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGE, LAYOUT_LIBRARY = "analog-layout-skills", "klayout"
_SUFFIXES = frozenset({".py", ".yaml", ".json"})


@lru_cache(maxsize=1)
def identity() -> dict[str, str]:
    """Return the versions on which the bytes of a layout depend.

    ``sources`` is a hash of the engine's programs and technology files: two checkouts may have the same version.
    """
    home = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for path in sorted(path for path in home.rglob("*") if path.suffix in _SUFFIXES):
        digest.update(f"{path.relative_to(home).as_posix()} {path.stat().st_size}\n".encode())
        digest.update(path.read_bytes())
    return {PACKAGE: _version(PACKAGE), "sources": digest.hexdigest()[:16], LAYOUT_LIBRARY: _version(LAYOUT_LIBRARY)}


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "unknown"
