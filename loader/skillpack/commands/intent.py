"""``skillpack intent``."""

from __future__ import annotations

import sys

import click

from skillpack.commands import (
    EXIT_FINDINGS,
    JSON,
    SKILLS_DIR,
    fail,
    json_argument,
    open_loader,
    open_tools,
    print_json,
)


@click.command("intent")
@SKILLS_DIR
@click.argument("intent")
@click.option("--context", metavar="JSON|@FILE", help="user_profile (skill_preferences), memory_summary, ...")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Maximum number of tools.")
@JSON
def command(skills_dirs: tuple[str, ...], intent: str, context: str | None, limit: int | None, as_json: bool) -> None:
    """Rank the tools that serve INTENT (a tag or words), with the reasons for each rank.

    The order is by cost, then user preference, then how much of the context that a tool needs is available.
    Exit code: 1 if no tool serves INTENT.
    """
    from skillpack.registry.skill_registry import SkillRegistry
    from skillpack.untrusted.plain_text import one_line
    from skillscript.envelope import SkillError

    try:
        surroundings = {} if context is None else json_argument("context", context)
    except SkillError as error:
        fail(error.message)
    if not isinstance(surroundings, dict):
        fail("--context must be a JSON object")
    registry = SkillRegistry.from_tools(open_tools(open_loader(skills_dirs)))
    matches = registry.get_skills_by_intent(intent, context=surroundings, limit=limit)
    if as_json:
        print_json([match.to_json() for match in matches])
    for match in matches if not as_json else ():
        click.echo(one_line(f"{match.rank}. {match.name} {match.version}: {match.skill.description}"))
        for reason in match.explanation:
            click.echo(f"   {one_line(reason)}")
    if not matches:
        click.echo(f"no tool serves {intent!r}", err=True)
        sys.exit(EXIT_FINDINGS)
