"""Subcommands for single tools: ``tools``, ``intent`` and ``run``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from skillpack.commands import (
    EXIT_FINDINGS,
    JSON,
    SKILLS_DIR,
    complete_tools,
    fail,
    json_argument,
    open_loader,
    open_tools,
    pass_on,
    print_json,
)

if TYPE_CHECKING:
    from skillpack.execution.short_answers import Detail


@click.command("tools")
@SKILLS_DIR
@click.argument("tool", required=False, shell_complete=complete_tools)
@JSON
def tools_command(skills_dirs: tuple[str, ...], tool: str | None, as_json: bool) -> None:
    """List tools with versions and toolsets, or print the registry entry of TOOL (or TOOL@VERSION) with its schemas.

    Exit code: 1 if a dependency of a tool is missing, has another version or is cyclic.
    """
    from skillpack.exceptions import RegistryError
    from skillpack.registry.skill_registry import SkillRegistry
    from skillpack.untrusted.file_access import one_line

    tools = open_tools(open_loader(skills_dirs))
    registry = SkillRegistry.from_tools(tools)
    if tool is not None:
        name, _, version = tool.partition("@")
        try:
            declaration = registry.get_skill(name, version or None).declaration
        except RegistryError as error:
            fail(str(error))
        print_json(None if declaration is None else declaration.to_json())
        return
    problems = [problem.message for problem in registry.dependency_problems()]
    found = [
        {
            "id": info.name,
            "versions": registry.versions(info.name),
            "toolsets": tools.by_id[info.name].toolsets,
            "description": info.description,
            "tags": info.tags,
        }
        for info in registry.list_skills()
    ]
    if as_json:
        print_json({"tools": found, "problems": problems})
    else:
        for entry in found:
            click.echo(one_line(_line(entry)))
        for problem in problems:
            click.echo(f"problem: {one_line(problem)}", err=True)
    sys.exit(EXIT_FINDINGS if problems else 0)


def _line(entry: dict[str, Any]) -> str:
    """Return a tool's line in the list."""
    versions, toolsets = ", ".join(entry["versions"]), ", ".join(entry["toolsets"])
    return f"{entry['id']} {versions} [{toolsets}]: {entry['description']}"


@click.command("intent")
@SKILLS_DIR
@click.argument("intent")
@click.option("--context", metavar="JSON|@FILE", help="user_profile (skill_preferences), memory_summary, ...")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Maximum number of tools.")
@JSON
def intent_command(
    skills_dirs: tuple[str, ...], intent: str, context: str | None, limit: int | None, as_json: bool
) -> None:
    """Rank the tools that serve INTENT (a tag or words), with the reasons for each rank.

    The order is by cost, then user preference, then how much of the context that a tool needs is available.
    Exit code: 1 if no tool serves INTENT.
    """
    from skillpack.registry.skill_registry import SkillRegistry
    from skillpack.untrusted.file_access import one_line
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


@click.command("run")
@SKILLS_DIR
@click.argument("tool", shell_complete=complete_tools)
@click.option("--params", default="{}", metavar="JSON|@FILE|-", help="Parameters; - reads them from stdin.")
@click.option("--context", metavar="JSON|@FILE", help="user_profile, session_context, memory_summary, content_context.")
@click.option("--timeout", type=float, metavar="S", help="Seconds until the tool is killed. [default: 300]")
@click.option(
    "--detail",
    type=click.Choice(["short", "full"]),
    default="short",
    show_default=True,
    help="How much of the answer is printed; 'left_out' lists what a short one lacks. Also a field of --params.",
)
@click.option("--pretty", is_flag=True, help="Indent the answer.")
def run_command(  # noqa: PLR0913, PLR0917 - click passes one argument for each option
    skills_dirs: tuple[str, ...],
    tool: str,
    params: str,
    context: str | None,
    timeout: float | None,
    detail: Detail,
    pretty: bool,
) -> None:
    """Run TOOL, or TOOL@VERSION, in a separate process and print its envelope.

    Parameters for an older compatible version are converted; notes on stderr list the changes.

    Exit code: 0 done; 1 done, but the design violates something; 2 bad input; 3 a needed program is
    missing; 4 timeout, crash or internal error.
    """
    from skillpack.execution.runner import Call, Runner
    from skillpack.execution.short_answers import in_detail, take_detail
    from skillscript.envelope import EXIT_CODES, ErrorCode, SkillError, SkillResult, to_json
    from skillscript.runtime import Stopped, error_of, stop_on_signals

    stop_on_signals()
    try:
        runner = Runner(open_tools(open_loader(skills_dirs)), warm=False)
        known = runner.tools.get(tool.partition("@")[0])
        values, detail = take_detail(known, json_argument("params", params), detail)
        surroundings = None if context is None else json_argument("context", context)
        aloud = detail == "full" or sys.stderr.isatty()  # who reads both streams as one has the figures in the answer
        said = pass_on if aloud else None
        call = runner.run(tool, values, context=surroundings, timeout=timeout, on_stderr=said)
        for note in call.notes:
            click.echo(f"note: {note}", err=True)
        if not aloud and call.result.exit_code == EXIT_CODES[ErrorCode.INTERNAL_ERROR]:
            pass_on(call.stderr.encode())
    except (SkillError, KeyboardInterrupt, Stopped) as problem:  # a tool that ran was killed on the way here
        call = Call(SkillResult.failure(error_of(problem)[0]))
    click.echo(to_json(in_detail(call, detail).envelope, indent=2 if pretty else None))
    sys.exit(call.result.exit_code)
