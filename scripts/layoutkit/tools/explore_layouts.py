"""``flow.explore_layouts``: many layouts of one netlist are compared, or many netlists are laid out once each."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from layoutkit.circuit import given_netlist
from layoutkit.circuit.constraints import Constraints
from layoutkit.errors import FileError, LayoutkitError, sentences
from layoutkit.explore.exploration import FRONT, PAGE, RESULT, LayoutSearch, explore
from layoutkit.explore.jobs import JobRunOptions, Limits, LocalProcesses, Where
from layoutkit.explore.layout_job import NetlistInputs, objectives_of
from layoutkit.explore.netlist_suite import BOARD, run_suite, suite_entries
from layoutkit.explore.netlist_suite import PAGE as BOARD_PAGE
from layoutkit.explore.scoreboard import slower, worse
from layoutkit.explore.search_space import Space, option_faults
from layoutkit.flow.design import constraints_data
from layoutkit.layout.files import read_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


SHOWN = 50
"""Layouts that are not in the front and that an answer lists; the file holds all."""
OF_A_SEARCH = {"space": {}, "objectives": ["area", "wire_length"], "layouts": 16, "seed": 1, "constraints": None}
"""Parameters that a suite does not take, with their defaults."""
Answer = tuple[dict[str, Any], list[str]]


def run(params: Mapping[str, Any], tell: Callable[[str], None]) -> Answer:
    """Return the answer and what is wrong, in words: nothing clean in a search, or worse than an earlier board.

    Args:
        params: Those of ``flow.explore_layouts``.
        tell: Receives a line for each layout as it is finished.

    Raises:
        LayoutkitError: If the request cannot be run.
    """
    return _suite(params, tell) if "netlist_folders" in params else _search(params, tell)


def _where(params: Mapping[str, Any]) -> Where:
    """Return where the layouts are made.

    Raises:
        LayoutkitError: If a cluster and what is of this machine are both given.
    """
    tls = {name: params[f"tls_{name}"] for name in ("ca", "cert", "key") if f"tls_{name}" in params}
    if "scheduler" not in params:
        if tls:
            raise LayoutkitError("tls_ca, tls_cert and tls_key are of a cluster; give its scheduler")
        return LocalProcesses(params.get("workers"))
    if "workers" in params:
        raise LayoutkitError("workers is of this machine; a cluster has as many as its scheduler knows")
    from layoutkit.explore.dask_cluster import DaskCluster

    return DaskCluster(params["scheduler"], **tls)


def _run_options(params: Mapping[str, Any]) -> JobRunOptions:
    limits = Limits(params["seconds_each"]) if "seconds_each" in params else Limits()
    return JobRunOptions(_where(params), params.get("seconds"), limits, params.get("resume", False))


def _search(params: Mapping[str, Any], tell: Callable[[str], None]) -> Answer:
    if "against" in params:
        raise LayoutkitError("against compares boards of netlist_folders; give it with those")
    options = dict(params.get("options", {}))
    if "constraints" in params:
        options["constraints"] = constraints_data(params["constraints"])
        Constraints.from_json(options["constraints"])  # refuses another format here, once
    search = LayoutSearch(
        netlist=NetlistInputs.of(given_netlist(params)),
        space=Space.of(params.get("space", {}), params.get("technologies", ["generic"]), options),
        objectives=objectives_of(params.get("objectives", OF_A_SEARCH["objectives"])),
        folder=Path(params["workspace"]),
        layouts=params.get("layouts", 16),
        seed=params.get("seed", 1),
        run=_run_options(params),
    )
    result = explore(search, tell)
    files = {"page": str(search.folder / PAGE), "result": str(search.folder / RESULT)}
    answer = {
        **{name: result[name] for name in ("objectives", "space_size", "sampling", "progress")},
        "front": [_shown(each, search.folder) for each in result["layouts"] if each["status"] == FRONT],
        "others": [_left_out(each) for each in result["layouts"] if each["status"] != FRONT][:SHOWN],
        "files": files,
    }
    return answer, [] if answer["front"] else ["no layout is clean and has all figures; others says why"]


def _shown(layout: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    workspace = folder / layout["folder"]
    shown = {name: layout[name] for name in ("number", "point", "figures", "layout_sha256", "parameters")}
    shown["figures"] = {name: value for name, value in layout["figures"].items() if value is not None}
    return {**shown, "workspace": str(workspace), "report": str(workspace / "report.html")}


def _left_out(layout: Mapping[str, Any]) -> dict[str, Any]:
    return {name: layout.get(name, "") for name in ("number", "status", "reason", "point")}


def _suite(params: Mapping[str, Any], tell: Callable[[str], None]) -> Answer:
    options = dict(params.get("options", {}))
    stated = [name for name, default in OF_A_SEARCH.items() if params.get(name, default) != default]
    faults = [f"{name} is of a search of one netlist, not of netlist_folders" for name in stated]
    faults += [f"{name} and netlist_folders: give one" for name in ("netlist_path", "netlist_text") if name in params]
    faults += option_faults(options)
    if faults:
        raise LayoutkitError(sentences(faults), details={"param_name": "netlist_folders", "errors": faults})
    committed = _board(params["against"]) if "against" in params else None
    folder = Path(params["workspace"])
    run = _run_options(params)
    entries = suite_entries(params["netlist_folders"], params.get("technologies", ["generic"]), folder)
    board = run_suite(entries, folder, options, run, tell)
    rows = board["rows"]
    failed = [
        {"name": key, "status": "not clean" if row["status"] == "done" else row["status"], "reason": row["error"]}
        for key, row in rows.items()
        if row["status"] != "done" or "error" in row
    ]
    answer = {
        "layouts": len(rows),
        "clean": len(rows) - len(failed),
        "others": failed,
        "files": {"page": str(folder / BOARD_PAGE), "result": str(folder / BOARD)},
    }
    if committed is None:
        return answer, []
    found = worse(board, committed)
    answer |= {"worse": found, "slower": slower(board, committed)}
    return answer, [f"{len(found)} figures are worse by more than 3 %"] if found else []


def _board(path: str) -> dict[str, Any]:
    try:
        board = json.loads(read_bytes(path))
        if isinstance(board["rows"], dict):
            return board  # type: ignore[no-any-return]
    except (ValueError, KeyError, TypeError):
        pass
    raise FileError(f"{path} is no board.json of a suite", details={"param_name": "against", "path": path})
