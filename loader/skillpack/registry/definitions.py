"""One version of a skill, as the registry knows it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

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
