"""``skillpack new``."""

from __future__ import annotations

import shlex
from pathlib import Path

import click


@click.command("new")
@click.argument("name")
@click.option(
    "--to", "parent", default="skills", metavar="DIR", help="Folder in which to create the skill. [default: skills]"
)
@click.option("--description", default="", metavar="TEXT", help="What the skill does and when to use it.")
@click.option("--tool", metavar="ID", help="Id of its tool, such as text.count_words. [default: NAME.run]")
@click.option("--handler", is_flag=True, help="Write the tool as a handler.py, with a prompt template and tests.")
@click.option("--no-tool", is_flag=True, help="Create a skill without a tool.")
def command(name: str, parent: str, description: str, tool: str | None, handler: bool, no_tool: bool) -> None:
    """Create the skill NAME: a small example to edit. It passes `skillpack validate`, and its tool runs."""
    from skillpack.authoring.scaffold import Plan, default_tool, write_skill

    if no_tool and tool is not None:
        raise click.UsageError("--tool and --no-tool cannot be combined")
    if no_tool and handler:
        raise click.UsageError("--handler and --no-tool cannot be combined")
    tool_id = None if no_tool else tool or default_tool(name)
    home = write_skill(Plan(name, Path(parent), description, tool_id, handler))
    click.echo(f"wrote {home}; edit it, then run:")
    click.echo(f"  skillpack validate {shlex.quote(str(home))}")
    if tool_id is not None:
        params = shlex.quote('{"text": "three short words"}')
        click.echo(f"  skillpack run {tool_id} --skills-dir {shlex.quote(str(home))} --params {params}")
    if handler:
        click.echo(f"  python -m pytest {shlex.quote(str(home / 'tests'))}")
