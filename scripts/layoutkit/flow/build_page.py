"""What the page of a finished build shows beside its report: nets, command, options, versions and digests."""

from __future__ import annotations

import hashlib
import json
import shlex
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from layoutkit.flow.design import LayoutRequest
from layoutkit.flow.drawn_nets import nets_data
from layoutkit.flow.summary import faults
from layoutkit.layout.provenance import CIRCUIT, LAYOUT, sha256_of
from layoutkit.view.drawing_data import drawing_data
from layoutkit.view.report_inputs import ReportInputs
from layoutkit.view.report_page import report_page

if TYPE_CHECKING:
    from collections.abc import Mapping

    import klayout.db as kdb

    from layoutkit.circuit.circuit import Circuit
    from layoutkit.flow.stage_record import StageRecord
    from layoutkit.lvs.lvs_result import LvsResult

PROGRAMS = ("analog-layout-skills", "klayout")
NAMED_ONLY = ("netlist_path", "constraints")
"""Options that are files: the page has their names without folders, which say nothing elsewhere, and their digests."""


def build_page(
    report: Mapping[str, Any],
    record: StageRecord,
    circuit: Circuit,
    result: LvsResult,
    cell: kdb.Cell,
    png: bytes,
) -> str:
    """Return the page of a build whose stages are all finished, without their times.

    Args:
        report: Report of the build.
        record: Holds its options.
        circuit: What was laid out.
        result: Comparison of the layout with it; its nets are shown.
        cell: The finished layout.
        png: Picture of it.
    """
    options = {name: _shown(name, value) for name, value in record.options.items()}
    technology, sha256 = PurePath(record.technology[0]).name, record.technology[1]
    versions = {name: release for name in PROGRAMS if (release := _release(name))}
    return report_page(
        ReportInputs(
            report={"remaining_stages": [], **report},
            circuit=circuit.to_json(),
            drawing=drawing_data(cell, result.extraction.technology),
            nets=nets_data(result, circuit),
            picture=png,
            faults=faults(report),
            command=_command(options, technology),
            options=options,
            versions=versions,
            digests={
                LAYOUT: report[LAYOUT],
                CIRCUIT: report[CIRCUIT],
                "netlist": _digest(record.options, "netlist_path", "netlist_text"),
                "constraints file": _digest(record.options, "constraints", ""),
                "technology file": sha256,
            },
        )
    )


def _release(name: str) -> str:
    """Return the version of an installed program; empty if it is not installed as one, such as in a copied skill."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def _shown(name: str, value: Any) -> Any:
    return PurePath(value).name if name in NAMED_ONLY and isinstance(value, str) else value


def _digest(options: Mapping[str, Any], path: str, text: str) -> str | None:
    """Return the SHA-256 of the file or the text that an option gives, None where it gives none."""
    given, written = options.get(path), options.get(text)
    if isinstance(given, str):
        return sha256_of(given)
    return hashlib.sha256(written.encode()).hexdigest() if isinstance(written, str) else None


def _command(options: Mapping[str, Any], technology: str) -> str:
    """Return the command with all options that are not the usual ones; it runs where the files it names are."""
    usual = json.loads(json.dumps(vars(LayoutRequest())))
    params = {"technology": technology, **{name: value for name, value in options.items() if value != usual.get(name)}}
    params["seed"] = options.get("seed", usual["seed"])
    words = [
        "skillpack",
        "run",
        "flow.build_layout",
        "--params",
        json.dumps(params, ensure_ascii=False, sort_keys=True),
    ]
    return shlex.join(words)
