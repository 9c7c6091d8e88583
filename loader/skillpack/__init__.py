"""Find skills, serve their text layer by layer, and run their tools in separate processes.

Importing this package imports nothing else: each public name is loaded when it is first used, so a
host that only lists skills never pays for YAML, JSON Schema or the command line.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from skillpack.catalog import Catalog, Shadowed, Skipped, scan
    from skillpack.declaration import ToolDeclaration, ToolFault, Tools, find_tools
    from skillpack.errors import SkillpackError
    from skillpack.loader import SkillLoader
    from skillpack.resources import Resource, read_resource
    from skillpack.roots import default_roots
    from skillpack.runner import Call, Runner
    from skillpack.skill import Skill, load_skill

__all__ = [
    "Call",
    "Catalog",
    "Resource",
    "Runner",
    "Shadowed",
    "Skill",
    "SkillLoader",
    "SkillpackError",
    "Skipped",
    "ToolDeclaration",
    "ToolFault",
    "Tools",
    "default_roots",
    "find_tools",
    "load_skill",
    "read_resource",
    "scan",
]

_HOMES = {
    "Call": "runner",
    "Catalog": "catalog",
    "Resource": "resources",
    "Runner": "runner",
    "Shadowed": "catalog",
    "Skill": "skill",
    "SkillLoader": "loader",
    "SkillpackError": "errors",
    "Skipped": "catalog",
    "ToolDeclaration": "declaration",
    "ToolFault": "declaration",
    "Tools": "declaration",
    "default_roots": "roots",
    "find_tools": "declaration",
    "load_skill": "skill",
    "read_resource": "resources",
    "scan": "catalog",
}


def __getattr__(name: str) -> object:
    """Return the public object ``name``, importing its module now."""
    if name not in _HOMES:
        raise AttributeError(f"module 'skillpack' has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Return the public names, loaded or not."""
    return sorted(__all__)
