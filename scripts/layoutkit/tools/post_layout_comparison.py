"""``sim.compare_post_layout``: a test bench on the netlist and on what its layout made of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from layoutkit.circuit import ModelNames, Target, given_netlist, map_circuit, recognised
from layoutkit.circuit.replaced_devices import replaced_data
from layoutkit.errors import FileError
from layoutkit.layout.files import read_bytes
from layoutkit.layout.workspace import Workspace
from layoutkit.simulate.netlist_cards import MAX_TEXT
from layoutkit.simulate.offset_causes import offsets_apart
from layoutkit.simulate.post_layout import Request, compare_post_layout
from layoutkit.tools.current_layout import CurrentLayout
from layoutkit.tools.netlist_request import read_with_supplies

if TYPE_CHECKING:
    from collections.abc import Mapping

    from layoutkit.circuit import Circuit
    from layoutkit.technology import Technology

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
    circuit = _circuit(params, technology)
    warnings = [*circuit.warnings]
    text, told = _extracted(params, current, circuit, technology)
    given = {field: params[name] for name, field in OF_A_REQUEST.items() if name in params}
    deck = _text(params["deck_path"]) if "deck_path" in params else ""
    answer = compare_post_layout(Request(circuit, technology, text, deck=deck, **given))
    return {
        **answer,
        "unchecked": [*answer["unchecked"], *told],
        **offsets_apart(answer, _groups(params)),
        "technology": technology.name,
        "replaced_devices": replaced_data(circuit, technology),
        "warnings": [*warnings, *current.warnings],
    }


def _circuit(params: Mapping[str, Any], technology: Technology) -> Circuit:
    own = "netlist_path" in params or "netlist_text" in params
    source = given_netlist(params) if own else str(Workspace(params.get("workspace")).circuit_path)
    read = read_with_supplies(
        params,
        source,
        top=params.get("top"),
        identify_modules=False,
        names=ModelNames(technology, params.get("device_map")),
    )
    mapped = map_circuit(read, Target.from_technology(technology)).circuit
    return recognised(mapped)


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


def _groups(params: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the matched groups that a build measured in this workspace.

    Raises:
        FileError: If the summary was changed, so that their offsets cannot be read.
    """
    workspace = Workspace(params.get("workspace"))
    if "extracted_path" in params or not workspace.path(SUMMARY).is_file():
        return []
    summary = workspace.read_json(SUMMARY)
    matching = summary.get("matching") if isinstance(summary, dict) else None
    groups = matching.get("groups", []) if isinstance(matching, dict) else []
    if not isinstance(groups, list) or not all(map(_has_offsets, groups)):
        raise FileError(
            f"{workspace.path(SUMMARY)} does not state matching.groups as a build does; build the layout again"
        )
    return groups


def _has_offsets(group: Any) -> bool:
    """Whether the offsets predicted for a matched group can be read; there may be none."""
    offsets = group.get("predicted_offsets", []) if isinstance(group, dict) else None
    return isinstance(offsets, list) and all(
        isinstance(each, dict)
        and {"devices", "value", "unit"} <= each.keys()
        and (each.get("random_sigma") is None or isinstance(each["random_sigma"], dict))
        for each in offsets
    )
