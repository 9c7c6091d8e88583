"""``skillpack list``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from skillpack.commands import JSON, SKILLS_DIR, open_loader, open_tools, print_json

if TYPE_CHECKING:
    from skillpack.registry.declaration import Tools
    from skillpack.skills.loader import SkillLoader


@click.command("list")
@SKILLS_DIR
@JSON
def command(skills_dirs: tuple[str, ...], as_json: bool) -> None:
    """List the skills and their tools."""
    loader = open_loader(skills_dirs)
    tools = open_tools(loader)
    if as_json:
        print_json([_summary(loader, tools, name) for name in loader.skills])
    for name, line in zip(loader.skills, loader.get_descriptions().split("\n"), strict=False):
        if not as_json:
            click.echo(line)
            for tool in tools.of_skill(name):
                click.echo(f"    {tool.id}")
    if not loader.has_skills():
        click.echo(f"no skills in {', '.join(loader.catalog.roots)}", err=True)
    lost = len(loader.catalog.errors) + len(tools.faults)
    if lost:
        click.echo(f"{lost} skills or tools were left out; 'skillpack doctor' reports why", err=True)


def _summary(loader: SkillLoader, tools: Tools, name: str) -> dict[str, Any]:
    """Return one skill as ``list --json`` prints it."""
    skill = loader.skills[name]
    return {
        "name": skill.name,
        "description": skill.description,
        "path": skill.path,
        "dir": skill.dir,
        "tools": [
            {"id": tool.id, "version": tool.version, "description": tool.description} for tool in tools.of_skill(name)
        ],
    }
