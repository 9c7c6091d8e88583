"""The job of a search or a suite: a layout is built, judged and measured by its objectives, where it is made.

Only the figures go back as the answer; the files of the workspace follow beside it.

Workers may not share a disk with the client: a job carries the texts of netlists, their includes and technology files.
"""

from __future__ import annotations

import json
import pkgutil
import re
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from layoutkit.circuit import read_netlist
from layoutkit.circuit.readers.source import NetlistText, read_text
from layoutkit.circuit.readers.spice_files import StatementReader
from layoutkit.errors import Findings, LayoutkitError, did_you_mean, sentences
from layoutkit.explore.scoreboard import STATED, row
from layoutkit.flow.build import FILES, build_layout
from layoutkit.flow.design import LayoutRequest, read_circuit
from layoutkit.flow.summary import faults, largest_offset
from layoutkit.layout.files import make_folder, read_bytes, write_bytes, write_json
from layoutkit.layout.workspace import Workspace
from layoutkit.technology import load, names
from layoutkit.view.comparison import value_at

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

CAPACITANCE, POST_LAYOUT, CHANGE = "capacitance", "post_layout", "post_layout_change"
REVIEW = ("review_must", "review_should")
OF_A_NAME: dict[str, dict[str, str]] = STATED["objectives_of_a_name"]
"""Objectives that are followed by a name, such as that of a net."""
_FORM = re.compile(r"(?:(min|max) )?([a-z_]+)(?: (\S+))?")
FUNCTION, MEASURES = f"{__name__}:build_and_measure", f"{__name__}:measures"
PATHS = ("netlist_path", "technology", "constraints")
"""Parameters that may name a file among the inputs of the job."""
Figures = dict[str, float | None]

_ROOMS = ("technology", "circuit", "layout", "draw", "place", "route", "extract", "drc", "lvs", "view", "flow")


