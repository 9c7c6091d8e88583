"""The job that lays out a netlist: the function ``layoutkit.explore.layout_job:build`` of a job."""

from __future__ import annotations

import json
import pkgutil
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from layoutkit.errors import LayoutkitError
from layoutkit.flow.build import FILES, build_layout
from layoutkit.flow.design import LayoutRequest
from layoutkit.layout.files import write_json
from layoutkit.technology import load

if TYPE_CHECKING:
    from collections.abc import Mapping

FUNCTION = f"{__name__}:build"
PATHS = ("netlist_path", "technology", "constraints")
"""Parameters that may name a file among the inputs of the job."""

_ROOMS = ("technology", "circuit", "layout", "draw", "place", "route", "extract", "drc", "lvs", "view", "flow")


def prepare(params: Mapping[str, Any]) -> None:
    """Import what a build imports as it gets there, which takes a second, and read the technology."""
    _import_rooms()
    load(params["technology"])


@lru_cache(maxsize=1)
def _import_rooms() -> None:
    for name in ("importlib.metadata", "klayout.lay", "klayout.rdb"):
        import_module(name)
    for room in _ROOMS:
        for module in pkgutil.iter_modules([str(Path(__file__).parents[1] / room)]):
            if not module.name.startswith("__"):
                import_module(f"layoutkit.{room}.{module.name}")


def build(params: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return the report of ``flow.build_layout`` with these parameters, as JSON data.

    Args:
        params: Those of ``flow.build_layout``. A file that they name is among the job's inputs, in ``folder``.
        folder: The workspace.

    Raises:
        LayoutkitError: If the netlist cannot be laid out.
    """
    report = build_layout(LayoutRequest.of({**with_inputs(params, folder), "workspace": str(folder)}))
    missing = [name for name in (FILES["gds"], FILES["summary"]) if not (folder / name).is_file()]
    if missing and params.get("until") is None:
        raise LayoutkitError(f"the build left no {' and no '.join(missing)}")
    answer: dict[str, Any] = json.loads(json.dumps(report))
    _state_names(folder)
    return answer


def with_inputs(params: Mapping[str, Any], folder: Path) -> dict[str, Any]:
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
