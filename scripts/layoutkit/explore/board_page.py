"""The board as one self-contained page, readable on light and dark screens."""

from __future__ import annotations

from collections import defaultdict
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from layoutkit.explore.scoreboard import FIGURES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

STYLE = Path(__file__).with_name("board_page.css")
NOTE = (
    "layouts are clean: routed, strong enough for their currents, free of design rule violations, and they match their "
    "netlists. Smaller is better in every column but devices and ports. The bars show the CPU time of the stages; "
    "hover over one for its time and memory."
)
ZERO_IS_GOOD = frozenset({"unrouted", "drc", "lvs", "ports_inside", "unmirrored_pairs"})


def page(board: Mapping[str, Any]) -> str:
    """Return the board as HTML: a table for each technology, with the CPU time of the stages as bars."""
    technologies: dict[str, list[str]] = defaultdict(list)
    longest = max((found.get("cpu_s", 0.0) for found in board["rows"].values()), default=0.0) or 1.0
    for key, found in board["rows"].items():
        technology, _, name = key.partition(" ")
        technologies[technology].append(_row(name, found, longest))
    clean = sum(_is_clean(found) for found in board["rows"].values())
    lines = [
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n<title>Scoreboard</title>',
        f"<style>\n{STYLE.read_text(encoding='utf-8')}</style>\n</head>\n<body>\n<h1>Scoreboard</h1>",
        f"<p>{clean} of {len(board['rows'])} {NOTE}</p>",
    ]
    heads = "".join(f'<th title="{escape(figure.text)}">{escape(figure.title)}</th>' for figure in FIGURES)
    for technology, rows in technologies.items():
        lines += [
            f'<h2>{escape(technology)}</h2>\n<div class="wide"><table>',
            f"<thead><tr><th>circuit</th>{heads}<th>stages</th></tr></thead>\n<tbody>",
            *rows,
            "</tbody></table></div>",
        ]
    meanings = "".join(f"<dt>{escape(figure.title)}</dt><dd>{escape(figure.text)}</dd>" for figure in FIGURES)
    lines.append(f"<h2>Columns</h2>\n<dl>{meanings}</dl>\n</body>\n</html>\n")
    return "\n".join(lines)


def _row(name: str, found: Mapping[str, Any], longest: float) -> str:
    """Return the line of one circuit.

    Args:
        name: Of the circuit.
        found: Its figures, or why it has none.
        longest: CPU time of the bar that is 200 pixels wide. [s]
    """
    fault = f' <span class="error">{escape(found["error"])}</span>' if "error" in found else ""
    head = f"<tr><td>{escape(name)}{fault if found['status'] == 'done' else ''}</td>"
    if found["status"] != "done":
        text = escape(f"{found['status']}: {found['error']}")
        return f'{head}<td class="error" colspan="{len(FIGURES) + 1}">{text}</td></tr>'
    cells = "".join(f"<td{_class(figure.name, found)}>{escape(_text(figure.name, found))}</td>" for figure in FIGURES)
    return f'{head}{cells}\n<td class="bars">{_bars(found.get("stages", {}), longest)}</td></tr>'


def _bars(stages: Mapping[str, Mapping[str, Any]], longest: float) -> str:
    return "".join(
        f'<span class="bar" style="width:{max(round(200 * cost["cpu_s"] / longest, 2), 1)}px" '
        f'title="{escape(stage)}: {cost["cpu_s"]} s, {cost["peak_mb"]} MB"></span>'
        for stage, cost in stages.items()
    )


def _class(name: str, found: Mapping[str, Any]) -> str:
    return ' class="bad"' if name in ZERO_IS_GOOD and found.get(name) else ""


def _text(name: str, found: Mapping[str, Any]) -> str:
    value = found.get(name)
    if value is None:
        return "-"
    return f"{value:.0f}" if isinstance(value, float) and abs(value) >= 1000 else f"{value:.4g}"


def _is_clean(found: Mapping[str, Any]) -> bool:
    return found["status"] == "done" and "error" not in found


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
