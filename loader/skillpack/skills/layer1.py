"""Layer 1: names and descriptions of all skills for a system prompt, in one of three styles, within a budget.

The budget is shared evenly: every skill gets its name, then all descriptions are cut to the same maximum length that
fits. A long description never displaces another skill, and the text states what was shortened or left out.
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
_LETTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz \n"
_MARKS = bytes(range(128))
_ELLIPSIS = "..."
_SHORTEST = 12  # a shorter beginning of a description is left out
_MARKDOWN_HEAD = "\n\n## Available Skills\n\nYou have access to the following domain expertise:\n"
_MARKDOWN_TAIL = "\n\nWhen a task matches a skill, request its full content.\n"
BY_TOOL = "Call the tool `skill_request` with the name of the skill. Paths in the content start in the skill's folder."


class Layer1(NamedTuple):
    """The text of layer 1, and how many skills it shows.

    Attributes:
        text: The text for the model; "" if there are no skills or the budget is too small for any.
        shown: Number of skills in the text.
        total: Number of all skills.
        shortened: Number of skills in the text whose description was cut.
    """

    text: str
    shown: int
    total: int
    shortened: int


class Budget(NamedTuple):
    """Maximum length of layer 1.

    Attributes:
        limit: Maximum number of characters or tokens.
        unit: Unit of ``limit``; see ``estimate_tokens``.
    """

    limit: int
    unit: Literal["characters", "tokens"] = "characters"

    @property
    def parts(self) -> int:
        """Return the limit in the unit of ``cost``."""
        return self.limit if self.unit == "characters" else 4 * self.limit

    @property
    def cost(self) -> Callable[[str], int]:
        """Return the function that measures a text, in characters or in quarters of a token."""
        return len if self.unit == "characters" else _quarter_tokens


def estimate_tokens(text: str) -> int:
    """Return an estimate of the tokens in ``text``, rather too many than too few.

    A quarter of a token per English letter or blank, three quarters per digit or punctuation mark, one token per other
    character. For skill descriptions, instructions and pages in English and Chinese this is 1.0 to 1.45 times what
    each of o200k_base, cl100k_base and Claude's published tokenizer counts.
    """
    return -(-_quarter_tokens(text) // 4)


def layer1(
    skills: Iterable[Skill], style: Style = "markdown", budget: Budget | None = None, how: str | None = None
) -> Layer1:
    """Return layer 1 of ``skills`` in the order given.

    Args:
        skills: Skills to list.
        style: "compact": a line ``- name: description`` each; "markdown": the same as a section for a system prompt;
            "xml": ``<available_skills>`` with the place of each SKILL.md, or with ``how`` after it.
        budget: Maximum length of the text; by default unlimited.
        how: Sentence for "markdown" and "xml" that says how the model gets the content of a skill on this host; ""
            for none. By default "markdown" has ``BY_TOOL`` and "xml" the places, for a model that reads files.

    Raises:
        ValueError: If there is no such style.
    """
    if style not in STYLES:
        raise ValueError(f"the style must be one of {', '.join(STYLES)}, not {style!r}")
    listed = list(skills)
    if not listed:
        return Layer1("", 0, 0, 0)
    form = _FORMS[style](listed, how)
    whole = form.assemble(form.descriptions, "")
    if budget is None or budget.cost(whole) <= budget.parts:
        return Layer1(whole, len(listed), len(listed), 0)
    return _fill(form, budget)


def _fill(form: _Form, budget: Budget) -> Layer1:
    """Return layer 1 shortened to the budget."""
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
    """Return the largest common limit for which the lengths in ``wanted``, cut to it, add up to at most ``room``.

    Takes time linear in the number of texts and the length of the longest.
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
    """Return the beginning of a description that costs at most ``room``, cut between words; "" if it is too short."""
    room -= cost(_ELLIPSIS)
    begun = form.cut(text[: max(room, 0)])
    while begun and cost(begun) > room:
        begun = form.cut(begun[: min(len(begun) - 1, len(begun) * room // cost(begun))])
    words = begun.rpartition(" ")[0]
    begun = (words if 2 * len(words) > len(begun) else begun).rstrip(" ,:.-")  # a semicolon may end an entity
    return begun + _ELLIPSIS if len(begun) >= _SHORTEST else ""


def _quarter_tokens(text: str) -> int:
    """Return the estimated length of a text in quarters of a token."""
    data = text.encode("utf-8", "surrogatepass")
    marked = data.translate(None, _LETTERS)  # punctuation marks, digits, and the bytes of other characters
    other = marked.translate(None, _MARKS)
    marks = len(marked) - len(other)
    return len(text) + 2 * marks + 3 * (len(text) - (len(data) - len(other)))


def _writable(path: str) -> str:
    """Return a path with the characters replaced that XML does not allow: control characters, undecodable bytes."""
    from skillpack.untrusted.file_access import CONTROL

    return CONTROL.sub("\ufffd", path.encode("utf-8", "replace").decode("utf-8"))


class _Form:
    """Skills in one style: the parts of each, and how they are assembled into a text."""

    separator = ": "

    def __init__(self, skills: Sequence[Skill], _how: str | None) -> None:
        self.names = [skill.name for skill in skills]
        self.descriptions = [skill.summary for skill in skills]

    @property
    def bare(self) -> list[str]:
        """Return, for each skill, its entry without a description."""
        return [f"- {name}\n" for name in self.names]

    def assemble(self, descriptions: Sequence[str], notice: str) -> str:
        """Return the text of the first skills with these descriptions; "" shows the name alone."""
        lines = [
            f"- {name}: {text}" if text else f"- {name}" for name, text in zip(self.names, descriptions, strict=False)
        ]
        return "\n".join([*lines, notice] if notice else lines)

    @staticmethod
    def notice(shown: int, total: int, shortened: int) -> str:
        """Return the notice that states what is not shown."""
        cut = f", {shortened} of them shortened" if shortened else ""
        return f"({shown} of {total} skills shown{cut}. Search the skills for what is not here.)"

    @staticmethod
    def cut(text: str) -> str:
        """Return the beginning of a description without an incomplete part at its end."""
        return text


class _Markdown(_Form):
    """The style of a section in a system prompt."""

    def __init__(self, skills: Sequence[Skill], how: str | None) -> None:
        super().__init__(skills, how)
        sentence = BY_TOOL if how is None else how
        self._tail = f"{_MARKDOWN_TAIL}{sentence}\n" if sentence else _MARKDOWN_TAIL

    def assemble(self, descriptions: Sequence[str], notice: str) -> str:
        """Return the section."""
        return _MARKDOWN_HEAD + super().assemble(descriptions, notice) + self._tail


class _Xml(_Form):
    """``<available_skills>``, as clients of the Agent Skills specification write it; one line per skill."""

    separator = "<description></description>"

    def __init__(self, skills: Sequence[Skill], how: str | None) -> None:
        from html import escape

        super().__init__(skills, how)
        self.names = [escape(name, quote=False) for name in self.names]
        self.descriptions = [escape(text, quote=False) for text in self.descriptions]
        places = [escape(_writable(skill.path), quote=False) for skill in skills]
        self._ends = [f"<location>{place}</location>" for place in places] if how is None else [""] * len(places)
        self._tail = f"\n{how}" if how else ""

    @property
    def bare(self) -> list[str]:
        """Return, for each skill, its entry without a description."""
        return [f"{self._entry(index, '')}\n" for index in range(len(self.names))]

    def assemble(self, descriptions: Sequence[str], notice: str) -> str:
        """Return the element, whose attributes state what is missing, and the sentence after it."""
        entries = [self._entry(index, text) for index, text in enumerate(descriptions)]
        return "\n".join([f"<available_skills{notice}>", *entries, "</available_skills>"]) + self._tail

    def _entry(self, index: int, description: str) -> str:
        """Return the element of one skill."""
        text = f"<description>{description}</description>" if description else ""
        return f"<skill><name>{self.names[index]}</name>{text}{self._ends[index]}</skill>"

    @staticmethod
    def notice(shown: int, total: int, shortened: int) -> str:
        """Return the attributes that state what is not shown."""
        return f' shown="{shown}" total="{total}" shortened="{shortened}"'

    @staticmethod
    def cut(text: str) -> str:
        """Return the beginning of an escaped text without a part of an entity at its end."""
        start = text.rfind("&", -6)
        return text if start < 0 or ";" in text[start:] else text[:start]


_FORMS: dict[Style, type[_Form]] = {"compact": _Form, "markdown": _Markdown, "xml": _Xml}
