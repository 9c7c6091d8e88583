"""Which skills fit a query, by their names, descriptions, bodies and what skill.yaml says of their tools."""

# Paths stay strings, as in the catalogue.
# ruff: noqa: PTH118

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from skillpack.skills.exceptions import FileRefusedError, SkillFileError
from skillpack.skills.file_access import read_bounded
from skillpack.skills.relevance import MAX_TERMS, Fields, folded, rank, terms_of
from skillpack.skills.skill_md import DECLARATION_FILE

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from skillpack.skills.relevance import Counter
    from skillpack.skills.skill_md import Skill

_EXCERPT = 160
_MAX_DECLARATION_BYTES = 1 << 18
_NOT_FOR = re.compile(r"\b(?:not (?:for|needed)|(?:do not|don't|never) use)\b[^.;\u3002]*")


class Match(NamedTuple):
    """A skill that fits.

    Attributes:
        skill: The skill.
        score: How well; only comparable within one search.
        excerpt: The line of its body that fits best, "" when its name or description alone fits.
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
    """Return the skills that fit ``query`` best, and how many fit at all: those in which one of its terms occurs.

    Args:
        skills: What to search; of equally good ones the first comes first.
        query: Words.
        limit: Most skills to return.
    """
    candidates, terms = list(skills), terms_of(query, MAX_TERMS)
    if not terms:
        return [], 0
    ranking = rank([_fields(skill) for skill in candidates], terms)
    matches = sorted(
        ((score, skill) for score, skill in zip(ranking.scores, candidates, strict=True) if score > 0),
        key=lambda match: -match[0],
    )
    counters = [(term.counter(), rarity) for term, rarity in zip(terms, ranking.rarities, strict=True)]
    best = matches[: max(limit, 0)]
    return [Match(skill, score, _excerpt(skill, counters)) for score, skill in best], len(matches)


def _fields(skill: Skill) -> Fields:
    """Return name, description, body and declaration as they are searched: without what the skill is not for."""
    description = _NOT_FOR.sub("", folded(skill.description))
    return Fields(folded(skill.name), description, folded(_body(skill)), folded(_declaration(skill)))


def _declaration(skill: Skill) -> str:
    """Return the text of skill.yaml, which is not parsed; "" where there is none that can be read."""
    path = os.path.join(skill.dir, DECLARATION_FILE)
    try:
        return read_bounded(path, _MAX_DECLARATION_BYTES, follow=False).decode("utf-8", "replace")
    except (FileNotFoundError, FileRefusedError):
        return ""


def _body(skill: Skill) -> str:
    """Return the body of a skill; one that cannot be read any more is empty."""
    try:
        return skill.body
    except (FileNotFoundError, SkillFileError):
        return ""


def _excerpt(skill: Skill, counters: Sequence[tuple[Counter, float]]) -> str:
    """Return the line of a skill's body in which the rarest terms occur, shortened."""
    best, value = "", 0.0
    for line in _body(skill).split("\n"):
        text = folded(line)
        found = sum(rarity for count, rarity in counters if count(text))
        if found > value:
            best, value = line, found
    shown = " ".join(best.split())
    return shown if len(shown) <= _EXCERPT else shown[:_EXCERPT].rstrip() + "..."
