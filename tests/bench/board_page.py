"""The board as one self-contained page, readable on light and dark screens."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, StrictUndefined
from scoreboard import FIGURES

if TYPE_CHECKING:
    from collections.abc import Mapping

TEMPLATE = Path(__file__).with_name("board.html.j2")
ZERO_IS_GOOD = frozenset({"unrouted", "drc", "lvs", "ports_inside", "unmirrored_pairs"})


def page(board: Mapping[str, Any]) -> str:
    """Return the board as HTML: a table for each technology, with the CPU time of the stages as bars."""
    technologies: dict[str, list[dict[str, Any]]] = defaultdict(list)
    longest = max((found.get("cpu_s", 0.0) for found in board["rows"].values()), default=0.0) or 1.0
    for key, found in board["rows"].items():
        technology, _, name = key.partition(" ")
        stages = [
            {"name": stage, **cost, "width": round(100 * cost["cpu_s"] / longest, 2)}
            for stage, cost in found.get("stages", {}).items()
        ]
        cells = [{"text": _text(figure.name, found), "bad": _is_bad(figure.name, found)} for figure in FIGURES]
        technologies[technology].append({"name": name, "found": found, "cells": cells, "stages": stages})
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string(TEMPLATE.read_text(encoding="utf-8"))
    clean = sum(_is_clean(found) for found in board["rows"].values())
    return template.render(technologies=technologies, figures=FIGURES, clean=clean, total=len(board["rows"])) + "\n"


def _text(name: str, found: Mapping[str, Any]) -> str:
    value = found.get(name)
    if value is None:
        return "-"
    return f"{value:.0f}" if isinstance(value, float) and abs(value) >= 1000 else f"{value:.4g}"


def _is_bad(name: str, found: Mapping[str, Any]) -> bool:
    return name in ZERO_IS_GOOD and bool(found.get(name))


def _is_clean(found: Mapping[str, Any]) -> bool:
    return found["status"] == "done" and not (found["unrouted"] or found["drc"] or found["lvs"])
