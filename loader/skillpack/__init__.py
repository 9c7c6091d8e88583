"""Find skills, serve their text layer by layer, and run their tools in separate processes.

Importing this package imports nothing else: each public name is loaded when it is first used, so that a host that only
lists skills does not load JSON Schema, the servers or the command line.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from skillpack.authoring.skill_rules import Finding
    from skillpack.authoring.validation import Report, validate
    from skillpack.exceptions import SkillNotFoundError, SkillpackError, SkillVersionNotFoundError
    from skillpack.execution.runner import Call, Runner
    from skillpack.execution.worker_pool import WorkerPool
    from skillpack.pipelines.pipeline import check_pipeline, load_pipeline
    from skillpack.pipelines.pipeline_run import RunOptions, run_pipeline
    from skillpack.registry.declaration import ToolDeclaration, ToolFault, Tools, find_tools
    from skillpack.registry.definitions import SkillDefinition
    from skillpack.registry.migrations import Migration, SkillVersionManager
    from skillpack.registry.skill_registry import SkillInfo, SkillRegistry, global_registry, skill
    from skillpack.skills.catalog import Catalog, Shadowed, Skipped, scan
    from skillpack.skills.layer1 import Budget, Layer1
    from skillpack.skills.loader import SkillLoader
    from skillpack.skills.resources import Resource, read_resource
    from skillpack.skills.roots import default_roots
    from skillpack.skills.skill_md import Skill, load_skill
    from sturdy.bounded_run import Cancellation

__all__ = [
    "Budget",
    "Call",
    "Cancellation",
    "Catalog",
    "Finding",
    "Layer1",
    "Migration",
    "Report",
    "Resource",
    "RunOptions",
    "Runner",
    "Shadowed",
    "Skill",
    "SkillDefinition",
    "SkillInfo",
    "SkillLoader",
    "SkillNotFoundError",
    "SkillRegistry",
    "SkillVersionManager",
    "SkillVersionNotFoundError",
    "SkillpackError",
    "Skipped",
    "ToolDeclaration",
    "ToolFault",
    "Tools",
    "WorkerPool",
    "check_pipeline",
    "default_roots",
    "find_tools",
    "global_registry",
    "load_pipeline",
    "load_skill",
    "read_resource",
    "run_pipeline",
    "scan",
    "skill",
    "validate",
]

_HOMES = {
    "Budget": "skills.layer1",
    "Call": "execution.runner",
    "Cancellation": "sturdy.bounded_run",
    "Catalog": "skills.catalog",
    "Finding": "authoring.skill_rules",
    "Layer1": "skills.layer1",
    "Migration": "registry.migrations",
    "Report": "authoring.validation",
    "Resource": "skills.resources",
    "RunOptions": "pipelines.pipeline_run",
    "Runner": "execution.runner",
    "Shadowed": "skills.catalog",
    "Skill": "skills.skill_md",
    "SkillDefinition": "registry.definitions",
    "SkillInfo": "registry.skill_registry",
    "SkillLoader": "skills.loader",
    "SkillNotFoundError": "exceptions",
    "SkillRegistry": "registry.skill_registry",
    "SkillVersionManager": "registry.migrations",
    "SkillVersionNotFoundError": "exceptions",
    "SkillpackError": "exceptions",
    "Skipped": "skills.catalog",
    "ToolDeclaration": "registry.declaration",
    "ToolFault": "registry.declaration",
    "Tools": "registry.declaration",
    "WorkerPool": "execution.worker_pool",
    "check_pipeline": "pipelines.pipeline",
    "default_roots": "skills.roots",
    "find_tools": "registry.declaration",
    "global_registry": "registry.skill_registry",
    "load_pipeline": "pipelines.pipeline",
    "load_skill": "skills.skill_md",
    "read_resource": "skills.resources",
    "run_pipeline": "pipelines.pipeline_run",
    "scan": "skills.catalog",
    "skill": "registry.skill_registry",
    "validate": "authoring.validation",
}


def __getattr__(name: str) -> object:
    """Return the public object ``name``, importing its module now."""
    if name not in _HOMES:
        raise AttributeError(f"module 'skillpack' has no attribute {name!r}")
    from importlib import import_module

    home = _HOMES[name]
    value: object = getattr(import_module(home if home.startswith("sturdy.") else f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Return the public names, loaded or not."""
    return sorted(__all__)
