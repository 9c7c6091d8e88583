"""One version of a skill, as the registry knows it, and what it needs.

Dependencies are resolved to versions; missing, cyclic and conflicting ones are reported (S4.4).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, Any, Literal

from skillpack.registry.migrations import parse_version, satisfies
from sturdy.near_names import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from skillpack.registry.declaration import ToolDeclaration


@dataclass(frozen=True)
class SkillDefinition:
    """One version of one skill (what the pack otherwise calls a tool).

    Attributes:
        name: Dotted id, such as ``layout.create_common_centroid_pair``.
        version: Semantic version.
        handler: The function, for a skill registered in this process; None for one that runs as a script.
        input_schema: JSON Schema of the parameters.
        output_schema: JSON Schema of the answer's data; {} accepts anything.
        description: What it does.
        tags: Intents it serves, and what it may be classified by.
        cost: ``model_class``, ``context_size``, ``expected_rounds``.
        context: ``need_user_memory``, ``need_content_store``, ``retrieve_top_k``.
        dependencies: Skills it needs, each as ``name`` or ``name@requirement``.
        declaration: The entry in skill.yaml it was read from, if it was.
    """

    name: str
    version: str
    handler: Callable[..., Any] | None
    input_schema: Mapping[str, Any] = field(repr=False)
    output_schema: Mapping[str, Any] = field(repr=False)
    description: str = ""
    tags: Sequence[str] = ()
    cost: Mapping[str, Any] = field(default_factory=dict, repr=False)
    context: Mapping[str, Any] = field(default_factory=dict, repr=False)
    dependencies: Sequence[str] = ()
    declaration: ToolDeclaration | None = field(default=None, repr=False)

    @classmethod
    def from_declaration(cls, tool: ToolDeclaration) -> SkillDefinition:
        """Return the definition of a declared tool."""
        return cls(
            name=tool.id,
            version=tool.version,
            handler=None,
            input_schema=tool.input_schema,
            output_schema=tool.output_schema,
            description=tool.description,
            tags=list(tool.entry.get("intent_tags", ())),
            cost=tool.entry.get("cost", {}),
            context=tool.entry.get("context", {}),
            dependencies=tool.dependencies,
            declaration=tool,
        )


_MAX_ROUNDS = 100


@dataclass(frozen=True)
class DependencyProblem:
    """Why a skill's dependencies cannot be resolved.

    Attributes:
        kind: What kind of problem.
        skill: The skill that needs something.
        needs: Name of what it needs.
        message: The problem in words, with the skills that require the versions.
    """

    kind: Literal["missing", "cycle", "version"]
    skill: str
    needs: str
    message: str


@dataclass(frozen=True)
class Resolution:
    """The resolved dependencies of a skill.

    Attributes:
        order: The skills to have, dependencies before what needs them, the skill itself last.
        problems: What keeps it from running; ``order`` is then what could be resolved.
    """

    order: tuple[SkillDefinition, ...]
    problems: tuple[DependencyProblem, ...]

    @property
    def ok(self) -> bool:
        """Whether everything is there."""
        return not self.problems


def resolve(root: SkillDefinition, available: Mapping[str, Sequence[SkillDefinition]]) -> Resolution:
    """Return the dependencies of ``root``, each in the latest version that all dependents accept.

    The requirements may change with the chosen version; the choice is repeated until it is stable.

    Args:
        root: The skill to resolve.
        available: Every version of every skill, by name.
    """
    chosen: dict[str, SkillDefinition] = {root.name: root}
    for _ in range(_MAX_ROUNDS):
        required = _required(root, chosen)
        picked = {name: _pick(available.get(name, ()), by) for name, by in required.items() if name != root.name}
        following = {root.name: root, **{name: skill for name, skill in picked.items() if skill is not None}}
        if following == chosen:
            break
        chosen = following
    problems = [problem for name, by in required.items() for problem in _unmet(name, by, chosen, available)]
    order, cycles = _ordered(root, chosen)
    return Resolution(tuple(order), (*problems, *cycles))


def split(dependency: str) -> tuple[str, str]:
    """Return name and version requirement of a dependency ``name`` or ``name@requirement``."""
    name, _, requirement = dependency.partition("@")
    return name.strip(), requirement.strip()


def _required(root: SkillDefinition, chosen: Mapping[str, SkillDefinition]) -> dict[str, list[tuple[str, str]]]:
    """Return the requirements of all needed skills: name -> (dependent skill, requirement), from the root on."""
    required: dict[str, list[tuple[str, str]]] = {}
    waiting, seen = [root.name], {root.name}
    while waiting:
        name = waiting.pop(0)
        if name not in chosen:
            continue
        for dependency in chosen[name].dependencies:
            needed, requirement = split(dependency)
            required.setdefault(needed, []).append((name, requirement))
            if needed not in seen:
                seen.add(needed)
                waiting.append(needed)
    return required


def _pick(versions: Sequence[SkillDefinition], requirements: list[tuple[str, str]]) -> SkillDefinition | None:
    """Return the latest version that fulfils every requirement, or else the first one; None if there is none."""
    for accepted in ([requirement for _, requirement in requirements], [requirements[0][1]]):
        fitting = [skill for skill in versions if all(satisfies(skill.version, wanted) for wanted in accepted)]
        if fitting:
            return max(fitting, key=lambda skill: parse_version(skill.version))
    return None


def _unmet(
    name: str,
    requirements: list[tuple[str, str]],
    chosen: Mapping[str, SkillDefinition],
    available: Mapping[str, Sequence[SkillDefinition]],
) -> list[DependencyProblem]:
    """Return the problems with one needed skill."""
    versions = sorted({skill.version for skill in available.get(name, ())}, key=parse_version)
    problems = []
    for dependent, requirement in requirements:
        if not versions and name not in chosen:
            hint = did_you_mean(name, available)
            text = f"{dependent} needs {name}, which is not registered{hint}"
            problems.append(DependencyProblem("missing", dependent, name, text))
        elif name not in chosen or not satisfies(chosen[name].version, requirement):
            others = [f"{who} needs {wanted or 'any'}" for who, wanted in requirements if who != dependent]
            rivals = f" ({'; '.join(others)})" if others else ""
            text = f"{dependent} needs {name}@{requirement}, available: {', '.join(versions)}{rivals}"
            problems.append(DependencyProblem("version", dependent, name, text))
    return problems


def _ordered(
    root: SkillDefinition, chosen: Mapping[str, SkillDefinition]
) -> tuple[list[SkillDefinition], list[DependencyProblem]]:
    """Return the chosen skills that the root needs, dependencies first, and the cycles among them."""
    needs: dict[str, list[str]] = {}
    waiting = [root.name]
    for name in waiting:  # it grows
        if name not in needs:
            needs[name] = [needed for needed, _ in map(split, chosen[name].dependencies) if needed in chosen]
            waiting += needs[name]
    cycles: list[DependencyProblem] = []
    while True:
        try:
            return [chosen[name] for name in TopologicalSorter(needs).static_order()], cycles
        except CycleError as error:  # noqa: PERF203 - each cycle is reported
            circle = error.args[1][::-1]  # each needs the next; the first is also the last
            cycles.append(_cycle(circle[:-1]))
            needs[circle[0]].remove(circle[1])


def _cycle(circle: list[str]) -> DependencyProblem:
    """Return the problem of skills each of which needs the next; the text does not depend on where it was entered."""
    start = circle.index(min(circle))
    turned = [*circle[start:], *circle[:start]]
    text = f"{' -> '.join([*turned, turned[0]])} is a cycle"
    return DependencyProblem("cycle", turned[0], turned[1 % len(turned)], text)
