"""``skillpack show``."""

from __future__ import annotations

import click

from skillpack.commands import JSON, SKILLS_DIR, exit_unless, open_loader, print_json


@click.command("show")
@SKILLS_DIR
@click.argument("name")
@click.option("--section", metavar="HEADING", help="Print only this section.")
@click.option("--wrap", is_flag=True, help="Wrap the text in <skill_content>, with the sizes of the resources.")
@JSON
def command(skills_dirs: tuple[str, ...], name: str, section: str | None, wrap: bool, as_json: bool) -> None:
    """Print the instructions of skill NAME and the list of its resources (layer 2)."""
    answer = open_loader(skills_dirs).skill_request(name, section=section, wrap=wrap)
    if as_json:
        print_json(answer)
    elif answer["success"]:
        click.echo(answer["data"]["content"].rstrip("\n"))
    exit_unless(answer, printed=as_json)
