"""``skillpack read``."""

from __future__ import annotations

import sys

import click

from skillpack.command_line import JSON, SKILLS_DIR, exit_unless, open_loader, print_json


@click.command("read")
@SKILLS_DIR
@click.argument("name")
@click.argument("path")
@JSON
def command(skills_dirs: tuple[str, ...], name: str, path: str, as_json: bool) -> None:
    """Print the file PATH of skill NAME, byte for byte (layer 3)."""
    loader = open_loader(skills_dirs)
    answer = loader.read_resource(name, path)
    if as_json:
        print_json(answer)
    elif answer["success"]:
        from skillpack.resources import read_resource

        sys.stdout.buffer.write(read_resource(loader.skills[name], path).data)
    exit_unless(answer, told=as_json)
