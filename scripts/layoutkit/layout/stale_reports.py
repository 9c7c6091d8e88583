"""Find the reports made from a workspace's layout, and rename those that are out of date.

The functions take the workspace's folder; ``Workspace`` calls them and holds the lock where that is needed.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from layoutkit.layout.provenance import CIRCUIT, LAYOUT, sha256_of, sources_of
from layoutkit.layout.workspace_record import CIRCUIT_FILE, LAYOUT_FILE, RECORD_FILE, Record, read_record

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Mapping

OF_LAYOUT = (
    "drc.lyrdb", "extracted.spice", "layout.lef", "layout.png", "lvs.lvsdb", "report.html", "review.lyrdb",
    "summary.json",
)  # fmt: skip
OF_CIRCUIT = ("reference.spice",)
_AGAIN = ": made from another {}; create it again"


def record_reports(folder: Path, paths: Iterable[str | os.PathLike[str]]) -> list[str]:
    """Record these files as made from the layout; warn of reports that are out of date or of no known one.

    Raises:
        FileError: If the record cannot be read or written.
    """
    record = read_record(folder / RECORD_FILE) or Record()
    names = {_name_of(path, folder) for path in paths}
    record.with_reports({*record.reports, *names}).write(folder / RECORD_FILE)
    unknown = _of_no_known_layout(folder)
    return [*mark_stale(folder), *unknown]


def changed_since(folder: Path, name: str) -> list[str] | None:
    """Return what changed since the report ``name`` was made: "layout", "circuit"; None if it does not state that."""
    return _changed(sources_of(folder / name), _present(folder))


def stale_reports(folder: Path) -> list[str]:
    """Return sentences that name the reports that were made from another layout or circuit than the present one."""
    present = _present(folder)
    old: dict[str, list[Path]] = {}
    for path in _reports(folder, read_record(folder / RECORD_FILE)):
        reasons = _changed(sources_of(path), present)
        if reasons:
            old.setdefault(_AGAIN.format(" and ".join(reasons)), []).append(path)
    return [*_sentences(old), *_of_no_known_layout(folder)]


def _of_no_known_layout(folder: Path) -> list[str]:
    return [
        f"{path} does not state which layout it was made from; create it again"
        for path in _reports(folder, read_record(folder / RECORD_FILE))
        if path.name not in OF_CIRCUIT and not sources_of(path)
    ]


def mark_stale(folder: Path, *, changed: bool = False) -> list[str]:
    """Rename reports that are out of date (``drc.lyrdb`` to ``drc.stale.lyrdb``).

    Files outside the workspace are not touched. Returns sentences that name the reports that are out of date.

    Args:
        folder: The workspace's folder.
        changed: Whether the layout has just been changed, so that reports that do not state their sources, such as
            those of earlier versions, are out of date too.
    """
    record = read_record(folder / RECORD_FILE)
    present, kept = _present(folder), set()
    old: dict[str, list[Path]] = {}
    for path in _reports(folder, record):
        reasons = _changed(sources_of(path), present)
        if reasons is None and not (changed and path.name in OF_LAYOUT):
            continue
        if reasons == []:
            kept.add(_name_of(path, folder))
            continue
        changes = " and ".join(reasons or ["layout"])
        renamed = _renamed(path, present) if _lies_within(path, folder) else None
        if renamed is None:
            kept.add(_name_of(path, folder))
            old.setdefault(_AGAIN.format(changes), []).append(path)
        else:
            old.setdefault(f" (made from another {changes})", []).append(path)
    if record is not None and kept != set(record.reports):
        record.with_reports(kept).write(folder / RECORD_FILE)
    return _sentences(old)


def _sentences(old: Mapping[str, list[Path]]) -> list[str]:
    """Return a sentence for all reports that are out of date for one reason; their folder stands at the first."""
    found = []
    for text, paths in old.items():
        verb = "is" if len(paths) == 1 else "are"
        renamed = f" and {verb} now called NAME.stale.*" if text.endswith(")") else ""
        names = [str(paths[0]), *(each.name if each.parent == paths[0].parent else str(each) for each in paths[1:])]
        found.append(f"{', '.join(names)} {verb} out of date{text}{renamed}")
    return found


def restore_reports(folder: Path) -> None:
    """Give reports that ``mark_stale`` renamed their names again, where they are about the present layout.

    They are recorded again, so that the next change renames them again.
    """
    present, restored = _present(folder), set()
    for path in sorted(folder.glob("*.stale.*")):
        name = path.with_name(path.name.replace(".stale.", ".", 1))
        if not name.exists() and _changed(sources_of(path), present) == []:
            path.replace(name)
            restored.add(_name_of(name, folder))
    if restored:
        record = read_record(folder / RECORD_FILE) or Record()
        record.with_reports({*record.reports, *restored}).write(folder / RECORD_FILE)


def _present(folder: Path) -> dict[str, str | None]:
    return {LAYOUT: sha256_of(folder / LAYOUT_FILE), CIRCUIT: sha256_of(folder / CIRCUIT_FILE)}


def _changed(sources: Mapping[str, str] | None, present: Mapping[str, str | None]) -> list[str] | None:
    """Return what has changed since a report was made; None if the report does not state its sources."""
    if not sources:
        return None
    words = {LAYOUT: "layout", CIRCUIT: "circuit"}
    return [words[name] for name, value in sources.items() if present[name] != value]


def _reports(folder: Path, record: Record | None) -> list[Path]:
    """Return the reports that are recorded or have one of the usual names, if they exist.

    Files outside of the workspace that cannot be read are left out: a record from someone else may name any file, and
    a message about it would show that the file exists.
    """
    names = {*OF_LAYOUT, *OF_CIRCUIT, *(record.reports if record is not None else ())}
    found = [path for path in (folder / name for name in sorted(names)) if path.is_file()]
    return [path for path in found if _lies_within(path, folder) or _is_readable(path)]


def _name_of(path: str | os.PathLike[str], folder: Path) -> str:
    """Return how a report is recorded: relative to the workspace if it lies in it, else its absolute path."""
    resolved = Path(path).resolve()
    return str(resolved.relative_to(folder.resolve())) if _lies_within(path, folder) else str(resolved)


def _lies_within(path: str | os.PathLike[str], folder: Path) -> bool:
    return Path(path).resolve().is_relative_to(folder.resolve())


def _is_readable(path: Path) -> bool:
    try:
        path.open("rb").close()
    except OSError:
        return False
    return True


def _renamed(path: Path, present: Mapping[str, str | None]) -> Path | None:
    """Rename a report that is out of date and return its new path, None if it cannot be renamed.

    An earlier report under the new name that is about the present layout takes its place.
    """
    stale, spare = (path.with_name(f"{path.stem}.{word}{path.suffix}") for word in ("stale", "spare"))
    try:
        if _changed(sources_of(stale), present) != []:
            return path.replace(stale)
        path.replace(spare)
        stale.replace(path)
        return spare.replace(stale)
    except OSError:
        return None
