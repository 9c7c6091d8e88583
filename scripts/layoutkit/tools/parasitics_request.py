"""``pex.extract_parasitics``: resistance and capacitance of the nets of the current layout."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from layoutkit.circuit.constraint_faults import check_constraints
from layoutkit.circuit.replaced_devices import replaced_data
from layoutkit.circuit.suggested_constraints import suggest_constraints
from layoutkit.flow.design import read_constraints
from layoutkit.layout.files import check_target, write_bytes
from layoutkit.layout.provenance import noted
from layoutkit.tools.netlist_comparison import NetlistComparison

if TYPE_CHECKING:
    from collections.abc import Mapping

    from layoutkit.circuit.constraints import Constraints
    from layoutkit.parasitics.net_parasitics import Parasitics
    from layoutkit.tools.current_layout import CurrentLayout

_USED_CONSTRAINTS = "used_constraints.json"
_READING = {"tolerance": None, "black_boxes": ()}


@dataclass(frozen=True)
class ParasiticsRequest:
    """One extraction; the request is checked before the layout is read.

    Attributes:
        params: Input of ``pex.extract_parasitics``.
        current: The layout to extract.
        comparison: The netlist.
    """

    params: Mapping[str, Any]
    current: CurrentLayout
    comparison: NetlistComparison

    @classmethod
    def read(cls, params: Mapping[str, Any], current: CurrentLayout) -> ParasiticsRequest:
        """Return the request.

        Raises:
            LayoutkitError: If the netlist or the constraints cannot be read, or no file can be written.
        """
        request = cls(params, current, NetlistComparison({**_READING, **params}, current))
        for path in request._targets().values():
            check_target(path)
        request._constraints()
        return request

    def run(self) -> Parasitics:
        """Read the layout and return its parasitics."""
        from layoutkit.parasitics.external_engines import ExternalRun, external_parasitics
        from layoutkit.parasitics.parasitic_extraction import PexOptions, extract_parasitics

        params, technology = self.params, self.comparison.technology
        options = PexOptions(
            mode=params["mode"],
            cell_name=params.get("cell_name"),
            constraints=self._constraints(),
            waived_layers=tuple(params["waived_layers"]),
        )
        layout = self.current.read()
        if params["engine"] == "builtin":
            return extract_parasitics(layout, self.comparison.circuit, technology, options)
        run = ExternalRun(params["engine"], params["timeout_s"])
        return external_parasitics(layout, self.comparison.circuit, technology, options, run)

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
                write_bytes(path, noted(text.encode(), sources) if name == "spice" else text.encode())
                files[name] = str(path)
        self.current.add_reports(*(files[name] for name in ("spice", "spef") if name in files))
        return files

    def _targets(self) -> dict[str, Path]:
        """Return the files to write: in the named folder, else in the workspace whose layout this is."""
        folder = self.params.get("output_dir")
        if folder is None:
            if not self._of_workspace:
                return {}
            folder = self.current.path.parent
        name = re.sub(r"[^\w.-]", "_", self.comparison.circuit.name) or "cell"
        return {"spice": Path(folder) / f"{name}.pex.spice", "spef": Path(folder) / f"{name}.spef"}

    def _constraints(self) -> Constraints:
        """Return the constraints: those given, those the workspace's layout was made with, else the suggested ones."""
        given, circuit = self.params.get("constraints"), self.comparison.circuit
        used = self.current.path.parent / _USED_CONSTRAINTS
        if given is None and self._of_workspace and used.is_file():
            given = str(used)
        if given is None:
            return suggest_constraints(circuit)
        constraints = read_constraints(given)
        check_constraints(constraints, circuit)
        return constraints

    @property
    def _of_workspace(self) -> bool:
        return self.current.workspace is not None and "layout_path" not in self.params


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
