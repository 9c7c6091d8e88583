"""Parts of an HTML page: every text is escaped here, so that names from files are never read as markup."""

from __future__ import annotations

import json
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


@dataclass(frozen=True)
class Html:
    """Text that is HTML already."""

    text: str


Cell = str | float | int | bool | None | Html


def shown(value: Cell) -> str:
    """Return a value as escaped HTML: numbers with up to five digits, yes and no, nothing for None."""
    if isinstance(value, Html):
        return value.text
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return escape(f"{value:.5g}")
    return "" if value is None else escape(str(value))


def table(caption: str, heads: Sequence[str], rows: Iterable[Sequence[Cell]]) -> str:
    """Return a table in a box that scrolls, by keyboard too; a sentence where it has no rows.

    Columns of numbers are aligned at the right. The first cell of a row is its heading.
    """
    listed = [list(row) for row in rows]
    if not listed:
        return f'<p class="note">{escape(caption)}: none.</p>'
    numeric = [all(_is_number(row[column]) or row[column] is None for row in listed) for column in range(len(heads))]
    lines = [f'<div class="scroll" role="region" tabindex="0" aria-label="{escape(caption)}"><table>']
    lines.append(f"<caption>{escape(caption)}</caption><thead><tr>")
    lines += [
        f'<th scope="col"{_number(right)}>{escape(head)}</th>' for head, right in zip(heads, numeric, strict=True)
    ]
    lines.append("</tr></thead><tbody>")
    for row in listed:
        cells = [
            f"<{tag}{_number(right)}>{shown(cell)}</{tag[:2]}>"
            for tag, cell, right in zip(['th scope="row"', *["td"] * (len(row) - 1)], row, numeric, strict=True)
        ]
        lines.append(f"<tr>{''.join(cells)}</tr>")
    lines.append("</tbody></table></div>")
    return "\n".join(lines)


def _is_number(cell: Cell) -> bool:
    return isinstance(cell, int | float) and not isinstance(cell, bool)


def _number(right: bool) -> str:
    return ' class="number"' if right else ""


def verdict(good: bool | None, text: str = "") -> Html:
    """Return yes, no or unchecked as a coloured word that says the same without its colour."""
    kind, word = {True: ("good", "ok"), False: ("bad", "no"), None: ("warn", "unchecked")}[good]
    return Html(f'<span class="{kind}">{escape(text or word)}</span>')


def net_button(name: str) -> Html:
    """Return a button that highlights a net in the drawing."""
    return Html(f'<button type="button" data-net="{escape(name)}">{escape(name)}</button>')


def device_button(name: str) -> Html:
    """Return a button that highlights a device in the drawing."""
    return Html(f'<button type="button" data-device="{escape(name)}">{escape(name)}</button>')


def buttons(made: Iterable[Html]) -> Html:
    """Return several buttons beside each other."""
    return Html(" ".join(each.text for each in made))


def bullets(sentences: Iterable[str]) -> str:
    """Return a list of sentences, nothing where there are none."""
    items = "".join(f"<li>{escape(text)}</li>" for text in sentences)
    return f'<ul class="plainlist">{items}</ul>' if items else ""


def section(name: str, title: str, *parts: str) -> str:
    """Return a section with its heading; ``name`` is the target of links to it."""
    inner = "\n".join(part for part in parts if part)
    return (
        f'<section id="{name}" aria-labelledby="h-{name}"><h2 id="h-{name}">{escape(title)}</h2>\n{inner}\n</section>'
    )


def safe_json(value: Any) -> str:
    """Return JSON text that cannot close a script element or open a comment in it."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
