"""The board as one self-contained page, readable on light and dark screens."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from layoutkit.explore.scoreboard import FIGURES
from layoutkit.view.html_parts import rendered

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

STYLE = Path(__file__).with_name("board_page.css")
ZERO_IS_GOOD = frozenset({"unrouted", "drc", "lvs", "ports_inside", "unmirrored_pairs"})


def page(board: Mapping[str, Any]) -> str:
    """Return the board as HTML: a table for each technology, with the CPU time of the stages as bars."""
    technologies: dict[str, dict[str, Mapping[str, Any]]] = defaultdict(dict)
    for key, found in board["rows"].items():
        technology, _, name = key.partition(" ")
        technologies[technology][name] = found
    made = rendered(
        "board_page.html",
        technologies=technologies,
        figures=FIGURES,
        clean=sum(found["status"] == "done" and "error" not in found for found in board["rows"].values()),
        count=len(board["rows"]),
        longest=max((found.get("cpu_s", 0.0) for found in board["rows"].values()), default=0.0) or 1.0,
        zero_is_good=ZERO_IS_GOOD,
        text=_text,
        style=STYLE.read_text(encoding="utf-8"),
    )
    return str(made)


def _text(name: str, found: Mapping[str, Any]) -> str:
    value = found.get(name)
    if value is None:
        return "-"
    return f"{value:.0f}" if isinstance(value, float) and abs(value) >= 1000 else f"{value:.4g}"


def heading(shown: Sequence[str]) -> str:
    """Return the first line of the board as text."""
    titles = {figure.name: figure.title for figure in FIGURES}
    return f"{'circuit':<48} " + " ".join(f"{titles[name]:>14}" for name in shown)


def line(key: str, found: Mapping[str, Any], shown: Sequence[str]) -> str:
    """Return the line of a row as text."""
    if found["status"] != "done":
        return f"{key:<48} {found['status']}: {found.get('error', '')[:150]}"
    values = ["-" if found.get(name) is None else f"{found[name]:g}" for name in shown]
    return f"{key:<48} " + " ".join(f"{value:>14}" for value in values)
