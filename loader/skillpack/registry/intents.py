"""Which skill serves an intent best, and why (S4.3).

A skill serves an intent when one of its tags or its name is the intent (case, blanks and punctuation do not matter).
Only when no skill has such a tag, those count of which a tag occurs in the intent's words, or the intent in a tag's;
words count in all their forms, as in ``skillpack search`` (``skillpack.relevance``).

The rank is decided by, in this order:

1. ``cost.model_class``: small before medium before large; a skill that declares none counts as medium;
2. the user's preference: ``user_profile.skill_preferences``, numbers by skill name or tag, higher first, 0 if unnamed;
3. the share of the wanted context that is there: user memory, content store;
4. ``cost.context_size``, ``cost.expected_rounds``;
5. how well name, description and tags fit the words of the intent, as ``skillpack search`` ranks, and last the name.

A skill whose dependencies cannot be resolved comes after all that can run.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any

from skillpack.relevance import MAX_TERMS, Fields, folded, terms_of, words_of
from skillpack.relevance import rank as rank_texts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from skillpack.registry.definitions import DependencyProblem, SkillDefinition

_SIZES = {"small": 0, "medium": 1, "large": 2}
_UNDECLARED = "medium"
_CRITERIA = (
    *("dependencies", "cost", "preference", "context fit"),
    *("context size", "expected rounds", "relevance", "name"),
)


@dataclass(frozen=True)
class RankedSkill:
    """A skill with its rank among those that serve an intent.

    Attributes:
        skill: The skill in its latest version.
        rank: Its place, from 1.
        matched: The tags by which it serves the intent.
        decided_by: The criterion that put it behind the one before; "" for the first.
        explanation: The reasons for its rank, in sentences.
    """

    skill: SkillDefinition
    rank: int
    matched: tuple[str, ...]
    decided_by: str
    explanation: tuple[str, ...]

    @property
    def name(self) -> str:
        """Name of the skill."""
        return self.skill.name

    @property
    def version(self) -> str:
        """Version of the skill."""
        return self.skill.version

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values, without the schemas."""
        return {
            "rank": self.rank,
            "id": self.name,
            "version": self.version,
            "description": self.skill.description,
            "matched": list(self.matched),
            "decided_by": self.decided_by,
            "explanation": list(self.explanation),
        }


def rank(
    skills: Iterable[SkillDefinition],
    intent: str,
    context: Mapping[str, Any],
    problems_of: Callable[[str], Sequence[DependencyProblem]],
) -> list[RankedSkill]:
    """Return the skills that serve ``intent``, the best first.

    Args:
        skills: To choose from.
        intent: A tag, or words of the user.
        context: The call's context (S1.2).
        problems_of: Answers what is wrong with the dependencies of a skill, by its name.
    """
    serving = _serving(skills, intent)
    texts = [
        Fields(folded(skill.name), folded(skill.description), declaration=folded(", ".join(skill.tags)))
        for skill, _ in serving
    ]
    relevances = rank_texts(texts, terms_of(intent, MAX_TERMS)).scores
    scores = [
        _score(skill, tags, context, problems_of(skill.name), relevance)
        for (skill, tags), relevance in zip(serving, relevances, strict=True)
    ]
    scores.sort(key=lambda score: score.key)
    ranked = []
    for index, score in enumerate(scores):
        before = scores[index - 1].key if index else score.key
        decided = next((name for name, a, b in zip(_CRITERIA, before, score.key, strict=True) if a != b), "")
        place = f"rank {index + 1} of {len(scores)} for {intent!r}: matches {', '.join(score.tags)}"
        behind = f"behind {scores[index - 1].skill.name} by {decided}" if decided else ""
        sentences = (place, *score.sentences, *([behind] if behind else []))
        ranked.append(RankedSkill(score.skill, index + 1, score.tags, decided, sentences))
    return ranked


@dataclass(frozen=True)
class _Score:
    skill: SkillDefinition
    tags: tuple[str, ...]
    key: tuple[Any, ...]
    sentences: tuple[str, ...]


