"""Layer 1: what a model is told of all skills, in one of three styles, within a budget.

A budget is filled as if dealt out in rounds: first every skill its name, then each in turn another piece of its
description, until nothing is left. No skill's long description costs another its place, and what was shortened or
left out is told.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import TypeAlias

    from skillpack.skills.skill_md import Skill

    Style: TypeAlias = Literal["compact", "markdown", "xml"]

STYLES: tuple[Style, ...] = ("compact", "markdown", "xml")
_ELLIPSIS = "..."
_SHORTEST = 12  # characters of a description below which a bare name says as much
_MARKDOWN_HEAD = "\n\n## Available Skills\n\nYou have access to the following domain expertise:\n"
_MARKDOWN_TAIL = "\n\nWhen a task matches a skill, request its full content.\n"


class Layer1(NamedTuple):
    """Layer 1 as text, and how much of it there is.

    Attributes:
        text: What the model is told; "" when there are no skills, or no room for any.
        shown: Skills in it.
        total: Skills there are.
        shortened: Skills in it whose description is not whole.
    """

    text: str
    shown: int
    total: int
    shortened: int


class Budget(NamedTuple):
    """How long layer 1 may be.

    Attributes:
        limit: Most characters, or tokens.
        unit: Which of the two. Tokens are estimated from above: four ASCII characters, or one other, make one.
    """

    limit: int
    unit: Literal["characters", "tokens"] = "characters"

    @property
    def parts(self) -> int:
        """Return the limit in the unit in which ``cost`` measures."""
        return self.limit if self.unit == "characters" else 4 * self.limit

    @property
    def cost(self) -> Callable[[str], int]:
        """Return what measures a text: in characters, or in quarters of a token."""
        return len if self.unit == "characters" else _quarter_tokens


def estimate_tokens(text: str) -> int:
    """Return about how many tokens ``text`` is: a quarter of its ASCII characters and all others."""
    return -(-_quarter_tokens(text) // 4)


def layer1(skills: Iterable[Skill], style: Style = "markdown", budget: Budget | None = None) -> Layer1:
    """Return layer 1 of ``skills`` in the order given.

    Args:
        skills: What to tell of.
        style: "compact": a line ``- name: description`` each; "markdown": the same as a section for a system prompt;
            "xml": ``<available_skills>`` with the place of each SKILL.md.
        budget: How long the whole text may be; by default as long as it is.

    Raises:
        ValueError: If there is no such style.
    """
    if style not in _FORMS:
        raise ValueError(f"the style must be one of {', '.join(STYLES)}, not {style!r}")
    listed = list(skills)
    if not listed:
        return Layer1("", 0, 0, 0)
    if budget is None and style == "compact":  # in one go, as hosts with thousands of skills want it
        return Layer1("\n".join([f"- {skill.name}: {skill.summary}" for skill in listed]), len(listed), len(listed), 0)
    form = _FORMS[style](listed)
    whole = form.assemble(form.descriptions, "")
    if budget is None or budget.cost(whole) <= budget.parts:
        return Layer1(whole, len(listed), len(listed), 0)
    return _fill(form, budget)


def _fill(form: _Form, budget: Budget) -> Layer1:
    """Return as much of every skill as the budget holds."""
    total, cost = len(form.names), budget.cost
    room = budget.parts - cost(form.assemble([], form.notice(total, total, total)))
    shown = 0
    for bare in form.bare:
        room -= cost(bare)
        if room < 0:
            room += cost(bare)
            break
        shown += 1
    if shown == 0:
        return Layer1("", 0, total, 0)
    separator = cost(form.separator)
    wanted = [cost(text) + separator for text in form.descriptions[:shown]]
    share = _share(wanted, room)
    texts = [
        text if cost_of <= share else _beginning(text, share - separator, form, cost)
        for text, cost_of in zip(form.descriptions, wanted, strict=False)
    ]
    shortened = sum(text != whole for text, whole in zip(texts, form.descriptions, strict=False))
    return Layer1(form.assemble(texts, form.notice(shown, total, shortened)), shown, total, shortened)


def _share(wanted: Sequence[int], room: int) -> int:
    """Return how much each may take at most so that all together take no more than ``room``.

    Dealt out in rounds of one; linear in the number of texts and the length of the longest.
    """
    if sum(wanted) <= room:
        return max(wanted, default=0)
    satisfied = Counter(wanted)
    hungry, share = len(wanted) - satisfied[0], 0
    while hungry and room >= hungry:
        room -= hungry
        share += 1
        hungry -= satisfied[share]
    return share


def _beginning(text: str, room: int, form: _Form, cost: Callable[[str], int]) -> str:
    """Return the beginning of a description that costs at most ``room``, cut between words; "" if that says nothing."""
    room -= cost(_ELLIPSIS)
    begun = form.cut(text[: max(room, 0)])
    while begun and cost(begun) > room:
        begun = form.cut(begun[: min(len(begun) - 1, len(begun) * room // cost(begun))])
    words = begun.rpartition(" ")[0]
    begun = (words if 2 * len(words) > len(begun) else begun).rstrip(" ,:.-")  # a semicolon may end an entity
    return begun + _ELLIPSIS if len(begun) >= _SHORTEST else ""


def _quarter_tokens(text: str) -> int:
    """Return the estimated length of a text in quarters of a token."""
    return len(text) if text.isascii() else 4 * len(text) - 3 * sum(map(str.isascii, text))


def _writable(path: str) -> str:
    """Return a path with what no XML can hold replaced: control characters, bytes that are no text."""
    from skillpack.skills.plain_text import CONTROL

    return CONTROL.sub("\ufffd", path.encode("utf-8", "replace").decode("utf-8"))


class _Form:
    """A style applied to skills: their parts, and how the whole is put together of them."""

    separator = ": "

    def __init__(self, skills: Sequence[Skill]) -> None:
        self.names = [skill.name for skill in skills]
        self.descriptions = [skill.summary for skill in skills]

    @property
    def bare(self) -> list[str]:
        """Return what a skill without description adds to the whole, for each skill."""
        return [f"- {name}\n" for name in self.names]

    def assemble(self, descriptions: Sequence[str], notice: str) -> str:
        """Return the text that shows the first skills with these descriptions, "" for a bare name."""
        lines = [
            f"- {name}: {text}" if text else f"- {name}" for name, text in zip(self.names, descriptions, strict=False)
        ]
        return "\n".join([*lines, notice] if notice else lines)

    @staticmethod
    def notice(shown: int, total: int, shortened: int) -> str:
        """Return how the model is told what it does not see."""
        cut = f", {shortened} of them shortened" if shortened else ""
        return f"({shown} of {total} skills shown{cut}. Search the skills for what is not here.)"

    @staticmethod
    def cut(text: str) -> str:
        """Return a beginning of a description without a piece that makes no sense alone."""
        return text


class _Markdown(_Form):
    """The section of a system prompt."""

    def assemble(self, descriptions: Sequence[str], notice: str) -> str:
        """Return the section."""
        return _MARKDOWN_HEAD + super().assemble(descriptions, notice) + _MARKDOWN_TAIL


class _Xml(_Form):
    """``<available_skills>``, as clients of the Agent Skills specification write it."""

    separator = "<description></description>\n"

    def __init__(self, skills: Sequence[Skill]) -> None:
        from html import escape

        super().__init__(skills)
        self.names = [escape(name) for name in self.names]
        self.descriptions = [escape(text) for text in self.descriptions]
        self._locations = [escape(_writable(skill.path)) for skill in skills]

    @property
    def bare(self) -> list[str]:
        """Return what a skill without description adds to the whole, for each skill."""
        return [f"{self._entry(index, '')}\n" for index in range(len(self.names))]

    def assemble(self, descriptions: Sequence[str], notice: str) -> str:
        """Return the element; what is missing is told in its attributes."""
        entries = [self._entry(index, text) for index, text in enumerate(descriptions)]
        return "\n".join([f"<available_skills{notice}>", *entries, "</available_skills>"])

    def _entry(self, index: int, description: str) -> str:
        """Return the element of one skill."""
        parts = [f"<name>{self.names[index]}</name>"]
        if description:
            parts.append(f"<description>{description}</description>")
        parts.append(f"<location>{self._locations[index]}</location>")
        return "\n".join(["<skill>", *parts, "</skill>"])

    @staticmethod
    def notice(shown: int, total: int, shortened: int) -> str:
        """Return the attributes that tell what the model does not see."""
        return f' shown="{shown}" total="{total}" shortened="{shortened}"'

    @staticmethod
    def cut(text: str) -> str:
        """Return a beginning of escaped text without a piece of an entity at its end."""
        start = text.rfind("&", -6)
        return text if start < 0 or ";" in text[start:] else text[:start]


_FORMS: dict[Style, type[_Form]] = {"compact": _Form, "markdown": _Markdown, "xml": _Xml}
