"""The record of a workspace: the technology its layout is drawn in, and the reports made from that layout.

The record is the file ``layout_workspace.json``. It contains the name and the layer numbers of the technology, which
together identify a process, and the file that the technology was read from.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from layoutkit.errors import FileError, TechnologyError
from layoutkit.file_schema import FileSchema
from layoutkit.layout import files
from layoutkit.layout.provenance import sha256_of
from layoutkit.technology import Technology, load, without_variants
from layoutkit.technology.technology_files import SHIPPED, files_of, names

if TYPE_CHECKING:
    from collections.abc import Mapping

    import klayout.db as kdb


RECORD_FILE = "layout_workspace.json"
LAYOUT_FILE = "layout.gds"
CIRCUIT_FILE = "circuit.json"
FORMAT = 1
MAX_RECORD_BYTES = 1 << 20
MAX_REPORTS = 1000
STORED_FILES = FileSchema(Path(__file__).with_name("stored_files.schema.json"))


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
            return _record(data)
    except FileError as error:
        reason = error.message
    except (ValueError, OverflowError, RecursionError):
        reason = f"{reason}, or not JSON"
    raise FileError(
        f"cannot determine which technology the workspace {path.parent} is drawn in: {path.name}: {reason[:300]}; "
        f"use another workspace, or delete {path} and name the technology that the layout is drawn in",
        details={"path": str(path), "workspace": str(path.parent)},
    )


def _record(data: Any) -> Record:
    reports, entry = tuple(data["reports"][:MAX_REPORTS]), data["technology"]
    if entry is None:
        return Record(None, reports)
    layers = {name: (layer, datatype) for name, (layer, datatype) in entry["layers"].items()}
    return Record(DrawnIn(entry["name"], entry["source"], entry["sha256"], float(entry["dbu_um"]), layers), reports)


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
