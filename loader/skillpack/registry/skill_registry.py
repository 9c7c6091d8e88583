"""The registry: the known skills in their versions. It imports and executes nothing of them (S4.5)."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from skillpack.exceptions import RegistryError, SkillNotFoundError, SkillVersionNotFoundError, VersionError
from skillpack.registry.definitions import SkillDefinition
from skillpack.registry.migrations import check_requirement, latest, parse_version
from sturdy.near_names import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from skillpack.registry.declaration import Tools
    from skillpack.registry.definitions import DependencyProblem, Resolution
    from skillpack.registry.intents import RankedSkill

    Function = TypeVar("Function", bound=Callable[..., Any])


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
        needs that is available; see ``skillpack.registry.intents``.

        Args:
            intent: A tag, or words of the user.
            context: The call's context (S1.2): user_profile, session_context, memory_summary, content_context.
            limit: Most skills to return.
        """
        from skillpack.registry.intents import rank

        newest = [self.get_skill(name) for name in self._skills]
        return rank(newest, intent, context or {}, lambda name: self.resolve_dependencies(name).problems)[:limit]

    def resolve_dependencies(self, name: str, version: str | None = None) -> Resolution:
        """Return what a skill needs, in the order to run it, and what is missing, cyclic or in conflict (S4.4).

        Raises:
            SkillNotFoundError: If no skill has that name.
            SkillVersionNotFoundError: If it is not registered in that version.
        """
        from skillpack.registry.definitions import resolve

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
