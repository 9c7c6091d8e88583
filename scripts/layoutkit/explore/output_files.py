"""The files that a job leaves in its folder."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from layoutkit.explore.jobs import DONE, TOO_LARGE, Limits, Outcome
from layoutkit.layout.provenance import sha256_of

_MB = 1_000_000
_NAMED = 5


def regular_files(folder: Path) -> dict[str, Path]:
    """Return the files below ``folder`` by relative path, sorted; links are left out, also those to folders."""
    found = {}
    for home, folders, names in os.walk(folder):
        folders.sort()  # os.walk enters no linked folder
        for path in (Path(home, name) for name in names):
            if path.is_file() and not path.is_symlink():
                found[path.relative_to(folder).as_posix()] = path
    return dict(sorted(found.items()))


def with_files(outcome: Outcome, folder: Path, limits: Limits) -> Outcome:
    """Return ``outcome`` with the hashes of the files in ``folder``, or that they are too large to be kept."""
    if outcome.status != DONE:
        return outcome
    found = regular_files(folder)
    sizes = {name: path.stat().st_size for name, path in found.items()}
    if sum(sizes.values()) > limits.output_mb * _MB:
        largest = sorted(sizes, key=lambda name: (-sizes[name], name))[:_NAMED]
        text = ", ".join(f"{name} {sizes[name] / _MB:.1f} MB" for name in largest)
        message = f"its files are larger than {limits.output_mb} MB together: {text}"
        error = {"code": "INTERNAL_ERROR", "message": message, "details": None}
        return replace(outcome, status=TOO_LARGE, answer=None, error=error)
    return replace(outcome, files={name: sha256_of(path) or "" for name, path in found.items()})
