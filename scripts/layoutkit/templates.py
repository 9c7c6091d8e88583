"""Pages and other files from templates.

Those of HTML and XML escape every text, so that names from files are never read as markup.
"""

from __future__ import annotations

from base64 import b64encode
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from jinja2 import Environment

ROOMS = ("view", "explore", "layout", "parasitics")
"""Packages that hold templates."""
Cell = str | float | int | bool | None


def rendered(template: str, **values: Any) -> Markup:
    """Return a file or a part of one: the template of this name, in one of ``ROOMS``, with these values."""
    return Markup(_environment().get_template(template).render(values))  # noqa: S704 - the template escapes


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

    package = Path(__file__).parent
    found = Environment(
        loader=FileSystemLoader([package / room for room in ROOMS]),
        autoescape=select_autoescape((), ("lef", "spef", "tcl"), default_for_string=True, default=True),
        extensions=["jinja2.ext.do"],
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    found.filters |= {"shown": shown, "digest": digest}
    found.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}
    found.globals["table"] = table
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


def digest(text: str) -> str:
    """Return the SHA-256 of a script or style as a security policy names it."""
    return b64encode(sha256(text.encode()).digest()).decode()
