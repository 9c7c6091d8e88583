"""``skillpack prompt``."""

from __future__ import annotations

import click

from skillpack.commands import JSON, SKILLS_DIR, named_roots, open_loader, print_json


@click.command("prompt")
@SKILLS_DIR
@click.option(
    "--style",
    type=click.Choice(["compact", "markdown", "xml"]),
    default="markdown",
    help="A list, a section with that list, or <available_skills>. [default: markdown]",
)
@click.option(
    "--how",
    type=click.Choice(["shell", "tool", "file"]),
    help="How the agent gets the content of a skill: by 'skillpack show', by the tool skill_request, or from the file, "
    "whose place only xml states. [default: shell; xml: file]",
)
@click.option("--max-characters", type=click.IntRange(min=1), metavar="N", help="Shorten descriptions to fit.")
@click.option("--max-tokens", type=click.IntRange(min=1), metavar="N", help="The same in estimated tokens.")
@JSON
def command(
    skills_dirs: tuple[str, ...],
    style: str,
    how: str | None,
    max_characters: int | None,
    max_tokens: int | None,
    as_json: bool,
) -> None:
    """Print the section for an agent's system prompt (layer 1).

    Descriptions that do not fit are shortened evenly; the text states how many.
    """
    from skillpack.skills.layer1 import BY_TOOL, STYLES, Budget

    if max_characters is not None and max_tokens is not None:
        raise click.UsageError("--max-characters and --max-tokens cannot be combined")
    if how == "file" and style != "xml":
        raise click.UsageError("--how file needs --style xml, which states the place of each SKILL.md")
    budget = None
    if max_characters is not None or max_tokens is not None:
        budget = Budget(max_characters or max_tokens or 1, "characters" if max_characters else "tokens")
    sentence: str | None = BY_TOOL if how == "tool" else _by_command(named_roots(skills_dirs))
    if style == "xml" and how in {None, "file"}:
        sentence = None
    section = open_loader(skills_dirs).layer1(STYLES[STYLES.index(style)], budget, sentence)
    if as_json:
        print_json(section._asdict())
    else:
        click.echo(section.text.strip("\n"))


def _by_command(roots: tuple[str, ...]) -> str:
    """Return the sentence that says how an agent with a shell gets the content of a skill in ``roots``."""
    import shlex
    from pathlib import Path

    named = [root if root.startswith("@") else str(Path(root).absolute()) for root in roots]
    dirs = [word for root in named for word in ("--skills-dir", root)]
    show, run = (shlex.join(["skillpack", name, *dirs]) for name in ("show", "run"))
    where = "Paths in the content start in the skill's folder."
    return f"Run `{show} NAME`. {where}\nRun a tool in any folder by `{run} TOOL --params JSON`."
