"""What the report page of a build is made from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True)
class ReportInputs:
    """What a page shows.

    Attributes:
        report: Report of the build, as ``summary.json`` has it; parts of stages that were not run are missing.
        circuit: The circuit as JSON data, as ``circuit.json`` has it.
        drawing: The layout, as ``view.drawing_data.drawing_data`` returns it.
        nets: Nets, devices and labels, as ``flow.drawn_nets.nets_data`` returns them; without them nothing is named.
        picture: PNG file for print and for readers without scripts.
        faults: One sentence for each fault; none if the layout is clean.
        command: Command that builds the layout again.
        options: Options of the build, by name.
        versions: Name and version of each program.
        digests: SHA-256 of layout, circuit and inputs, by name.
    """

    report: Mapping[str, Any]
    circuit: Mapping[str, Any]
    drawing: Mapping[str, Any]
    picture: bytes
    nets: Mapping[str, Any] = field(default_factory=lambda: {"nets": [], "devices": [], "labels": []})
    faults: Sequence[str] = ()
    command: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    digests: Mapping[str, str | None] = field(default_factory=dict)
