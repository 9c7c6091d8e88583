"""``flow.build_layout``: a netlist becomes a placed, routed and checked layout."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from layoutkit.flow.build import build_layout
from layoutkit.flow.design import LayoutRequest
from layoutkit.flow.summary import faults, summary

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def build(params: Mapping[str, Any], progress: Callable[[str], None]) -> tuple[dict[str, Any], list[str]]:
    """Return the report of the whole job and one sentence for each fault of the layout, none if it is clean.

    Args:
        params: Those of ``flow.build_layout``.
        progress: Receives a line as each stage begins, and the summary of the report.

    Raises:
        LayoutkitError: If the netlist cannot be read, mapped or drawn; nothing is written then.
    """
    report = build_layout(LayoutRequest.of(params), progress=progress)
    progress(summary(report))
    return report, faults(report)
