"""``skillpack search``."""

from __future__ import annotations

import click

from skillpack.commands import JSON, SKILLS_DIR, open_loader, print_json


@click.command("search")
@SKILLS_DIR
@click.argument("query", nargs=-1, required=True)
@click.option(
    "--limit", type=click.IntRange(min=1), default=10, metavar="N", help="Maximum number of skills. [default: 10]"
)
@JSON
def command(skills_dirs: tuple[str, ...], query: tuple[str, ...], limit: int, as_json: bool) -> None:
    """List the skills that fit QUERY best, by name, description and instructions (BM25)."""
    from textwrap import shorten

    answer = open_loader(skills_dirs).search(" ".join(query), limit=limit)
    if as_json:
        print_json(answer)
        return
    for skill in answer["data"]["skills"]:
        click.echo(f"{skill['score']:6.2f}  {skill['name']}: {shorten(skill['description'], 140, placeholder=' ...')}")
        if skill["excerpt"]:
            click.echo(f"        {skill['excerpt']}")
    left = answer["data"]["total"] - len(answer["data"]["skills"])
    if left:
        click.echo(f"{left} more; use --limit to show them", err=True)
    if not answer["data"]["total"]:
        click.echo("no matching skill", err=True)
