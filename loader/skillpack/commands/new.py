"""``skillpack new``."""

from __future__ import annotations

import shlex
from pathlib import Path

import click


@click.command("new")
@click.argument("name")
@click.option("--to", "parent", default="skills", metavar="DIR", help="Folder to make it in. [default: skills]")
@click.option("--description", default="", metavar="TEXT", help="What it does and when to use it.")
@click.option("--tool", metavar="ID", help="Id of its tool, such as text.count_words. [default: NAME.run]")
@click.option("--handler", is_flag=True, help="Make its tool a handler.py, with a prompt template and tests.")
@click.option("--no-tool", is_flag=True, help="Make a skill of text alone.")
def command(name: str, parent: str, description: str, tool: str | None, handler: bool, no_tool: bool) -> None:
    """Make the skill NAME: a small example that passes `skillpack validate` and whose tool runs. Change it to yours."""
    from skillpack.skills.scaffold import Plan, default_tool, write_skill

    if no_tool and tool is not None:
        raise click.UsageError("give --tool or --no-tool, not both")
    if no_tool and handler:
        raise click.UsageError("give --handler or --no-tool, not both")
    tool_id = None if no_tool else tool or default_tool(name)
    home = write_skill(Plan(name, Path(parent), description, tool_id, handler))
    click.echo(f"wrote {home}; change it, then:")
    click.echo(f"  skillpack validate {shlex.quote(str(home))}")
    if tool_id is not None:
        params = shlex.quote('{"text": "three short words"}')
        click.echo(f"  skillpack run {tool_id} --skills-dir {shlex.quote(str(home))} --params {params}")
    if handler:
        click.echo(f"  python -m pytest {shlex.quote(str(home / 'tests'))}")
