"""Parts of HTML pages. The templates of pages escape every text, so that names from files are never read as markup."""

from __future__ import annotations

import json
from base64 import b64encode
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from jinja2 import Environment

ROOMS = ("view", "explore")
"""Packages with templates of pages."""
Cell = str | float | int | bool | None


def rendered(template: str, **values: Any) -> Markup:
    """Return a page or a part of one: the template of this name, in one of ``ROOMS``, with these values."""
    return Markup(_environment().get_template(template).render(values))  # noqa: S704 - the template escapes


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    package = Path(__file__).parents[1]
    found = Environment(
        loader=FileSystemLoader([package / room for room in ROOMS]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    found.filters["shown"] = shown
    return found


def shown(value: Cell) -> Cell:
    """Return a value as text: numbers with up to five digits, yes and no, nothing for None."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.5g}"
    return "" if value is None else value


def table(caption: str, heads: Sequence[str], rows: Iterable[Sequence[Cell]]) -> Markup:
    """Return a table in a box that scrolls, by keyboard too; a sentence where it has no rows.

    Columns of numbers are aligned at the right. The first cell of a row is its heading.
    """
    listed = [list(row) for row in rows]
    numeric = [all(_is_number(row[column]) or row[column] is None for row in listed) for column in range(len(heads))]
    return rendered("table.html", caption=caption, heads=list(zip(heads, numeric, strict=True)), rows=listed)


def _is_number(cell: Cell) -> bool:
    return isinstance(cell, int | float) and not isinstance(cell, bool)


def verdict(good: bool | None, text: str = "") -> Markup:
    """Return yes, no or unchecked as a coloured word that says the same without its colour."""
    kind, word = {True: ("good", "ok"), False: ("bad", "no"), None: ("warn", "unchecked")}[good]
    return Markup('<span class="{}">{}</span>').format(kind, text or word)


def net_button(name: str) -> Markup:
    """Return a button that highlights a net in the drawing."""
    return Markup('<button type="button" data-net="{0}">{0}</button>').format(name)


def device_button(name: str) -> Markup:
    """Return a button that highlights a device in the drawing."""
    return Markup('<button type="button" data-device="{0}">{0}</button>').format(name)


def buttons(made: Iterable[Markup]) -> Markup:
    """Return several buttons beside each other."""
    return Markup(" ").join(made)


def remark(text: str) -> Markup:
    """Return a sentence that explains."""
    return Markup('<p class="note">{}</p>').format(text)


def bullets(sentences: Iterable[str]) -> Markup:
    """Return a list of sentences, nothing where there are none."""
    items = Markup("").join(Markup("<li>{}</li>").format(text) for text in sentences)
    return Markup('<ul class="plainlist">{}</ul>').format(items) if items else items


def section(name: str, title: str, *parts: Markup | str) -> Markup:
    """Return a section with its heading; ``name`` is the target of links to it."""
    inner = Markup("\n").join(part for part in parts if part)
    return Markup('<section id="{0}" aria-labelledby="h-{0}"><h2 id="h-{0}">{1}</h2>\n{2}\n</section>').format(
        name, title, inner
    )


def digest(text: str) -> str:
    """Return the SHA-256 of a script or style as a security policy names it."""
    return b64encode(sha256(text.encode()).digest()).decode()


def safe_json(value: Any) -> Markup:
    """Return JSON text that cannot close a script element or open a comment in it."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    escaped = text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return Markup(escaped)  # noqa: S704 - escaped above
