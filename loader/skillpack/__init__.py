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
    from skillpack.skills.catalog import Catalog, Shadowed, Skipped, default_roots, scan
    from skillpack.skills.layer1 import Budget, Layer1
    from skillpack.skills.loader import SkillLoader
    from skillpack.skills.skill_md import Resource, Skill, load_skill, read_resource
    from sturdy.bounded_run import Cancellation

__all__ = ["Catalog", "Shadowed", "Skill", "SkillLoader", "Skipped", "default_roots", "load_skill", "scan"]
__all__ += ["Budget", "Layer1", "Resource", "read_resource"]
__all__ += ["Finding", "Report", "SkillNotFoundError", "SkillVersionNotFoundError", "SkillpackError", "validate"]
__all__ += ["Migration", "SkillDefinition", "SkillInfo", "SkillRegistry", "SkillVersionManager"]
__all__ += ["global_registry", "skill"]
__all__ += ["Call", "Cancellation", "Runner", "ToolDeclaration", "ToolFault", "Tools", "WorkerPool", "find_tools"]
__all__ += ["RunOptions", "check_pipeline", "load_pipeline", "run_pipeline"]

_PUBLIC = {
    "authoring.skill_rules": ("Finding",),
    "authoring.validation": ("Report", "validate"),
    "exceptions": ("SkillNotFoundError", "SkillVersionNotFoundError", "SkillpackError"),
    "execution.runner": ("Call", "Runner"),
    "execution.worker_pool": ("WorkerPool",),
    "pipelines.pipeline": ("check_pipeline", "load_pipeline"),
    "pipelines.pipeline_run": ("RunOptions", "run_pipeline"),
    "registry.declaration": ("ToolDeclaration", "ToolFault", "Tools", "find_tools"),
    "registry.definitions": ("SkillDefinition",),
    "registry.migrations": ("Migration", "SkillVersionManager"),
    "registry.skill_registry": ("SkillInfo", "SkillRegistry", "global_registry", "skill"),
    "skills.catalog": ("Catalog", "Shadowed", "Skipped", "default_roots", "scan"),
    "skills.layer1": ("Budget", "Layer1"),
    "skills.loader": ("SkillLoader",),
    "skills.skill_md": ("Resource", "Skill", "load_skill", "read_resource"),
    "sturdy.bounded_run": ("Cancellation",),
}
_HOMES = {name: home for home, names in _PUBLIC.items() for name in names}


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
