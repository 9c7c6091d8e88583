"""What each finished stage of a build left in the workspace, and whether a later stage can continue from it.

``stages.json`` names the files of each finished stage with their SHA-256, the technology, and the options in use::

    parse      circuit.json, subcircuits.json      recognise  used_constraints.json
    place      placed.gds, placement.json          route      routes.json         export  layout.gds
    later stages write reports only

A stage that runs again removes the entries of itself and of all later stages. To resume means to check everything that
the earlier stages left; files that were changed by hand, another netlist and another technology are refused.

The engine's data objects are written as JSON data and read back, so that a stage can continue from a file. A dataclass
becomes ``{"is": "Wire", ...fields}``. A tuple becomes a list. KLayout's layout, its cells and the technology are not
written: they become references to those that the reader supplies. Reading creates nothing but the dataclasses that
``STORED`` lists, so that a file from someone else cannot run code.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import numbers
import os
import sys
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from functools import cache
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import klayout.db as kdb

from layoutkit.circuit.ranked_names import RankedName
from layoutkit.errors import FileError, LayoutkitError, listed
from layoutkit.flow.design import LayoutRequest
from layoutkit.layout.reports import sha256_of
from layoutkit.layout.workspace_record import DrawnIn
from layoutkit.technology import DeviceSpec, PassiveSpec, Technology

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from layoutkit.circuit.circuit import Circuit
    from layoutkit.layout.workspace import Workspace


STAGES = ("parse", "recognise", "place", "route", "currents", "export", "drc", "lvs", "metrics", "view")
RECORD = "stages.json"
FORMAT = 2
"""Version of the files. In version 1 the names of dataclasses follow those of their modules."""
READABLE = (1, FORMAT)
NOT_STORED = ("technology", "workspace", "first_stage", "last_stage", "reviewed")
OPTIONS = {
    "recognise": ("dummies", "constraints", "net_priorities", "deep_well_net", "substrate_nets", "flatten"),
    "place": ("seed", "row_gap", "outline", "aspect", "effort"),
    "drc": ("waived_layers",),
    "metrics": ("post_layout",),
}
"""The options of the request that a stage is the first to read; the other options are those of ``parse``."""
COMPARED = ("netlist_path", "netlist_text", "constraints")
"""Options of which the content counts, not the name of a file."""
FILES = ("netlist_path", "constraints")
"""Options that may name a file: they are stored with its folder, so that a build goes on from anywhere."""
StageFault = tuple[str, str]
"""A stage that cannot be kept, and why."""
STORED = {
    "circuit.circuit": "Device",
    "circuit.constraints": "Outcome",
    "circuit.repeated": "Use",
    "draw.deep_well": "DeepWellNets",
    "draw.module": "DrawnDummy Gate Instance Keepout Module Pin",
    "flow.dummies": "EndDummies",
    "flow.groups": "Group Sizing",
    "flow.hierarchy": "InstanceGroup",
    "flow.instances": "FinishedCell Inside Well",
    "flow.matched_wires": "MirroredNets Obstacle UnequalMetal",
    "flow.kept_modules": "KeptPlaces",
    "flow.modules": "Drawn",
    "flow.overlays": "Overlay",
    "flow.passive_modules": "PassiveGroup",
    "flow.placing": "PlacedModules TriedPlacement",
    "flow.port_frame": "Frame Port PortNet",
    "flow.room": "PlacementTry Room",
    "flow.routing_job": "Endpoint Routes RoutingJob WantedNet",
    "place.blocks": "Island Placed Placement",
    "route.net_flows": "Draw",
    "route.routes": "Blocker Mirrored Patch RoutedNet RoutingResult SingleCut Via Wire",
}
"""The dataclasses that files may hold, by their module. A file has the name alone, so that a class may move."""
MODULES = {name: f"layoutkit.{module}" for module, names in STORED.items() for name in names.split()}
FOLDED = 100
"""Depth of objects within objects beyond which a file is refused."""


@dataclass(frozen=True)
class StageEntry:
    """What one finished stage left.

    Attributes:
        name: One of ``STAGES``.
        files: Names of its files that later stages need, each with its SHA-256; none before they are written.
        report: Its part of the build's report.
        warnings: Its warnings.
    """

    name: str
    files: Mapping[str, str]
    report: Mapping[str, Any]
    warnings: tuple[str, ...] = ()


@dataclass
class StageRecord:
    """The content of ``stages.json``.

    Attributes:
        technology: Name of the shipped technology or path of its file, and the file's SHA-256.
        options: The request, without what ``NOT_STORED`` names.
        entries: The finished stages, in order.
    """

    technology: tuple[str, str]
    options: dict[str, Any]
    entries: list[StageEntry] = field(default_factory=list)

    @classmethod
    def begun(cls, technology: Technology, request: LayoutRequest) -> StageRecord:
        """Return the record of a build of which no stage is finished."""
        drawn_in = DrawnIn.of(technology)
        return cls((drawn_in.source, drawn_in.sha256), _options(request))

    def has(self, stage: str) -> bool:
        """Return whether ``stage`` is finished."""
        return any(entry.name == stage for entry in self.entries)

    def entry(self, stage: str) -> StageEntry:
        """Return what ``stage`` left; it must be finished."""
        return next(entry for entry in self.entries if entry.name == stage)

    def begin(self, stage: str, request: LayoutRequest) -> None:
        """Remove what ``stage`` and later stages left, as they run again with the options of ``request``."""
        self.entries = [entry for entry in self.entries if STAGES.index(entry.name) < STAGES.index(stage)]
        self.options = _options(request)

    def sign(self, stage: str, names: Iterable[str], workspace: Workspace) -> None:
        """Record the SHA-256 of the files of ``stage``, which are written."""
        files = {name: sha256_of(workspace.path(name)) or "" for name in names}
        self.entries = [replace(entry, files=files) if entry.name == stage else entry for entry in self.entries]

    def write(self, workspace: Workspace) -> None:
        """Write the record into the workspace; the caller holds the lock."""
        source, sha256 = self.technology
        workspace.write_json(
            RECORD,
            {
                "format": FORMAT,
                "technology": {"source": source, "sha256": sha256},
                "options": self.options,
                "stages": [
                    {"name": e.name, "files": e.files, "report": e.report, "warnings": list(e.warnings)}
                    for e in self.entries
                ],
            },
        )


def read_record(workspace: Workspace, stage: str) -> StageRecord:
    """Return the record of the workspace, with which a build is to resume at ``stage``.

    Raises:
        FileError: If there is none, or it is not of this version.
    """
    path = workspace.path(RECORD)
    if not path.is_file():
        raise FileError(
            f"cannot resume at stage {stage}: workspace {workspace.directory} holds no stages of a build ({RECORD}); "
            "name the folder of a build (workspace, --to), or build without from first",
            details={"param_name": "from", "workspace": str(workspace.directory)},
        )
    try:
        return _record(workspace.read_json(RECORD))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise FileError(
            f"cannot resume at stage {stage}: {path} is not a record of this version "
            f"({type(error).__name__}: {str(error)[:200]}); build without from",
            details={"param_name": "from", "path": str(path)},
        ) from error


def _record(data: Any) -> StageRecord:
    if data["format"] not in READABLE:
        raise ValueError(f"format {data['format']!r}, expected {FORMAT}")
    entries = [
        StageEntry(str(e["name"]), dict(e["files"]), dict(e["report"]), tuple(map(str, e["warnings"])))
        for e in data["stages"]
    ]
    if [entry.name for entry in entries] != list(STAGES[: len(entries)]):
        raise ValueError("its stages are not in order")
    technology = (str(data["technology"]["source"]), str(data["technology"]["sha256"]))
    return StageRecord(technology, dict(data["options"]), entries)


def resumed(request: LayoutRequest, record: StageRecord) -> tuple[LayoutRequest, list[StageFault]]:
    """Return the request with the options that the record holds, and what contradicts it.

    An option that is left at its default has the value of the record. A stage that runs again may have another one.

    Args:
        request: Says where to begin; it need not name a netlist.
        record: What the earlier stages left.

    Returns:
        The request, and as ``(stage, text)`` each option of an earlier stage that has another value. Netlist and
        constraints are not compared here.
    """
    first = request.first_stage or STAGES[0]
    values: dict[str, Any] = {}
    faults = []
    asked, usual = _options(request), _options(LayoutRequest())
    for name, stored in record.options.items():
        if name not in usual:
            continue
        stage = next((stage for stage, names in OPTIONS.items() if name in names), STAGES[0])
        if asked[name] == usual[name]:
            values[name] = tuple(stored) if isinstance(getattr(request, name), tuple) else stored
        elif name == "sizes" and first == "place":  # as a netlist with other sizes; what was changed before stays
            before = stored or {}
            values[name] = before | {device: {**before.get(device, {}), **now} for device, now in asked[name].items()}
        elif STAGES.index(stage) < STAGES.index(first) and name not in COMPARED and asked[name] != stored:
            was = "the default" if stored == usual[name] else _short(stored)
            faults.append((stage, f"{name} is {_short(asked[name])}, stage {stage} was done with {was}"))
    if request.netlist_path is not None or request.netlist_text is not None:
        values.pop("netlist_path", None)
        values.pop("netlist_text", None)
    return replace(request, **values), faults


def faults_of_files(workspace: Workspace, record: StageRecord, stage: str) -> list[StageFault]:
    """Return as ``(stage, text)`` what earlier stages than ``stage`` did not leave, or what was changed since."""
    done = {entry.name for entry in record.entries}
    earlier = STAGES[: STAGES.index(stage)]
    missing = [name for name in earlier if name not in done]
    faults = [(name, f"stage {name} is not finished") for name in missing[:1]]
    for entry in record.entries:
        if entry.name not in earlier:
            continue
        for name, sha256 in entry.files.items():
            present = sha256_of(workspace.path(name))
            if present is None:
                faults.append((entry.name, f"{name} of stage {entry.name} is missing"))
            elif present != sha256:
                faults.append((entry.name, f"{name} was changed after stage {entry.name} wrote it"))
    return faults


def faults_of_technology(technology: Technology, record: StageRecord) -> list[StageFault]:
    """Return as ``(stage, text)`` whether the technology is another one than that of the record."""
    source, sha256 = record.technology
    drawn_in = DrawnIn.of(technology)
    if drawn_in.source != source:
        return [
            (
                STAGES[0],
                f"the technology is {drawn_in.source}, the stages were done in {source}; build it in another workspace",
            )
        ]
    if drawn_in.sha256 != sha256:
        return [(STAGES[0], f"the technology file of {drawn_in.name} was changed since")]
    return []


def faults_of_netlist(given: Circuit, stored: Circuit) -> list[StageFault]:
    """Return as ``(stage, text)`` how the circuit of a netlist differs from the one in the workspace."""
    if given.to_json() == stored.to_json():
        return []
    ours, theirs = ({device.id: device for device in circuit.devices} for circuit in (given, stored))
    resized = resized_devices(given, stored)
    if resized:
        text = f"the sizes of {listed(sorted(resized))} differ from those in circuit.json"
    elif ours.keys() != theirs.keys():
        text = f"the netlist and circuit.json differ in the devices {listed(sorted(ours.keys() ^ theirs.keys()))}"
    else:
        text = "the netlist has other connections or ports than circuit.json"
    return [(STAGES[0], text)]


def resized_devices(given: Circuit, stored: Circuit) -> list[str]:
    """Return the devices that have other sizes in ``given``; none where the circuits differ in anything else."""
    ours, theirs = ({device.id: device for device in circuit.devices} for circuit in (given, stored))
    without = [{name: replace(device, params={}) for name, device in found.items()} for found in (ours, theirs)]
    if without[0] != without[1] or (given.ports, given.black_boxes) != (stored.ports, stored.black_boxes):
        return []
    return sorted(name for name in ours if ours[name].params != theirs[name].params)


def refuse(faults: Sequence[StageFault], stage: str, workspace: Workspace) -> None:
    """Raise an error that lists all ``faults`` and names the stage from which the build can resume, if there are any.

    Raises:
        LayoutkitError: If there are faults.
    """
    if not faults:
        return
    first = min((STAGES.index(name) for name, _ in faults), default=0)
    raise LayoutkitError(
        f"cannot resume at stage {stage} in workspace {workspace.directory}: "
        f"{'; '.join(text for _, text in faults)}; undo that, or build from {STAGES[first]}",
        details={"param_name": "from", "provided_value": stage, "errors": [text for _, text in faults]},
    )


def _options(request: LayoutRequest) -> dict[str, Any]:
    values = {each.name: getattr(request, each.name) for each in fields(request) if each.name not in NOT_STORED}
    files = {name: str(Path(values[name]).resolve()) for name in FILES if isinstance(values[name], str)}
    return {name: _plain(value) for name, value in (values | files).items()}


def _plain(value: Any) -> Any:
    """Return ``value`` as it is after it was written as JSON and read again."""
    return json.loads(json.dumps(value))


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:57]}..."


@dataclass(frozen=True)
class Surroundings:
    """What stored objects refer to.

    Attributes:
        technology: The process.
        layout: Holds the cells.
        ranks: Whether names that are read have the ranks with which they were written.
    """

    technology: Technology
    layout: kdb.Layout
    ranks: bool = True


def to_data(value: Any, around: Surroundings) -> Any:
    """Return ``value`` as JSON data.

    Raises:
        TypeError: If an object in it cannot be stored: it refers to another layout or technology, or is of a type
            that is neither in ``STORED`` nor one of Python's or KLayout's plain types.
    """
    if isinstance(value, RankedName):
        return {"is": "name", "at": [str(value), value.rank]}
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real):
        return float(value)
    if isinstance(value, tuple):
        return [to_data(each, around) for each in value]
    reference = _reference(value, around)
    if reference is not None:
        return reference
    if isinstance(value, list):
        return {"is": "list", "items": [to_data(each, around) for each in value]}
    if isinstance(value, (set, frozenset)):
        return {"is": type(value).__name__, "items": sorted((to_data(each, around) for each in value), key=str)}
    if isinstance(value, Mapping):
        return {"is": "map", "items": [[to_data(key, around), to_data(each, around)] for key, each in value.items()]}
    kind = type(value)
    if MODULES.get(kind.__qualname__) == kind.__module__:
        fields = {name: to_data(getattr(value, name), around) for name in _fields(kind)}
        return {"is": kind.__qualname__, **fields}
    raise TypeError(f"{kind.__module__}.{kind.__qualname__} cannot be stored")


def from_data(data: Any, around: Surroundings) -> Any:
    """Return the object that ``to_data`` wrote as ``data``.

    Raises:
        ValueError: If ``data`` is not of this version, or refers to a cell or flavour that ``around`` does not have.
    """
    try:
        return _restored(data, around, FOLDED)
    except (KeyError, TypeError, AttributeError, ImportError, RuntimeError) as error:
        raise ValueError(f"it was not written by this version ({type(error).__name__}: {error})") from error


def _reference(value: Any, around: Surroundings) -> dict[str, Any] | None:
    """Return a reference to something that the reader supplies, or a plain object of KLayout; None for others."""
    if isinstance(value, kdb.Box):
        return {"is": "box", "at": [value.left, value.bottom, value.right, value.top], "empty": value.empty()}
    if isinstance(value, kdb.Trans):
        return {"is": "trans", "at": str(value)}
    if isinstance(value, kdb.Region):
        return {"is": "region", "polygons": sorted(polygon.to_s() for polygon in value.each_merged())}
    if isinstance(value, kdb.Point):
        return {"is": "point", "at": [value.x, value.y]}
    if isinstance(value, (DeviceSpec, PassiveSpec)):
        if around.technology.any_device(value.name) != value:
            raise TypeError(f"{value.name} is not a device of technology {around.technology.name}")
        return {"is": "device", "name": value.name}
    ours = {kdb.Layout: around.layout, Technology: around.technology}
    if type(value) in ours:
        if value is not ours[type(value)]:
            raise TypeError(f"another {type(value).__name__.lower()} than that of the placement cannot be stored")
        return {"is": type(value).__name__.lower()}
    if isinstance(value, kdb.Cell):
        if value.layout() is not around.layout and around.layout.cell(value.name) is None:
            raise TypeError(f"cell {value.name} of another layout cannot be stored")
        return {"is": "cell", "name": value.name}
    return None


def _restored(data: Any, around: Surroundings, depth: int) -> Any:
    if depth == 0:
        raise ValueError(f"objects lie in each other more than {FOLDED} deep")
    if isinstance(data, list):
        return tuple(_restored(each, around, depth - 1) for each in data)
    if not isinstance(data, dict):
        return data
    name = data["is"]
    if name in _PLAIN:
        return _PLAIN[name](data, around, lambda each: _restored(each, around, depth - 1))
    kind = _kind(name)
    return kind(**{field: _restored(data[field], around, depth - 1) for field in _fields(kind)})


def _cell(data: Any, around: Surroundings, _: Callable[[Any], Any]) -> kdb.Cell:
    cell = around.layout.cell(data["name"])
    if cell is None:
        raise ValueError(f"the layout has no cell {data['name']}")
    return cell


_PLAIN: dict[str, Callable[[Any, Surroundings, Callable[[Any], Any]], Any]] = {
    "list": lambda data, _, restored: [restored(each) for each in data["items"]],
    "set": lambda data, _, restored: {restored(each) for each in data["items"]},
    "frozenset": lambda data, _, restored: frozenset(restored(each) for each in data["items"]),
    "map": lambda data, _, restored: {restored(key): restored(each) for key, each in data["items"]},
    "name": lambda data, around, _: RankedName(*data["at"]) if around.ranks else data["at"][0],
    "box": lambda data, _, __: kdb.Box() if data["empty"] else kdb.Box(*data["at"]),
    "point": lambda data, _, __: kdb.Point(*data["at"]),
    "region": lambda data, _, __: kdb.Region([kdb.Polygon.from_s(each) for each in data["polygons"]]),
    "trans": lambda data, _, __: kdb.Trans.from_s(data["at"]),
    "device": lambda data, around, _: around.technology.any_device(data["name"]),
    "layout": lambda _, around, __: around.layout,
    "technology": lambda _, around, __: around.technology,
    "cell": _cell,
}


def _fields(kind: type[Any]) -> tuple[str, ...]:
    """Return the names of what a dataclass is made from."""
    return tuple(field.name for field in dataclasses.fields(kind) if field.init)


@cache
def _kind(name: str) -> type[Any]:
    """Return the dataclass that a file calls ``name``, or ``module:name`` in version 1."""
    bare = name.rpartition(":")[2]
    if bare not in MODULES:
        raise ValueError(f"{name!r} is not a data object of this package")
    kind: type[Any] = getattr(importlib.import_module(MODULES[bare]), bare)
    return kind


class Progress:
    """Reports each stage as it begins, with the time since the build began, and measures what it costs.

    Attributes:
        done: Name, duration, CPU time and peak memory of each finished stage, as JSON data.
    """

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._begun = perf_counter()
        self.done: list[dict[str, Any]] = []

    def line(self, name: str, text: str) -> None:
        """Report what stage ``name`` is doing."""
        self._tell(f"{perf_counter() - self._begun:6.1f} s  {name:<10} {text}")

    @contextmanager
    def stage(self, name: str, text: str) -> Iterator[None]:
        """Within the block, stage ``name`` runs."""
        self.line(name, text)
        start, cpu = perf_counter(), cpu_s()
        yield
        entry = {"name": name, "duration_ms": round((perf_counter() - start) * 1000, 1)}
        self.done.append({**entry, "cpu_ms": round((cpu_s() - cpu) * 1000, 1), "peak_mb": peak_mb()})


def cpu_s() -> float:
    """Return the CPU time of this process and of its children that have ended. [s]"""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def peak_mb() -> float | None:
    """Return the most memory that this process has held so far; None where the system does not tell. [MB]"""
    try:
        import resource
    except ImportError:
        return None
    unit = 1 if sys.platform == "darwin" else 1024  # [bytes]
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6, 1)