def _serving(skills: Iterable[SkillDefinition], intent: str) -> list[tuple[SkillDefinition, tuple[str, ...]]]:
    """Return the skills that serve the intent, each with the tags by which it does; its own name is a tag, too."""
    candidates = list(skills)
    words, terms = words_of(intent), set(terms_of(intent))
    if not words:
        return []

    def is_part(tag: str) -> bool:
        """Return whether all terms of a tag are in the intent, or all terms of the intent in the tag."""
        found = set(terms_of(tag))
        return bool(found) and (found <= terms or terms <= found)

    return _with_tags(candidates, lambda tag: words_of(tag) == words) or _with_tags(candidates, is_part)


def _with_tags(
    skills: Sequence[SkillDefinition], fits: Callable[[str], bool]
) -> list[tuple[SkillDefinition, tuple[str, ...]]]:
    """Return the skills that have tags that fit, with those tags."""
    found = [(skill, tuple(tag for tag in (*skill.tags, skill.name) if fits(tag))) for skill in skills]
    return [(skill, tags) for skill, tags in found if tags]


def _score(
    skill: SkillDefinition,
    tags: tuple[str, ...],
    context: Mapping[str, Any],
    problems: Sequence[DependencyProblem],
    relevance: float,
) -> _Score:
    """Return what decides the skill's rank, and the same in words."""
    declared = skill.cost.get("model_class")
    model_class = declared if declared in _SIZES else _UNDECLARED
    preference, why = _preference(skill, context)
    fit, needs = _context_fit(skill, context)
    size = skill.cost.get("context_size", _UNDECLARED)
    rounds = skill.cost.get("expected_rounds", 1)
    key = (
        len(problems) > 0,
        _SIZES[model_class],
        -preference,
        -fit,
        _SIZES.get(size, _SIZES[_UNDECLARED]),
        rounds,
        -round(relevance, 3),
        skill.name,
    )
    sentences = (
        f"cost: model_class {model_class}" + ("" if declared else " (none declared)"),
        f"preference: {preference:g} ({why})",
        f"context fit: {fit:.0%} ({needs})",
        f"relevance: {relevance:.3f}",
        *(f"cannot run: {problem.message}" for problem in problems),
    )
    return _Score(skill, tags, key, sentences)


def _preference(skill: SkillDefinition, context: Mapping[str, Any]) -> tuple[float, str]:
    """Return the user's preference for a skill: its name's if there is one, else its tags' highest."""
    profile = context.get("user_profile")
    wishes = profile.get("skill_preferences") if isinstance(profile, dict) else None
    if not isinstance(wishes, dict):
        return 0.0, "the user profile has no skill_preferences"
    numbers = {
        str(key): float(value) for key, value in wishes.items() if type(value) in (int, float) and isfinite(value)
    }
    if skill.name in numbers:
        return numbers[skill.name], f"the user's for {skill.name}"
    tagged = [(numbers[tag], tag) for tag in skill.tags if tag in numbers]
    if tagged:
        value, tag = max(tagged)
        return value, f"the user's for tag {tag}"
    return 0.0, "the user names neither the skill nor its tags"


def _context_fit(skill: SkillDefinition, context: Mapping[str, Any]) -> tuple[float, str]:
    """Return the share of the context the skill wants that is there, and it in words."""
    shares: list[tuple[float, str]] = []
    if skill.context.get("need_user_memory"):
        there = bool(context.get("memory_summary") or context.get("user_profile"))
        shares.append((float(there), f"user memory {'is there' if there else 'is missing'}"))
    if skill.context.get("need_content_store"):
        given = context.get("content_context")
        contents = len(given) if isinstance(given, list) else 0
        wanted = max(1, int(skill.context.get("retrieve_top_k") or 1))
        shares.append((min(1.0, contents / wanted), f"{contents} of {wanted} contents"))
    if not shares:
        return 1.0, "it wants nothing of the context"
    return sum(share for share, _ in shares) / len(shares), ", ".join(text for _, text in shares)
