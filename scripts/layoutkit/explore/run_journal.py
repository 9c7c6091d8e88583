"""The journal of a run: ``journal.jsonl``, a line for what made it and then one line for each finished job.

A line is on the disk before the next job is reported, so that a run whose machine fails loses nothing but the jobs that
were working. A last line that was not written whole is left out and removed.
"""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from layoutkit.errors import FileError, LayoutConflictError
from layoutkit.explore.jobs import DONE, FINAL, Outcome
from layoutkit.layout.files import make_folder
from layoutkit.layout.provenance import sha256_of
from sturdy.file_lock import lock

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from typing import BinaryIO

NAME = "journal.jsonl"
FORMAT = "layout-jobs/1"
_FIELDS = frozenset(each.name for each in fields(Outcome))


class RunJournal:
    """What has been done in the folder of a run.

    Args:
        folder: That of the run.
        identity: Version of what does the jobs; a run continues with the same one only.
        resume: Whether to continue an earlier run; else the folder must not hold one.

    Raises:
        FileError: If the folder holds a run and ``resume`` is false, or what it holds is no journal.
        LayoutConflictError: If another program writes this journal, or another version of the package made it.
    """

    def __init__(self, folder: Path, identity: Mapping[str, str], *, resume: bool) -> None:
        self.path = folder / NAME
        self.earlier: dict[str, Outcome] = {}
        """Outcomes of an earlier run that stand, by key: their files are still as they were."""
        make_folder(folder)
        try:
            self._file: BinaryIO = self.path.open("a+b")
        except OSError as error:
            raise FileError(f"cannot write {self.path}: {error.strerror}", details={"path": str(self.path)}) from error
        try:
            self._lock()
            self._read(folder, dict(identity), resume)
        except BaseException:
            self._file.close()
            raise

    def _lock(self) -> None:
        with contextlib.suppress(OSError):  # no lock, no writing: two writers would mix their lines
            if lock(self._file.fileno(), wait=False):
                return
        raise LayoutConflictError(f"another program writes {self.path}; wait for it or take another folder")

    def _read(self, folder: Path, identity: dict[str, str], resume: bool) -> None:
        self._file.seek(0)
        data = self._file.read()
        whole = data.rpartition(b"\n")[0] + b"\n" if b"\n" in data else b""
        if not resume:
            refuse_earlier_run(folder)
        self._file.truncate(len(whole))
        if not whole:
            self._append({"format": FORMAT, "made_by": identity})
            return
        head, *lines = whole.splitlines()
        try:
            first = json.loads(head)
            outcomes = [Outcome(**{k: v for k, v in json.loads(line).items() if k in _FIELDS}) for line in lines]
            form, made_by = first.get("format"), first.get("made_by")
        except (ValueError, TypeError, AttributeError):
            form = None
        if form != FORMAT:
            raise FileError(f"{self.path} is not a journal of layout jobs ({FORMAT}); take another folder")
        if made_by != identity:
            raise LayoutConflictError(
                f"{self.path} was made by {described(made_by)}, this is {described(identity)}: layouts may differ; "
                "take another folder, or continue with the version that began",
                details={"made_by": made_by, "this": identity},
            )
        for outcome in outcomes:
            self.earlier.pop(outcome.key, None)  # the last line of a key counts
            if outcome.status in FINAL and _has_its_files(folder, outcome):
                self.earlier[outcome.key] = replace(outcome, resumed=True)

    def add(self, outcome: Outcome) -> None:
        """Write the line of a finished job and wait until it is on the disk."""
        self._append(outcome.to_json())

    def _append(self, value: Mapping[str, Any]) -> None:
        try:
            self._file.write(json.dumps(value).encode() + b"\n")
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise FileError(
                f"cannot write {self.path}: {error.strerror}; what is done is kept: resume the run"
            ) from error

    def close(self) -> None:
        """Close the file, which frees it for others; a line that could not be written has been reported."""
        with contextlib.suppress(OSError):
            self._file.close()


def refuse_earlier_run(folder: Path) -> None:
    """Raise a FileError if a folder holds a run, before anything of a new one is written into it."""
    path = folder / NAME
    if path.is_file() and path.stat().st_size:
        raise FileError(f"{folder} holds a run already; resume it (resume=True, --resume) or take another folder")


def described(identity: Mapping[str, str] | None) -> str:
    """Return a version as words."""
    return ", ".join(f"{name} {value}" for name, value in (identity or {}).items()) or "an unknown version"


def _has_its_files(folder: Path, outcome: Outcome) -> bool:
    home = folder / outcome.folder
    return outcome.status != DONE or all(sha256_of(home / name) == sha for name, sha in outcome.files.items())
