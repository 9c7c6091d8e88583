"""Subcommands that serve skills: ``list``, ``show``, ``read``, ``search`` and ``prompt``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from skillpack.commands import (
    JSON,
    SKILLS_DIR,
    answered,
    complete_skills,
    named_roots,
    open_loader,
    open_tools,
    print_json,
)

if TYPE_CHECKING:
    from skillpack.registry.declaration import Tools
    from skillpack.skills.loader import SkillLoader


@click.command("list")
@SKILLS_DIR
@JSON
def list_command(skills_dirs: tuple[str, ...], as_json: bool) -> None:
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


@click.command("show")
@SKILLS_DIR
@click.argument("name", shell_complete=complete_skills)
@click.option("--section", metavar="HEADING", help="Print only this section.")
@click.option("--wrap", is_flag=True, help="Wrap the text in <skill_content>, with the sizes of the resources.")
@JSON
def show_command(skills_dirs: tuple[str, ...], name: str, section: str | None, wrap: bool, as_json: bool) -> None:
    """Print the instructions of skill NAME and the list of its resources (layer 2)."""
    answer = open_loader(skills_dirs).skill_request(name, section=section, wrap=wrap)
    data = answered(answer, as_json=as_json)
    if data is not None:
        click.echo(data["content"].rstrip("\n"))


@click.command("read")
@SKILLS_DIR
@click.argument("name", shell_complete=complete_skills)
@click.argument("path")
@click.option(
    "--max-bytes", type=click.IntRange(min=0), metavar="N", help="Maximum size of the file. [default: 1048576]"
)
@JSON
def read_command(skills_dirs: tuple[str, ...], name: str, path: str, max_bytes: int | None, as_json: bool) -> None:
    """Print the unchanged content of file PATH of skill NAME (layer 3)."""
    answer = open_loader(skills_dirs).read_resource(name, path, max_bytes=max_bytes)
    data = answered(answer, as_json=as_json)
    if data is not None:
        import base64

        binary = data["encoding"] == "base64"
        sys.stdout.buffer.write(base64.b64decode(data["content"]) if binary else data["content"].encode())
        sys.stdout.buffer.flush()


@click.command("search")
@SKILLS_DIR
@click.argument("query", nargs=-1, required=True)
@click.option(
    "--limit", type=click.IntRange(min=1), default=10, metavar="N", help="Maximum number of skills. [default: 10]"
)
@JSON
def search_command(skills_dirs: tuple[str, ...], query: tuple[str, ...], limit: int, as_json: bool) -> None:
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
def prompt_command(
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
