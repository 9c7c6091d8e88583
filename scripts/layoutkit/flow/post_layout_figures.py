"""Figures after layout in the report of a build: the parasitics of its nets and a simulation with them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from layoutkit.errors import LayoutkitError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import klayout.db as kdb

    from layoutkit.circuit.circuit import Circuit
    from layoutkit.parasitics.parasitic_extraction import PexOptions
    from layoutkit.technology import Technology


def post_layout_figures(
    layout: kdb.Layout,
    circuit: Circuit,
    technology: Technology,
    options: PexOptions,
    groups: Sequence[Mapping[str, Any]],
) -> tuple[dict[str, Any], str]:
    """Return ``{parasitics, simulation}`` as JSON data, and the layout's netlist with parasitics, empty without one.

    What cannot be extracted or simulated is ``unchecked`` with the reason; it does not end the build.

    Args:
        layout: The finished layout.
        circuit: Its circuit, with its modules.
        technology: Its process.
        options: How to extract.
        groups: The matched groups as measured, for the predicted offsets.
    """
    from layoutkit.parasitics.parasitic_extraction import extract_parasitics
    from layoutkit.simulate.post_layout import Request, compare_post_layout, offsets_apart

    try:
        found = extract_parasitics(layout, circuit, technology, options)
    except LayoutkitError as error:
        missing = {"unchecked": [error.message]}
        return {"parasitics": missing, "simulation": missing}, ""
    parasitics = {
        "nets": [{"net": net.net, "total_ff": round(net.total_fF, 4)} for net in found.nets],
        "pairs": [pair.to_json() for pair in found.pairs],
        "unchecked": list(found.unchecked),
    }
    try:
        compared = compare_post_layout(Request(circuit, technology, found.spice))
        simulation = {**compared, **offsets_apart(compared, groups)}
    except LayoutkitError as error:
        simulation = {"unchecked": [error.message]}
    return {"parasitics": parasitics, "simulation": simulation}, found.spice


def lines(figures: Mapping[str, Any]) -> list[str]:
    """Return the figures as lines for a terminal."""
    told = [
        f"  after     {each['name']} {_amount(each, 'schematic')} -> {_amount(each, 'extracted')}{_percent(each)}"
        for corner in figures["simulation"].get("corners", ())
        for each in corner["measurements"]
    ]
    unchecked = [*figures["parasitics"].get("unchecked", ()), *figures["simulation"].get("unchecked", ())]
    return [*told, *(f"  unchecked {text}" for text in dict.fromkeys(unchecked))]


def _amount(measured: Mapping[str, Any], side: str) -> str:
    return f"{measured[side]:.4g} {measured['unit']}".rstrip() if side in measured else "not measured"


def _percent(measured: Mapping[str, Any]) -> str:
    return f" ({measured['change_percent']:+.1f} %)" if "change_percent" in measured else ""
