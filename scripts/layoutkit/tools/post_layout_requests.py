"""The tools for what wires add to a circuit.

``pex.extract_parasitics``: resistance and capacitance of the nets of the current layout.

``sim.compare_post_layout``: a test bench on the netlist and on what its layout made of it.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from layoutkit.circuit import Circuit, ModelNames, given_netlist, map_circuit, recognised
from layoutkit.circuit.constraint_faults import check_constraints
from layoutkit.circuit.replaced_devices import replaced_data
from layoutkit.circuit.suggested_constraints import suggest_constraints
from layoutkit.errors import FileError, LayoutkitError, listed
from layoutkit.flow.design import read_constraints
from layoutkit.layout.files import check_target, read_bytes, write_bytes
from layoutkit.layout.reports import noted
from layoutkit.layout.workspace import Workspace
from layoutkit.layout.workspace_record import STORED_FILES
from layoutkit.simulate.ngspice import MAX_TEXT
from layoutkit.simulate.post_layout import Request, compare_post_layout, offsets_apart
from layoutkit.tools.current_layout import CurrentLayout
from layoutkit.tools.layout_checks import READING, NetlistComparison
from layoutkit.tools.netlist_request import read_with_supplies
from sturdy.near_names import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Mapping

    from layoutkit.circuit.constraints import Constraints
    from layoutkit.parasitics.net_network import Parasitics
    from layoutkit.technology import Technology


class ParasiticsRequest:
    """One extraction; the request is checked before the layout is read.

    Args:
        params: Input of ``pex.extract_parasitics``.
        current: The layout to extract.

    Raises:
        LayoutkitError: If the netlist or the constraints cannot be read, no file can be written, or the netlist lacks
            a net that ``net_names`` gives.
    """

    def __init__(self, params: Mapping[str, Any], current: CurrentLayout) -> None:
        self.params = params
        self.current = current
        self.comparison = NetlistComparison({**READING, **params}, current)
        nets = list(self.comparison.circuit.nets)
        unknown = [net for net in params.get("net_names", ()) if net not in nets]
        if unknown:
            raise LayoutkitError(
                f"the netlist has no net {listed(unknown)}{did_you_mean(unknown[0], nets)}; it has: {listed(nets)}",
                details={"param_name": "net_names", "provided_value": unknown},
            )
        for path in self._targets().values():
            check_target(path)
        self.constraints = self._constraints()

    def run(self) -> Parasitics:
        """Read the layout and return its parasitics."""
        from layoutkit.parasitics.external_engines import ExternalRun, external_parasitics
        from layoutkit.parasitics.parasitic_extraction import PexOptions, extract_parasitics

        params, technology = self.params, self.comparison.technology
        options = PexOptions(
            mode=params["mode"],
            cell_name=params.get("cell_name"),
            constraints=self.constraints,
            waived_layers=tuple(params["waived_layers"]),
        )
        layout = self.current.read()
        if params["engine"] == "builtin":
            return extract_parasitics(layout, self.comparison.circuit, technology, options)
        run = ExternalRun(params["engine"], params["timeout_s"])
        return external_parasitics(layout, self.comparison.circuit, technology, options, run)

    def data(self, found: Parasitics) -> dict[str, Any]:
        """Return the figures of the nets in ``net_names``, or of all, as JSON data."""
        answer = parasitics_data(found)
        asked = self.params.get("net_names")
        if asked is not None:
            answer["nets"] = [net for net in answer["nets"] if net["net"] in asked]
            answer["pairs"] = [pair for pair in answer["pairs"] if set(asked) & set(pair["nets"])]
        return answer

    def replaced(self) -> dict[str, Any]:
        """Return the devices that are others than the netlist names, as JSON data."""
        return {"replaced_devices": replaced_data(self.comparison.circuit, self.comparison.technology)}

    def write(self, found: Parasitics) -> dict[str, str]:
        """Write the netlist and SPEF; return all files by what they are."""
        files = {"layout": str(self.current.path), "netlist": str(self.comparison.netlist)}
        sources = self.current.sources(circuit=not self.comparison.given)
        for name, path in self._targets().items():
            text = found.spice if name == "spice" else found.spef
            if text:
                write_bytes(path, noted(text.encode(), sources))
                files[name] = str(path)
        self.current.add_reports(*(files[name] for name in ("spice", "spef") if name in files))
        return files

    def _targets(self) -> dict[str, Path]:
        """Return the files to write: in the named folder, else in the workspace whose layout this is."""
        folder = self.params.get("output_dir")
        if folder is None:
            if not self.current.is_of_workspace:
                return {}
            folder = self.current.path.parent
        name = re.sub(r"[^\w.-]", "_", self.comparison.circuit.name) or "cell"
        return {"spice": Path(folder) / f"{name}.pex.spice", "spef": Path(folder) / f"{name}.spef"}

    def _constraints(self) -> Constraints:
        """Return the constraints: those given, those the workspace's layout was made with, else the suggested ones."""
        given, circuit = self.params.get("constraints"), self.comparison.circuit
        if given is None and (used := self.current.used_constraints()) is not None:
            given = str(used)
        if given is None:
            return suggest_constraints(circuit)
        constraints = read_constraints(given)
        check_constraints(constraints, circuit)
        return constraints


