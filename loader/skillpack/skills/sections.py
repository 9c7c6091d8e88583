"""The headings of a Markdown body, and the part below one of them."""

from __future__ import annotations

import re
from typing import NamedTuple

_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))??(?:[ \t]+#+)?[ \t]*")
_UNDERLINE = re.compile(r" {0,3}(=+|-+)[ \t]*")
_TEXT = re.compile(r" {0,3}(?![ \t|>]|[-+*][ \t]|\d+[.)][ \t]).*\w")  # the beginning of a paragraph
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")


class Heading(NamedTuple):
    """One heading.

    Attributes:
        level: 1 for ``#`` to 6 for ``######``; 1 for a line underlined with ``=``, 2 with ``-``.
        title: Its text.
        line: Its 0-based line.
    """

    level: int
    title: str
    line: int


def headings(body: str) -> list[Heading]:
    """Return the headings of a Markdown text in order; lines in fenced code blocks are not headings."""
    found = []
    fence = ""
    paragraph: list[str] | None = []  # lines so far; None in a list, table or quote until a blank line
    for number, line in enumerate(body.split("\n")):
        above, paragraph = paragraph, []
        mark = _FENCE.fullmatch(line)
        if fence:
            if mark is not None and mark[1].startswith(fence) and not mark[2].strip():
                fence = ""
        elif mark is not None and not ("`" in mark[2] and mark[1][0] == "`"):
            fence = mark[1]
        elif (heading := _HEADING.fullmatch(line)) is not None:
            if heading[2]:
                found.append(Heading(len(heading[1]), heading[2].strip(), number))
        elif above and (rule := _UNDERLINE.fullmatch(line)) is not None:
            found.append(Heading(1 if "=" in rule[1] else 2, " ".join(above), number - len(above)))
        elif line.strip():
            paragraph = [*above, line.strip()] if above or (above == [] and _TEXT.match(line)) else None
    return found


def section(body: str, title: str) -> str | None:
    """Return the section with the heading ``title``, up to the next heading of its level or above, or None.

    Args:
        body: Markdown text.
        title: Text of the heading, ignoring case and blanks. The first such section is returned.
    """
    found = headings(body)
    wanted = _plain(title)
    for index, heading in enumerate(found):
        if _plain(heading.title) == wanted:
            following = (other.line for other in found[index + 1 :] if other.level <= heading.level)
            end = next(following, None)
            return "\n".join(body.split("\n")[heading.line : end]).rstrip()
    return None


def _plain(title: str) -> str:
    """Return a title in the form in which titles are compared."""
    return " ".join(title.lstrip("#").casefold().split())
