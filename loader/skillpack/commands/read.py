"""``skillpack read``."""

from __future__ import annotations

import sys

import click

from skillpack.commands import JSON, SKILLS_DIR, exit_unless, open_loader, print_json


@click.command("read")
@SKILLS_DIR
@click.argument("name")
@click.argument("path")
@click.option(
    "--max-bytes", type=click.IntRange(min=0), metavar="N", help="Maximum size of the file. [default: 1048576]"
)
@JSON
def command(skills_dirs: tuple[str, ...], name: str, path: str, max_bytes: int | None, as_json: bool) -> None:
    """Print the unchanged content of file PATH of skill NAME (layer 3)."""
    answer = open_loader(skills_dirs).read_resource(name, path, max_bytes=max_bytes)
    if as_json:
        print_json(answer)
    elif answer["success"]:
        data = answer["data"]
        import base64

        binary = data["encoding"] == "base64"
        sys.stdout.buffer.write(base64.b64decode(data["content"]) if binary else data["content"].encode())
        sys.stdout.buffer.flush()
    exit_unless(answer, printed=as_json)
