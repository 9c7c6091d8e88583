"""``skillpack prompt``."""

from __future__ import annotations

import click

from skillpack.command_line import SKILLS_DIR, open_loader


@click.command("prompt")
@SKILLS_DIR
def command(skills_dirs: tuple[str, ...]) -> None:
    """Print the section for an agent's system prompt (layer 1)."""
    click.echo(open_loader(skills_dirs).get_prompt_section().strip("\n"))