def parasitics_data(found: Parasitics) -> dict[str, Any]:
    """Return the figures as JSON data."""
    return {
        "cell_name": found.cell,
        "total_ff": round(found.total_fF, 4),
        "nets": [net.to_json() for net in found.nets],
        "pairs": [pair.to_json() for pair in found.pairs],
        "elements": {"resistors": len(found.elements.resistors), "capacitors": len(found.elements.capacitors)},
        "unchecked": list(found.unchecked),
    }


SUMMARY = "summary.json"
OF_A_REQUEST = {"models": "models", "bench": "bench", "values": "values", "corners": "corners", "seed": "seed",
                "monte_carlo": "samples", "limits": "limits", "jobs": "jobs", "timeout_s": "timeout_s"}  # fmt: skip


def compare(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the comparison as JSON data.

    The circuit is ``netlist_path`` or ``netlist_text``, else that of the workspace. The layout's netlist is
    ``extracted_path``, else extracted now from the workspace's layout.

    Raises:
        LayoutkitError: If ngspice is missing, or an input cannot be read or used.
    """
    current = CurrentLayout(params)
    technology = current.technology()
    own = "netlist_path" in params or "netlist_text" in params
    source = given_netlist(params) if own else str(Workspace(params.get("workspace")).circuit_path)
    read = read_with_supplies(
        params,
        source,
        top=params.get("top"),
        identify_modules=False,
        names=ModelNames(technology, params.get("device_map")),
    )
    mapped = map_circuit(read, technology)
    circuit = recognised(mapped)
    warnings = [*circuit.warnings]
    text, told = _extracted(params, current, circuit, technology)
    given = {field: params[name] for name, field in OF_A_REQUEST.items() if name in params}
    deck = _text(params["deck_path"]) if "deck_path" in params else ""
    answer = compare_post_layout(Request(circuit, technology, text, deck=deck, **given))
    return {
        **answer,
        "unchecked": [*answer["unchecked"], *told],
        **offsets_apart(answer, measured_groups(params)),
        "technology": technology.name,
        "replaced_devices": replaced_data(circuit, technology),
        "warnings": [*warnings, *current.warnings],
    }


def _extracted(
    params: Mapping[str, Any], current: CurrentLayout, circuit: Circuit, technology: Technology
) -> tuple[str, list[str]]:
    """Return the layout's netlist, and what its extraction left out."""
    if "extracted_path" in params:
        return _text(params["extracted_path"]), []
    from layoutkit.parasitics.parasitic_extraction import extract_parasitics

    found = extract_parasitics(current.read(), circuit, technology)
    return found.spice, [f"parasitics: {text}" for text in found.unchecked]


def _text(path: str) -> str:
    return read_bytes(path, max_bytes=MAX_TEXT).decode("utf-8", "replace")


def measured_groups(params: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the matched groups that a build measured in this workspace.

    Raises:
        FileError: If the summary was changed, so that their offsets cannot be read.
    """
    workspace = Workspace(params.get("workspace"))
    if "extracted_path" in params or not workspace.path(SUMMARY).is_file():
        return []
    summary = workspace.read_json(SUMMARY)
    if not STORED_FILES.accepts(summary, "matching"):
        raise FileError(
            f"{workspace.path(SUMMARY)} does not state matching.groups as a build does; build the layout again"
        )
    return list((summary.get("matching") or {}).get("groups", [])) if isinstance(summary, dict) else []
