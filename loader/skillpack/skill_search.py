"""Search skills by name, description, body and the text of skill.yaml."""

# Paths stay strings, as in the catalogue.
# ruff: noqa: PTH118

from __future__ import annotations

import glob
import os
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from skillpack.exceptions import FileRefusedError, SkillFileError
from skillpack.relevance import MAX_TERMS, Fields, folded, joining_terms_of, rank, terms_of
from skillpack.skills.skill_md import DECLARATION_FILE
from skillpack.untrusted.file_access import read_bounded

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from skillpack.relevance import Counter
    from skillpack.skills.skill_md import Skill

_EXCERPT = 160
_MAX_DECLARATION_BYTES = 1 << 18
_MAX_PAGES = 8
_MAX_PAGE_BYTES = 1 << 13
_NOT_FOR = re.compile(r"\b(?:not (?:for|needed)|(?:do not|don't|never) use)\b[^.;\u3002]*")
# Keys of skill.yaml, and values that are no words of users. To parse the file would cost more than the search.
_STRUCTURE = re.compile(
    r"\b(?:models|context|cost|annotations): ?\{[^}]*\}"
    r"|\b(?:skill|version|toolsets|script|input_schema|output_schema|composable|dependencies):[^\n,}]*"
    r"|\b(?:tools|id|display_name|description|intent_tags|en|zh):"
)
_CLAUSE_END = re.compile(r"[.;:,]\s+|\u3002")
_ASKS = re.compile(r"^asks:\n((?:- .*\n?)+)", re.MULTILINE)


class Match(NamedTuple):
    """A skill that fits a query.

    Attributes:
        skill: The skill.
        score: How well it fits; comparable within one search only.
        excerpt: The line of its body that fits best; "" if no line contains a term.
    """

    skill: Skill
    score: float
    excerpt: str

    def to_json(self) -> dict[str, Any]:
        """Return name, description, score and excerpt as JSON values."""
        return {
            "name": self.skill.name,
            "description": self.skill.summary,
            "score": round(self.score, 3),
            "excerpt": self.excerpt,
        }


def search(skills: Iterable[Skill], query: str, limit: int) -> tuple[list[Match], int]:
    """Return the skills that fit ``query`` best, and the number of all skills that contain a term of it.

    Args:
        skills: Skills to search; skills with equal scores keep their order.
        query: Words.
        limit: Maximum number of skills to return.
    """
    candidates, terms = list(skills), terms_of(query, MAX_TERMS)
    if not terms:
        return [], 0
    ranking = rank([_fields(skill) for skill in candidates], terms, joining_terms_of(query, MAX_TERMS))
    matches = sorted(
        ((score, skill) for score, skill in zip(ranking.scores, candidates, strict=True) if score > 0),
        key=lambda match: -match[0],
    )
    counters = [(term.counter(), rarity) for term, rarity in zip(terms, ranking.rarities, strict=True)]
    best = matches[: max(limit, 0)]
    return [Match(skill, score, _excerpt(skill, counters)) for score, skill in best], len(matches)


def _fields(skill: Skill) -> Fields:
    """Return the texts to search, without the part of the description that says what the skill is not for."""
    description = _NOT_FOR.sub("", folded(skill.description))
    opening, _, sections = folded(_body(skill)).partition("\n## ")
    pages = sorted(glob.glob(os.path.join(glob.escape(skill.dir), "references", "*.md")))[:_MAX_PAGES]  # noqa: PTH207
    sections += folded("".join(_text(page, _MAX_PAGE_BYTES) for page in pages))  # read when they are needed
    declared = folded(_text(os.path.join(skill.dir, DECLARATION_FILE), _MAX_DECLARATION_BYTES))
    asks = ".\n".join(line[2:] for block in _ASKS.findall(declared) for line in block.splitlines())
    declaration = _STRUCTURE.sub("", _ASKS.sub("", declared))
    name = folded(skill.name)
    asks = asks or f"{name}.\n" + _CLAUSE_END.sub(".\n", description)  # else a skill without any would come last
    return Fields(name, description, sections, declaration, opening, asks)


def _text(path: str, most: int) -> str:
    """Return the text of a file of at most so many bytes; "" if it is missing or cannot be read."""
    try:
        return read_bounded(path, most, follow=False).decode("utf-8", "replace")
    except (FileNotFoundError, FileRefusedError):
        return ""


def _body(skill: Skill) -> str:
    """Return the body of a skill; "" if it can no longer be read."""
    try:
        return skill.body
    except (FileNotFoundError, SkillFileError):
        return ""


def _excerpt(skill: Skill, counters: Sequence[tuple[Counter, float]]) -> str:
    """Return the line of a skill's body that contains the rarest terms, shortened."""
    best, value = "", 0.0
    body = _body(skill)
    for line, text in zip(body.split("\n"), folded(body).split("\n"), strict=True):
        found = sum(rarity for count, rarity in counters if count(text))
        if found > value:
            best, value = line, found
    shown = " ".join(best.split())
    return shown if len(shown) <= _EXCERPT else shown[:_EXCERPT].rstrip() + "..."
