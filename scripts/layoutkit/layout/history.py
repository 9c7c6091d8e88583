"""The last operations on a workspace, each of which can be undone.

``.history/journal.json`` lists the operations, the oldest first, with the SHA-256 of each file of the design before and
after; the files themselves are kept beside it under these names. The journal is written before the design is changed,
and an undo is written into it before files are restored. So a crash at any time leaves a journal from which the next
call continues: an operation that changed nothing is dropped, an undo that was begun is finished.

The functions are called while the workspace is locked.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from layoutkit.errors import FileError, LayoutConflictError, LayoutkitError
from layoutkit.layout import files
from layoutkit.layout.reports import sha256_of
from layoutkit.layout.workspace_record import CIRCUIT_FILE, LAYOUT_FILE

if TYPE_CHECKING:
    from pathlib import Path

FOLDER = ".history"
JOURNAL = "journal.json"
FORMAT = 1
MAX_OPERATIONS = 20
MAX_BYTES = 64 << 20
MAX_JOURNAL_BYTES = 1 << 20
DRAWINGS = "drawings.json"
DESIGN = (
    *(LAYOUT_FILE, CIRCUIT_FILE, DRAWINGS, "placed.gds", "placement.json", "routes.json", "routing.json"),
    *("stages.json", "subcircuits.json", "used_constraints.json"),
)
"""The files that an undo restores; reports are made from them."""

Digests = dict[str, "str | None"]
"""SHA-256 of each file of the design; None where there is none."""


@dataclass
class Operation:
    """One change of the design.

    Attributes:
        name: What was done.
        before: The design before.
        after: The design after; None if the program ended before that was recorded.
    """

    name: str
    before: Digests
    after: Digests | None = None

    def changed(self, present: Digests) -> list[str]:
        """Return the files that it changed, and that are not as before now."""
        after = self.after or present
        return [name for name in DESIGN if self.before[name] != after[name] and self.before[name] != present[name]]


@dataclass
class History:
    """The operations of one workspace.

    Attributes:
        home: Folder of the workspace.
        operations: The oldest first.
        restoring: Files that an undo is to restore; empty when none is in progress.
    """

    home: Path
    operations: list[Operation] = field(default_factory=list)
    restoring: Digests = field(default_factory=dict)

    @classmethod
    def of(cls, home: Path) -> History:
        """Return the history of a workspace, after finishing an undo that was interrupted.

        Raises:
            FileError: If the journal is not of this version.
        """
        history = cls.read(home)
        if history.restoring:
            history._restore()  # noqa: SLF001 - its own class
        return history

    @classmethod
    def read(cls, home: Path) -> History:
        """Return the history of a workspace as it is; nothing is written.

        Raises:
            FileError: If the journal is not of this version.
        """
        path = home / FOLDER / JOURNAL
        history = cls(home)
        if path.is_file():
            try:
                history._load(json.loads(files.read_bytes(path, max_bytes=MAX_JOURNAL_BYTES)))
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
                raise FileError(
                    f"{path} is not a journal of this version ({type(error).__name__}); delete {path.parent} to go on "
                    "without the operations that could be undone",
                    details={"path": str(path)},
                ) from error
        return history

    def _load(self, data: Any) -> None:
        if data["format"] != FORMAT:
            raise ValueError(f"format {data['format']!r}, expected {FORMAT}")
        self.operations = [_operation(each) for each in data["operations"]]
        self.restoring = {name: _digest(data["restoring"][name]) for name in DESIGN if name in data["restoring"]}

    def begin(self, name: str) -> None:
        """Record the design as it is, before the operation ``name`` changes it."""
        present = self.present()
        (self.home / FOLDER).mkdir(parents=True, exist_ok=True)
        for file, sha256 in present.items():
            if sha256 is not None and not self._kept(sha256).is_file():
                files.write_bytes(self._kept(sha256), files.read_bytes(self.home / file))
        if self.operations and not self.operations[-1].changed(present) and self.operations[-1].after is None:
            self.operations.pop()  # its program ended before it changed anything
        self.operations = [*self.operations, Operation(name, present)][-MAX_OPERATIONS:]
        while len(self.operations) > 1 and self._size() > MAX_BYTES:
            self.operations.pop(0)
        self._write()

    def end(self, *, goes_on: bool = False) -> None:
        """Record the design after the last operation; drop one that changed nothing, unless it goes on."""
        if not self.operations:
            return
        present = self.present()
        unchanged = present == self.operations[-1].before
        self.operations[-1].after = None if unchanged else present
        if unchanged and not goes_on:
            self.operations.pop()
        self._write()

    def abandon(self) -> None:
        """Restore the design as it was before the last operation, which failed, and forget that operation.

        Raises:
            FileError: If a file cannot be written.
        """
        if self.operations and self.operations[-1].after is None:
            present, before = self.present(), self.operations.pop().before
            self.restoring = {name: before[name] for name in DESIGN if before[name] != present[name]}
            self._restore()

    def undo(self, steps: int, *, discard: bool = False) -> list[str]:
        """Restore the design as it was before the last operations; return their names, the last one first.

        Raises:
            LayoutkitError: If there are fewer operations.
            LayoutConflictError: If another program changed the layout since, and ``discard`` is not set.
        """
        present = self.present()
        while self.operations and self.operations[-1].after is None:
            partly = self.operations[-1].changed(present)
            if {LAYOUT_FILE, CIRCUIT_FILE} & set(partly):
                break
            before = self.operations.pop().before  # it failed, and what it had written could not be restored
            self.restoring.update({name: before[name] for name in partly})
            present = {**present, **self.restoring}
        if steps > len(self.operations):
            raise LayoutkitError(
                f"{len(self.operations)} operations can be undone, {steps} were requested"
                if self.operations
                else f"nothing to undo: {self.home} holds no recorded operation",
                details={"param_name": "steps", "provided_value": steps, "allowed": len(self.operations)},
            )
        last = self.operations[-1]
        if not discard and last.after is not None and last.after[LAYOUT_FILE] != present[LAYOUT_FILE]:
            raise LayoutConflictError(
                f"{self.home / LAYOUT_FILE} was changed by another program after '{last.name}', and undoing that would "
                "lose the change; save a copy of the file, then set discard_external",
                details={"operation": last.name},
            )
        undone = [self.operations.pop() for _ in range(steps)]
        for operation in undone:
            self.restoring.update({name: operation.before[name] for name in operation.changed(present)})
            present = {**present, **self.restoring}
        self._write()
        self._restore()
        return [operation.name for operation in undone]

    def present(self) -> Digests:
        """Return the design as it is."""
        return {name: sha256_of(self.home / name) for name in DESIGN}

    def _restore(self) -> None:
        """Write the files that an undo restores, then remove that from the journal."""
        contents = {}
        for name, sha256 in self.restoring.items():
            if sha256 is not None:
                contents[name] = files.read_bytes(self._kept(sha256))
        for name in self.restoring:
            if name in contents:
                files.write_bytes(self.home / name, contents[name])
            else:
                (self.home / name).unlink(missing_ok=True)
        self.restoring = {}
        self._write()

    def _kept(self, sha256: str) -> Path:
        return self.home / FOLDER / sha256

    def _needed(self) -> set[str]:
        named = {each for operation in self.operations for each in operation.before.values()}
        return {each for each in (*named, *self.restoring.values()) if each is not None}

    def _size(self) -> int:
        """Return how many bytes the kept files have."""
        return sum(path.stat().st_size for path in map(self._kept, self._needed()) if path.is_file())

    def _write(self) -> None:
        """Write the journal, then remove the files that it needs no more."""
        operations = [{"name": o.name, "before": o.before, "after": o.after} for o in self.operations]
        files.write_json(
            self.home / FOLDER / JOURNAL, {"format": FORMAT, "operations": operations, "restoring": self.restoring}
        )
        needed = {JOURNAL, *self._needed()}
        for path in (self.home / FOLDER).iterdir():
            if path.name not in needed and not path.name.startswith("."):
                path.unlink(missing_ok=True)


def _operation(data: Any) -> Operation:
    before, after = ({name: _digest(data[part][name]) for name in DESIGN} if data[part] else None for part in _PARTS)
    if before is None:
        raise ValueError("an operation without a state before it")
    return Operation(str(data["name"]), before, after)


_PARTS = ("before", "after")


def _digest(value: Any) -> str | None:
    if value is not None and not (isinstance(value, str) and len(value) == len("0" * 64) and value.isalnum()):
        raise ValueError("a digest must be 64 hexadecimal digits")
    return value
