"""``skillpack prompt``."""

from __future__ import annotations

import click

from skillpack.commands import JSON, SKILLS_DIR, open_loader, print_json


@click.command("prompt")
@SKILLS_DIR
@click.option(
    "--style",
    type=click.Choice(["compact", "markdown", "xml"]),
    default="markdown",
    help="A list, a section with that list, or <available_skills>. [default: markdown]",
)
@click.option("--max-characters", type=click.IntRange(min=1), metavar="N", help="Shorten descriptions to fit.")
@click.option("--max-tokens", type=click.IntRange(min=1), metavar="N", help="The same in estimated tokens.")
@JSON
def command(
    skills_dirs: tuple[str, ...], style: str, max_characters: int | None, max_tokens: int | None, as_json: bool
) -> None:
    """Print the section for an agent's system prompt (layer 1).

    Descriptions that do not fit are shortened evenly; the text states how many.
    """
    from skillpack.skills.layer1 import STYLES, Budget

    if max_characters is not None and max_tokens is not None:
        raise click.UsageError("--max-characters and --max-tokens cannot be combined")
    budget = None
    if max_characters is not None or max_tokens is not None:
        budget = Budget(max_characters or max_tokens or 1, "characters" if max_characters else "tokens")
    section = open_loader(skills_dirs).layer1(STYLES[STYLES.index(style)], budget)
    if as_json:
        print_json(section._asdict())
    else:
        click.echo(section.text.strip("\n"))