@dataclass(frozen=True)
class Objective:
    """One figure that a search minimises or maximises.

    Attributes:
        name: As the request gives it, without its goal, such as ``area`` or ``capacitance out``.
        unit: Of its values.
        largest: Whether the largest value is the best.
        text: What it is.
    """

    name: str
    unit: str
    largest: bool
    text: str

    def named(self, *words: str) -> str:
        """Return what the objective is of, such as the net of a capacitance, if its first word is one of ``words``."""
        word, _, name = self.name.partition(" ")
        return name if word in words else ""

    def cost(self, figures: Mapping[str, float | None]) -> float | None:
        """Return the value, the smaller the better; None if the layout has none."""
        value = figures.get(self.name)
        return None if value is None else -value if self.largest else value

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON data."""
        return {"name": self.name, "unit": self.unit, "goal": "max" if self.largest else "min", "text": self.text}


_OFFSET_DIGITS = 3
"""Digits of predicted offsets [mV] and mirror errors [%]; a smaller difference is no property of the layouts."""


def _offset(report: Mapping[str, Any], unit: str) -> float | None:
    largest = largest_offset(report["matching"]["groups"], unit)
    return None if largest is None else round(largest, _OFFSET_DIGITS)


def _symmetry_error(report: Mapping[str, Any]) -> float | None:
    pairs = [each["mirror_error"] for each in report["routing"]["mirrored"] if len(each["nets"]) > 1]
    errors = [*pairs, *(each["symmetry_error"] for each in report["metrics"]["matching_metrics"])]
    return round(max(errors), 6) if errors else None


FIGURES: dict[str, dict[str, str]] = STATED["objectives"]
"""Objectives by name; ``figures_of`` computes those that state no place in the report of a build."""


def figures_of(report: Mapping[str, Any]) -> dict[str, float | None]:
    """Return the figures in the report of a build, None for those that it does not have."""
    found = {name: value_at(report, each.get("at", "")) for name, each in FIGURES.items()}
    computed = {"offset": _offset(report, "mV"), "mirror_error": _offset(report, "%")}
    return found | computed | {"symmetry_error": _symmetry_error(report)}


def objectives_of(texts: Sequence[str]) -> tuple[Objective, ...]:
    """Return the objectives that ``area``, ``min capacitance out`` or ``max aspect`` state.

    Raises:
        LayoutkitError: If there is none, or one is unknown; the details list every fault.
    """
    found: dict[str, Objective] = {}
    faults = [] if texts else ["give at least one objective"]
    for text in texts:
        form = _FORM.fullmatch(text)
        goal, word, of = form.groups() if form else (None, text, None)
        if word in OF_A_NAME and of:
            stated = OF_A_NAME[word]
        elif word in FIGURES and not of:
            stated = FIGURES[word]
        else:
            known = [*FIGURES, *(f"{each} {stated['of']}" for each, stated in OF_A_NAME.items())]
            faults.append(f"unknown objective {text!r}{did_you_mean(word, known)}; allowed: {', '.join(known)}")
            continue
        name = f"{word} {of}" if of else word
        if name in found:
            faults.append(f"{name} is stated twice")
        found[name] = Objective(name, stated.get("unit", ""), goal == "max", stated["text"].format(of))
    if faults:
        raise LayoutkitError(sentences(faults), details={"param_name": "objectives", "errors": faults})
    return tuple(found.values())


def front_of(costs: Mapping[int, Sequence[float]]) -> tuple[list[int], dict[int, int]]:
    """Return which entries no other one beats, and for each of the others one of those that beat or equal it.

    One entry beats another if it is nowhere worse and somewhere better. Of equal ones the first is kept.

    Args:
        costs: By number; the smaller, the better, in each place.
    """
    best: list[int] = []
    beaten: dict[int, int] = {}
    for number in sorted(costs, key=lambda each: (tuple(costs[each]), each)):
        # in this order, whatever beats an entry comes before it
        by = next((each for each in best if all(a <= b for a, b in zip(costs[each], costs[number], strict=True))), None)
        if by is None:
            best.append(number)
        else:
            beaten[number] = by
    return sorted(best), beaten


def prepare(params: Mapping[str, Any]) -> None:
    """Import what a build imports as it gets there, which takes a second, and read the technology."""
    _import_rooms()
    load(params["build"]["technology"])


@lru_cache(maxsize=1)
def _import_rooms() -> None:
    for name in ("importlib.metadata", "klayout.lay", "klayout.rdb"):
        import_module(name)
    for room in _ROOMS:
        for module in pkgutil.iter_modules([str(Path(__file__).parents[1] / room)]):
            if not module.name.startswith("__"):
                import_module(f"layoutkit.{room}.{module.name}")


def build_and_measure(params: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return the verdict and the figures of a layout.

    Args:
        params: ``build``: those of ``flow.build_layout``; ``nets``: those whose capacitance is wanted;
            ``measurements``: those of the post-layout test bench, which ``build`` asks for; ``board``: whether the
            figures of the scoreboard are wanted.
        folder: The workspace.

    Returns:
        ``faults``: sentences, none if the layout is clean; ``layout_sha256``; ``figures`` by objective, None where a
        layout has none; ``notes``; ``row`` if it is wanted.

    Raises:
        LayoutkitError: If the netlist cannot be laid out.
    """
    report = _build(params["build"], folder)
    found = faults(report)
    figures = figures_of(report)
    notes: list[str] = []
    if not found:
        extracted, notes = _extracted(report, params, folder)
        figures |= extracted
    if replaced := sum(len(entry["devices"]) for entry in report["replaced_devices"]):
        notes.append(f"complete with replaced devices: {replaced} of {report['circuit']['device_count']}")
    answer = {
        "faults": found,
        "layout_sha256": report["layout_sha256"],
        "devices": report["circuit"]["device_count"],
        "figures": figures,
        "notes": notes,
    }
    return {**answer, "row": row(folder)} if params.get("board") else answer


def measures(params: Mapping[str, Any], folder: Path) -> list[str]:
    """Return the names of what the test bench measures on the netlist, before anything is laid out.

    Args:
        params: As for ``build_and_measure``.
        folder: Holds the inputs.

    Raises:
        LayoutkitError: If ngspice or models are missing, or the netlist cannot be simulated.
    """
    from layoutkit.simulate.post_layout import measurements_of

    build = _with_inputs(params["build"], folder)
    technology = load(build["technology"])
    return measurements_of(read_circuit(LayoutRequest.of(build), technology)[0], technology)


