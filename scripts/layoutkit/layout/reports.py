"""The reports made from a workspace's layout: listing them, and renaming those that are out of date."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from layoutkit.errors import FileError, TimeLimitError
from layoutkit.layout.provenance import CIRCUIT, LAYOUT, sha256_of, sources_of
from layoutkit.layout.record import Record

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Mapping

    from layoutkit.layout.workspace import Workspace

OF_LAYOUT = ("drc.lyrdb", "extracted.spice", "layout.png", "lvs.lvsdb", "summary.json")
OF_CIRCUIT = ("reference.spice",)


def add_reports(workspace: Workspace, paths: Iterable[str | os.PathLike[str]]) -> list[str]:
    """Record these files as made from the layout; return a warning for each report that is out of date.

    If the workspace cannot be written to, a warning says that nothing was recorded.
    """
    try:
        with workspace.lock():
            record = workspace.record() or Record()
            names = {_name_of(path, workspace) for path in paths}
            record.with_reports({*record.reports, *names}).write(workspace.record_path)
            return mark_stale(workspace)
    except (FileError, TimeLimitError) as error:
        text = f"cannot note which reports were made from the layout: {error.message}"
        return [text, *stale_reports(workspace)]


def changed_since(workspace: Workspace, name: str) -> list[str] | None:
    """Return what changed since the report ``name`` was made: "layout", "circuit"; None if it does not say."""
    return _changed(sources_of(workspace.path(name)), _present(workspace))


def stale_reports(workspace: Workspace) -> list[str]:
    """Return one sentence for each report that was made from another layout or circuit than the present one."""
    present, found = _present(workspace), []
    for path in _reports(workspace, workspace.record()):
        reasons = _changed(sources_of(path), present)
        if reasons:
            found.append(f"{path} is out of date: it was made from another {' and '.join(reasons)}; make it again")
        elif reasons is None and path.name not in OF_CIRCUIT:
            found.append(f"{path} does not say which layout it was made from; make it again")
    return found


def mark_stale(workspace: Workspace, *, changed: bool = False) -> list[str]:
    """Rename reports that are out of date (``drc.lyrdb`` to ``drc.stale.lyrdb``); the caller holds the lock.

    Files outside the workspace are not touched. Returns a sentence for each report that is out of date.

    Args:
        workspace: Where to look.
        changed: Whether the layout has just been changed, so that reports that do not say what they were made from,
            such as those of earlier versions, are out of date too.
    """
    record = workspace.record()
    present, told, kept = _present(workspace), [], set()
    for path in _reports(workspace, record):
        reasons = _changed(sources_of(path), present)
        if reasons is None and not (changed and path.name in OF_LAYOUT):
            continue
        if reasons == []:
            kept.add(_name_of(path, workspace))
            continue
        reason = f"it was made from another {' and '.join(reasons or ['layout'])}"
        renamed = _renamed(path) if _lies_within(path, workspace) else None
        if renamed is None:
            kept.add(_name_of(path, workspace))
            told.append(f"{path} is out of date: {reason}; make it again")
        else:
            told.append(f"{path} is out of date ({reason}) and is now called {renamed.name}")
    if record is not None and kept != set(record.reports):
        record.with_reports(kept).write(workspace.record_path)
    return told


def _present(workspace: Workspace) -> dict[str, str | None]:
    return {LAYOUT: sha256_of(workspace.layout_path), CIRCUIT: sha256_of(workspace.circuit_path)}


def _changed(sources: Mapping[str, str] | None, present: Mapping[str, str | None]) -> list[str] | None:
    """Return what has changed since a report was made; None if the report does not say what it was made from."""
    if not sources:
        return None
    words = {LAYOUT: "layout", CIRCUIT: "circuit"}
    return [words[name] for name, value in sources.items() if present[name] != value]


def _reports(workspace: Workspace, record: Record | None) -> list[Path]:
    """Return the reports that are recorded or have one of the usual names, if they exist."""
    names = {*OF_LAYOUT, *OF_CIRCUIT, *(record.reports if record is not None else ())}
    return [path for path in (workspace.path(name) for name in sorted(names)) if path.is_file()]


def _name_of(path: str | os.PathLike[str], workspace: Workspace) -> str:
    """Return how a report is recorded: relative to the workspace where it lies in it, else its absolute path."""
    resolved = Path(path).resolve()
    return str(resolved.relative_to(workspace.directory.resolve())) if _lies_within(path, workspace) else str(resolved)


def _lies_within(path: str | os.PathLike[str], workspace: Workspace) -> bool:
    return Path(path).resolve().is_relative_to(workspace.directory.resolve())


def _renamed(path: Path) -> Path | None:
    """Rename a report that is out of date and return its new path, None if it cannot be renamed."""
    try:
        return path.replace(path.with_name(f"{path.stem}.stale{path.suffix}"))
    except OSError:
        return None
