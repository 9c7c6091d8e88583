"""``skillpack tools``."""

from __future__ import annotations

import sys
from typing import Any

import click

from skillpack.commands import EXIT_FINDINGS, JSON, SKILLS_DIR, fail, open_loader, open_tools, print_json


@click.command("tools")
@SKILLS_DIR
@click.argument("tool", required=False)
@JSON
def command(skills_dirs: tuple[str, ...], tool: str | None, as_json: bool) -> None:
    """List tools with versions and toolsets, or print the registry entry of TOOL (or TOOL@VERSION) with its schemas.

    Exit code: 1 if a dependency of a tool is missing, has another version or is cyclic.
    """
    from skillpack.exceptions import RegistryError
    from skillpack.registry.skill_registry import SkillRegistry
    from skillpack.untrusted.plain_text import one_line

    tools = open_tools(open_loader(skills_dirs))
    registry = SkillRegistry.from_tools(tools)
    if tool is not None:
        name, _, version = tool.partition("@")
        try:
            declaration = registry.get_skill(name, version or None).declaration
        except RegistryError as error:
            fail(str(error))
        print_json(None if declaration is None else declaration.to_json())
        return
    problems = [problem.message for problem in registry.dependency_problems()]
    found = [
        {
            "id": info.name,
            "versions": registry.versions(info.name),
            "toolsets": tools.by_id[info.name].toolsets,
            "description": info.description,
            "tags": info.tags,
        }
        for info in registry.list_skills()
    ]
    if as_json:
        print_json({"tools": found, "problems": problems})
    else:
        for entry in found:
            click.echo(one_line(_line(entry)))
        for problem in problems:
            click.echo(f"problem: {one_line(problem)}", err=True)
    sys.exit(EXIT_FINDINGS if problems else 0)


def _line(entry: dict[str, Any]) -> str:
    """Return a tool's line in the list."""
    versions, toolsets = ", ".join(entry["versions"]), ", ".join(entry["toolsets"])
    return f"{entry['id']} {versions} [{toolsets}]: {entry['description']}"
