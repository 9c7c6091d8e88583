"""The record of a workspace: the technology its layout is drawn in, and the reports made from that layout.

The record is the file ``layout_workspace.json``. It contains the name and the layer numbers of the technology, which
together identify a process, the file that the technology was read from, and the names of the reports. Reports that
are out of date are found and renamed here; those functions take the workspace's folder, and ``Workspace`` calls them
and holds the lock where that is needed.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from layoutkit.errors import FileError, TechnologyError
from layoutkit.file_schema import FileSchema
from layoutkit.layout import files
from layoutkit.layout.reports import CIRCUIT, LAYOUT, sha256_of, sources_of
from layoutkit.technology import Technology, load, without_variants
from layoutkit.technology.technology_files import SHIPPED, files_of, names

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Mapping

    import klayout.db as kdb

RECORD_FILE = "layout_workspace.json"
LAYOUT_FILE = "layout.gds"
CIRCUIT_FILE = "circuit.json"
FORMAT = 1
MAX_RECORD_BYTES = 1 << 20
MAX_REPORTS = 1000
STORED_FILES = FileSchema(Path(__file__).with_name("stored_files.schema.json"))
OF_LAYOUT = (
    "drc.lyrdb", "extracted.spice", "layout.lef", "layout.png", "lvs.lvsdb", "report.html", "review.lyrdb",
    "summary.json",
)  # fmt: skip
OF_CIRCUIT = ("reference.spice",)
_AGAIN = ": made from another {}; create it again"


@dataclass(frozen=True)
class DrawnIn:
    """The technology that a layout is drawn in.

    Attributes:
        name: Name that the technology file states.
        source: Shipped name, or absolute path of the technology file.
        sha256: Of the technology file, or of all those that it is based on as well.
        dbu_um: Database unit. [um]
        layers: GDS layer and datatype by layer name.
    """

    name: str
    source: str
    sha256: str
    dbu_um: float
    layers: Mapping[str, tuple[int, int]]

    @classmethod
    def of(cls, technology: Technology) -> DrawnIn:
        """Return the record of ``technology``, with the layer numbers of its file even if a layer map replaces them."""
        path = Path(technology.path).resolve()
        source = path.stem if path.parent == SHIPPED.resolve() else str(path)
        parts = [sha256_of(each) or "" for each in files_of(path)]
        sha256 = parts[0] if len(parts) == 1 else hashlib.sha256(" ".join(parts).encode()).hexdigest()
        return cls(technology.name, source, sha256, technology.dbu_um, _layers_in(path))

    @property
    def is_shipped(self) -> bool:
        """Whether the technology is one of those in the pack."""
        return self.source in names()

    def is_same_process(self, other: DrawnIn) -> bool:
        """Return whether both are revisions of the same process, so that one layout may use both."""
        if self.is_shipped and other.is_shipped:
            return self.source == other.source
        shared = self.layers.keys() & other.layers.keys()
        return (
            self.name == other.name
            and self.dbu_um == other.dbu_um
            and bool(shared)
            and all(tuple(self.layers[layer]) == tuple(other.layers[layer]) for layer in shared)
        )


@dataclass(frozen=True)
class Record:
    """The content of ``layout_workspace.json``.

    Attributes:
        technology: Technology of the layout; None before the first drawing.
        reports: Files made from the layout; relative paths for those inside the workspace.
    """

    technology: DrawnIn | None = None
    reports: tuple[str, ...] = field(default=())

    def with_reports(self, reports: set[str]) -> Record:
        """Return the record with its reports replaced by ``reports``."""
        return replace(self, reports=tuple(sorted(reports)[:MAX_REPORTS]))

    def write(self, path: Path) -> None:
        """Write the record.

        Raises:
            FileError: If that fails.
        """
        drawn_in = None if self.technology is None else asdict(self.technology)
        files.write_json(path, {"format": FORMAT, "technology": drawn_in, "reports": list(self.reports)})


def read_record(path: Path) -> Record | None:
    """Return the record in the file ``path``; None if there is no such file.

    Raises:
        FileError: If it is not a record of this version.
    """
    if not path.exists() and not path.is_symlink():
        return None
    reason = "it is not a record of this version"
    try:
        data = json.loads(files.read_bytes(path, max_bytes=MAX_RECORD_BYTES))
        if STORED_FILES.accepts(data, "record"):
            reports, entry = tuple(data["reports"][:MAX_REPORTS]), data["technology"]
            if entry is None:
                return Record(None, reports)
            layers = {name: (layer, datatype) for name, (layer, datatype) in entry["layers"].items()}
            return Record(
                DrawnIn(entry["name"], entry["source"], entry["sha256"], float(entry["dbu_um"]), layers), reports
            )
    except FileError as error:
        reason = error.message
    except (ValueError, OverflowError, RecursionError):
        reason = f"{reason}, or not JSON"
    raise FileError(
        f"cannot determine which technology the workspace {path.parent} is drawn in: {path.name}: {reason[:300]}; "
        f"use another workspace, or delete {path} and name the technology that the layout is drawn in",
        details={"path": str(path), "workspace": str(path.parent)},
    )


def check_same(recorded: DrawnIn, requested: DrawnIn, home: Path) -> list[str]:
    """Return the warnings for using ``requested`` on a layout drawn in ``recorded``.

    Raises:
        TechnologyError: If they are different processes.
    """
    if not recorded.is_same_process(requested):
        text = f"workspace {home} is drawn in {_title(recorded)}, not in {_title(requested)}"
        raise _conflict(text, recorded.source, home / "layout.gds")
    if recorded.sha256 != requested.sha256 and not (recorded.is_shipped and requested.is_shipped):
        text = f"the technology file of {requested.name} has changed since the workspace {home} was drawn"
        return [f"{text}: check the whole layout again"]
    return []


def check_fits(layout: kdb.Layout, requested: Technology, path: Path) -> None:
    """Check that a layout without a recorded technology does not fit another shipped technology better.

    Args:
        layout: Content of ``path``.
        requested: Technology to draw in.
        path: The layout's file, for the message.

    Raises:
        TechnologyError: If another one defines more of its layers.
    """
    used = used_layers(layout)
    own = len(used & set(DrawnIn.of(requested).layers.values()))
    best = _best_fits(used)
    if best and best[0][0] > own:
        fit, name = best[0]
        text = f"{path} uses {len(used)} layers; {requested.name} defines {own} of them, {name} defines {fit}"
        raise _conflict(f"{text}: it is not drawn in {requested.name}", name, path)


def fitting(layout: kdb.Layout, home: Path, usual: str) -> str:
    """Return the name of the shipped technology whose layers fit a layout without a record best.

    Args:
        layout: The layout.
        home: Its workspace, or its file, for the message.
        usual: Name for a layout without shapes.

    Raises:
        TechnologyError: If no single technology fits best.
    """
    used = used_layers(layout)
    if not used:
        return usual
    best = _best_fits(used)
    most = best[0][0]
    fitting_best = without_variants([name for fit, name in best if fit == most])
    if most == 0 or len(fitting_best) != 1:
        raise TechnologyError(
            f"the technology of the layout {home} is not recorded, and no single one fits its layers best; "
            f"specify technology: {', '.join(names())}, or the path of a technology file",
            details={"param_name": "technology", "workspace": str(home)},
        )
    return fitting_best[0]


def used_layers(layout: kdb.Layout) -> set[tuple[int, int]]:
    """Return the (layer, datatype) pairs of all layers that have shapes."""
    return {
        (info.layer, info.datatype)
        for info in layout.layer_infos()
        if any(not cell.shapes(layout.layer(info)).is_empty() for cell in layout.each_cell())
    }


def _layers_in(path: Path) -> dict[str, tuple[int, int]]:
    """Return the layers as the technology file has them; a technology may be in use with a layer map."""
    return {name: layer.gds for name, layer in load(str(path)).layers.items()}


def _best_fits(used: set[tuple[int, int]]) -> list[tuple[int, str]]:
    fits = [(len(used & set(DrawnIn.of(load(name)).layers.values())), name) for name in names()]
    return sorted(fits, key=lambda fit: (-fit[0], fit[1]))


def _title(drawn_in: DrawnIn) -> str:
    return drawn_in.name if drawn_in.is_shipped else f"{drawn_in.name} ({drawn_in.source})"


def _conflict(reason: str, source: str, path: Path) -> TechnologyError:
    return TechnologyError(
        f"{reason}; omit technology or use {source}, use another workspace, or delete {path} to start over",
        details={"param_name": "technology", "layout_path": str(path), "technology": source},
    )


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
