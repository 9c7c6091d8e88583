"""The registry: the known skills in their versions, and which of them serves an intent best, and why (S4.3).

It imports and executes nothing of them (S4.5).
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any, TypeVar

from skillpack.exceptions import RegistryError, SkillNotFoundError, SkillVersionNotFoundError, VersionError
from skillpack.registry.definitions import SkillDefinition, resolve
from skillpack.registry.migrations import check_requirement, latest, parse_version
from skillpack.skill_search import MAX_TERMS, Fields, folded, terms_of, words_of
from skillpack.skill_search import rank as rank_texts
from sturdy.near_names import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from skillpack.registry.declaration import Tools
    from skillpack.registry.definitions import DependencyProblem, Resolution

    Function = TypeVar("Function", bound=Callable[..., Any])


_SIZES = {"small": 0, "medium": 1, "large": 2}
_UNDECLARED = "medium"
_CRITERIA = (
    *("dependencies", "cost", "preference", "context fit"),
    *("context size", "expected rounds", "relevance", "name"),
)


@dataclass(frozen=True)
class SkillInfo:
    """The entry of a skill in a list: its latest version, description and tags."""

    name: str
    version: str
    description: str
    tags: Sequence[str]


class SkillRegistry:
    """Skills by name, each in any number of versions (S0.11)."""

    def __init__(self) -> None:
        self._skills: dict[str, dict[str, SkillDefinition]] = {}

    @classmethod
    def from_tools(cls, tools: Tools) -> SkillRegistry:
        """Return a registry of declared tools, all their versions included."""
        registry = cls()
        for tool_id in tools.by_id:
            for tool in tools.versions(tool_id):
                registry.register(SkillDefinition.from_declaration(tool))
        return registry

    def register(self, skill: SkillDefinition) -> None:
        """Add ``skill`` as a version of its name; registering the same version again replaces it.

        Raises:
            RegistryError: If it has no name.
            VersionError: If its version is no semantic version, or a dependency's version requirement is malformed.
        """
        if not skill.name:
            raise RegistryError("a skill needs a name")
        parse_version(skill.version)
        for dependency in skill.dependencies:
            check_requirement(dependency.partition("@")[2])
        self._skills.setdefault(skill.name, {})[skill.version] = skill

    def get_skill(self, name: str, version: str | None = None) -> SkillDefinition:
        """Return a skill in exactly ``version``, or in its latest one.

        Raises:
            SkillNotFoundError: If no skill has that name.
            SkillVersionNotFoundError: If it is not registered in that version.
        """
        versions = self._versions(name)
        if not version:
            return versions[latest(versions)]
        if version in versions:
            return versions[version]
        with contextlib.suppress(VersionError):  # what is no version is none of the registered ones
            wanted = parse_version(version)
            for known, skill in versions.items():
                if parse_version(known) == wanted:  # "1.0" names "1.0.0"
                    return skill
        raise SkillVersionNotFoundError(
            f"Version {version} not found for skill {name}; available: {', '.join(self.versions(name))}"
        )

    def list_skills(self) -> list[SkillInfo]:
        """Return every skill in its latest version, in the order of registration."""
        newest = [self.get_skill(name) for name in self._skills]
        return [SkillInfo(skill.name, skill.version, skill.description, list(skill.tags)) for skill in newest]

    def versions(self, name: str) -> list[str]:
        """Return the registered versions of a skill, the latest first.

        Raises:
            SkillNotFoundError: If no skill has that name.
        """
        return sorted(self._versions(name), key=parse_version, reverse=True)

    def get_skills_by_intent(
        self, intent: str, *, context: Mapping[str, Any] | None = None, limit: int | None = None
    ) -> list[RankedSkill]:
        """Return the skills that serve ``intent``, the best first, each with the reasons for its rank (S4.3).

        Ranked by cost (model_class), then by the user's preference, then by the share of the context the skill
        needs that is available; see ``rank``.

        Args:
            intent: A tag, or words of the user.
            context: The call's context (S1.2): user_profile, session_context, memory_summary, content_context.
            limit: Most skills to return.
        """
        newest = [self.get_skill(name) for name in self._skills]
        return rank(newest, intent, context or {}, lambda name: self.resolve_dependencies(name).problems)[:limit]

    def resolve_dependencies(self, name: str, version: str | None = None) -> Resolution:
        """Return what a skill needs, in the order to run it, and what is missing, cyclic or in conflict (S4.4).

        Raises:
            SkillNotFoundError: If no skill has that name.
            SkillVersionNotFoundError: If it is not registered in that version.
        """
        available = {known: list(versions.values()) for known, versions in self._skills.items()}
        return resolve(self.get_skill(name, version), available)

    def dependency_problems(self) -> list[DependencyProblem]:
        """Return what is wrong with the dependencies of any skill in its latest version; each problem once."""
        found: dict[tuple[str, str], DependencyProblem] = {}
        for name in self._skills:
            for problem in self.resolve_dependencies(name).problems:
                found.setdefault((problem.skill, problem.message), problem)
        return list(found.values())

    def _versions(self, name: str) -> dict[str, SkillDefinition]:
        versions = self._skills.get(name)
        if versions is None:
            raise SkillNotFoundError(f"Skill not found: {name}{did_you_mean(name, self._skills)}")
        return versions


global_registry = SkillRegistry()


def skill(
    name: str, version: str = "1.0.0", description: str = "", tags: Sequence[str] | None = None
) -> Callable[[Function], Function]:
    """Return a decorator that registers a function in ``global_registry`` and leaves it as it is (S0.13).

    The input schema comes from its signature and docstring, the output schema from its return annotation; see
    ``skillpack.registry.signature_schema``. Call it as a skill with ``skillpack.execution.in_process.call``.

    Args:
        name: Dotted id.
        version: Semantic version.
        description: What it does; default: the first paragraph of its docstring.
        tags: Intents it serves.

    Raises:
        TypeError: When decorating, if a parameter has a type that JSON cannot hold, or the name is missing.
        RegistryError: When decorating, if the libraries of the extra ``functions`` are not installed.
    """
    if not isinstance(name, str):
        raise TypeError('a skill needs a name: write @skill(name="category.action_target")')

    def register(function: Function) -> Function:
        try:
            from skillpack.registry.signature_schema import describe
        except ImportError as error:
            from skillscript.install import install_command

            text = (
                f"@skill needs the Python library {error.name}, which is not installed: {install_command('functions')}"
            )
            raise RegistryError(text) from error
        described = describe(function)
        global_registry.register(
            SkillDefinition(
                name=name,
                version=version,
                handler=function,
                input_schema=described.input_schema,
                output_schema=described.output_schema,
                description=description or described.summary,
                tags=list(tags or ()),
            )
        )
        return function

    return register


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

    A skill serves an intent when one of its tags or its name is the intent (case, blanks and punctuation do not
    matter). Only when no skill has such a tag, those count of which a tag occurs in the intent's words, or the intent
    in a tag's; words count in all their forms, as in ``skillpack search`` (``skillpack.skill_search``).

    The rank is decided by, in this order:

    1. ``cost.model_class``: small before medium before large; a skill that declares none counts as medium;
    2. the user's preference: ``user_profile.skill_preferences``, numbers by skill name or tag, higher first, 0 if
       unnamed;
    3. the share of the wanted context that is there: user memory, content store;
    4. ``cost.context_size``, ``cost.expected_rounds``;
    5. how well name, description and tags fit the words of the intent, as ``skillpack search`` ranks, and last the
       name.

    A skill whose dependencies cannot be resolved comes after all that can run.

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