def _build(params: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return the report of ``flow.build_layout`` with these parameters, as JSON data.

    A file that they name is among the job's inputs, in ``folder``, which becomes the workspace.
    """
    report = build_layout(LayoutRequest.of({**_with_inputs(params, folder), "workspace": str(folder)}))
    missing = [name for name in (FILES["gds"], FILES["summary"]) if not (folder / name).is_file()]
    if missing and params.get("until") is None:
        raise LayoutkitError(f"the build left no {' and no '.join(missing)}")
    answer: dict[str, Any] = json.loads(json.dumps(report))
    _state_names(folder)
    return answer


def _with_inputs(params: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return the parameters with the paths, in ``folder``, of the files that are inputs of the job."""
    return {**params, **{name: str(folder / params[name]) for name in PATHS if _is_input(params.get(name), folder)}}


def _state_names(folder: Path) -> None:
    """Name the files in ``summary.json`` relative to itself: a job's folder gets another name when it is finished."""
    path = folder / FILES["summary"]
    if path.is_file():
        summary = json.loads(path.read_text(encoding="utf-8"))
        summary["files"] = {kind: Path(name).relative_to(folder).as_posix() for kind, name in summary["files"].items()}
        write_json(path, summary)


def _is_input(name: Any, folder: Path) -> bool:
    return isinstance(name, str) and (folder / name).is_file()


def _extracted(report: Mapping[str, Any], params: Mapping[str, Any], folder: Path) -> tuple[Figures, list[str]]:
    """Return the figures that need the parasitics of the layout, and why one is not known."""
    after = report.get("post_layout")
    nets, measurements = params.get("nets", []), params.get("measurements", [])
    known, notes = ({}, []) if not nets else _of_report(after) if after else _capacitances(folder, params)
    figures: Figures = {f"{CAPACITANCE} {net}": known.get(net) for net in nets}
    notes += [f"the layout has no net {net}, whose capacitance is wanted" for net in nets if net not in known]
    if after and measurements:
        simulated, more = _simulated(after["simulation"], measurements)
        figures |= simulated
        notes += more
    return figures, notes


def _of_report(after: Mapping[str, Any]) -> tuple[dict[str, float], list[str]]:
    """Return the capacitance of each net as the build extracted it, and what it could not. [fF]"""
    parasitics = after["parasitics"]
    return {each["net"]: each["total_ff"] for each in parasitics.get("nets", ())}, list(parasitics["unchecked"])


def _capacitances(folder: Path, params: Mapping[str, Any]) -> tuple[dict[str, float], list[str]]:
    """Return the capacitance of each net of the layout, and what could not be extracted. [fF]"""
    from layoutkit.parasitics.parasitic_extraction import PexOptions, extract_parasitics

    workspace = Workspace(str(folder))
    circuit = read_netlist(str(workspace.circuit_path), identify_modules=False)
    options = PexOptions(mode="c", waived_layers=tuple(params["build"].get("waived_layers", ())))
    found = extract_parasitics(workspace.read_layout(), circuit, workspace.technology(None), options)
    return {each.net: round(each.total_fF, 4) for each in found.nets}, list(found.unchecked)


def _simulated(compared: Mapping[str, Any], names: Sequence[str]) -> tuple[Figures, list[str]]:
    """Return what a test bench measures with the parasitics, and how much it changes; the offset without its sign."""
    corners = compared.get("corners", ())
    found = {each["name"]: each for each in corners[0]["measurements"]} if corners else {}
    figures: Figures = {}
    missing = []
    for name in names:
        measured = found.get(name, {})
        value, change = measured.get("extracted"), measured.get("change_percent", measured.get("change"))
        figures[f"{POST_LAYOUT} {name}"] = abs(value) if name == "offset" and value is not None else value
        figures[f"{CHANGE} {name}"] = None if change is None else abs(change)
        if value is None:
            missing.append(f"the test bench did not measure {name}; it measured {', '.join(found) or 'nothing'}")
    return figures, [*missing, *compared.get("unchecked", ())]


FOLDER = "netlist"


@dataclass(frozen=True)
class NetlistInputs:
    """The texts of a netlist.

    Attributes:
        main: Path of the netlist below the folder of its copy.
        texts: Every file by its path there, the netlist first.
    """

    main: str
    texts: Mapping[str, str]

    @classmethod
    def of(cls, netlist: str | NetlistText) -> NetlistInputs:
        """Return the texts of a netlist; includes lie in its own folder, all others are not read anyway.

        Raises:
            LayoutkitError: If it cannot be read.
        """
        if isinstance(netlist, NetlistText):
            name = f"{FOLDER}/{netlist.stem}.spice"
            return cls(name, {name: read_text(netlist)})
        path = Path(netlist).resolve()
        files = [Path(netlist)]
        if path.suffix.lower() != ".json":
            reader = StatementReader(Path(netlist), Findings())
            for _ in reader.statements():  # faults are reported where the circuit is read
                pass
            files += reader.included
        names = [f"{FOLDER}/{path.name}", *(f"{FOLDER}/{each.relative_to(path.parent)}" for each in files[1:])]
        return cls(names[0], {name: read_text(file) for name, file in zip(names, files, strict=True)})

    def save(self, folder: Path) -> Path:
        """Write the texts below ``folder`` and return the path of the netlist there."""
        for name, text in self.texts.items():
            path = folder / name
            make_folder(path.parent)
            write_bytes(path, text.encode("utf-8"))
        return folder / self.main


def technology_input(technology: str) -> tuple[str, dict[str, str]]:
    """Return what a job calls a technology, and its file among the job's inputs, none for a shipped one.

    Raises:
        LayoutkitError: If the file cannot be read.
    """
    if technology in names():
        return technology, {}
    name = f"technology/{Path(technology).name}"
    return name, {name: read_bytes(technology).decode("utf-8", "replace")}
