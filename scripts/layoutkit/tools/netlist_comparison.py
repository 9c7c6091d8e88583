"""``lvs.run_check``: compare the current layout with the netlist it was made from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from layoutkit.circuit import (
    MapOptions,
    ModelNames,
    Target,
    given_netlist,
    join_taps,
    map_circuit,
    read_netlist,
    read_widths,
)
from layoutkit.circuit.readers.source import NetlistText
from layoutkit.extract.extractor import extract
from layoutkit.layout.cells import choose_cell
from layoutkit.layout.workspace import Workspace
from layoutkit.lvs.compare import compare
from layoutkit.lvs.lvs_files import write_extracted, write_report
from layoutkit.lvs.shorts import with_shorts_located

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import klayout.db as kdb

    from layoutkit.circuit import Circuit
    from layoutkit.lvs.lvs_result import LvsResult
    from layoutkit.tools.current_layout import CurrentLayout


class NetlistComparison:
    """One comparison of the current layout with a netlist; the request is checked before the layout is read.

    Args:
        params: Input of ``lvs.run_check``.
        current: The layout to compare.

    Raises:
        LayoutkitError: If the netlist cannot be read or mapped to the technology.
        FileError: If a report would replace an input.
    """

    def __init__(self, params: Mapping[str, Any], current: CurrentLayout) -> None:
        self.params = params
        self.current = current
        self.technology = current.technology()
        self.given = "netlist_path" in params or "netlist_text" in params
        self.netlist: str | Path | NetlistText = (
            given_netlist(params) if self.given else Workspace(params.get("workspace")).circuit_path
        )
        inputs = () if isinstance(self.netlist, NetlistText) else (self.netlist,)
        for name in ("report_path", "extracted_path"):
            if name in params:
                current.check_target(params[name], *inputs)
        self.circuit = self._circuit()

    def _circuit(self) -> Circuit:
        params = self.params
        circuit = read_netlist(
            self.netlist,
            top=params.get("top") or None,
            identify_modules=False,
            black_boxes=params.get("black_boxes", ()),
            parameters=params.get("parameters"),
            names=ModelNames(self.technology, params.get("device_map")),
            keep_parasitics=params.get("keep_parasitics", False),
        )
        if not params["map_devices"]:
            return join_taps(read_widths(circuit, params["width_per"]))
        options = MapOptions(width_per=params["width_per"])
        return map_circuit(circuit, Target.from_technology(self.technology), options).circuit

    def run(self) -> LvsResult:
        """Read the layout, extract its circuit and return the comparison."""
        layout = self.current.read()
        return with_shorts_located(layout, self._compared(layout), self._compared)

    def _compared(self, layout: kdb.Layout) -> LvsResult:
        cell = choose_cell(layout, self.params.get("cell_name"))
        made = self.technology.made_for(device.model for device in self.circuit.devices)
        extraction = extract(layout, cell, made, waived_layers=self.params["waived_layers"])
        return compare(extraction, self.circuit, tolerance=self.params["tolerance"])

    def write(self, result: LvsResult) -> dict[str, str]:
        """Write the database and the extracted netlist that the request names; return all files by what they are."""
        files = {"layout": str(self.current.path), "netlist": str(self.netlist)}
        reports = []
        if "report_path" in self.params:
            files["report"] = self.params["report_path"]
            write_report(result, files["report"], self.current.sources(circuit=not self.given))
            reports.append(files["report"])
        if "extracted_path" in self.params:
            files["extracted"] = self.params["extracted_path"]
            write_extracted(result.extraction, files["extracted"], self.current.sources())
            reports.append(files["extracted"])
        self.current.add_reports(*reports)
        return files
