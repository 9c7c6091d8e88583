"""The commands that skills declare: ``skillpack NAME ARGUMENT... [OPTIONS]`` runs a tool for a person.

Standard output gets the result in a line, or the envelope with --json; what the tool says meanwhile goes to stderr.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from skillpack.commands import open_tools, pass_on
from skillpack.skills.loader import SkillLoader
from skillpack.skills.roots import default_roots
from skillscript.arguments import shown_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from skillpack.registry.declaration import ToolDeclaration, Tools
    from skillscript.envelope import SkillResult

    Words = tuple[str, ...]


def declared_commands(skills_dirs: Words, own: Iterable[str]) -> dict[str, click.Command]:
    """Return the commands that the skills in some folders declare, by name; of one name, the first tool's.

    Args:
        skills_dirs: The folders; none for the default ones.
        own: Names of skillpack's own commands, which no skill replaces.
    """
    tools = open_tools(SkillLoader(default_roots(skills_dirs)))
    found: dict[str, click.Command] = {}
    for tool in tools.by_id.values():
        declared = tool.entry.get("command")
        if declared and declared["name"] not in own:
            found.setdefault(declared["name"], _command(tool, declared, tools))
    return found


def _command(tool: ToolDeclaration, declared: Mapping[str, Any], tools: Tools) -> click.Command:
    def run(words: Words) -> None:
        sys.exit(_run(tool, declared, tools, words))

    places = " ".join(shown_name(name) for name in declared.get("arguments", ()))
    words = click.Argument(["words"], nargs=-1, type=click.UNPROCESSED, metavar=f"{places} [OPTIONS]".strip())
    settings = {"ignore_unknown_options": True, "allow_interspersed_args": False}
    text = tool.description or tool.id
    return click.Command(declared["name"], settings, run, [words], help=text, add_help_option=False)


def _run(tool: ToolDeclaration, declared: Mapping[str, Any], tools: Tools, words: Words) -> int:
    from skillpack.execution.runner import Runner
    from skillscript.arguments import Command, command_line, read_request
    from skillscript.envelope import SkillError, SkillResult
    from skillscript.faults import invalid_params
    from skillscript.runtime import Stopped, error_of, stop_on_signals
    from skillscript.tool import Tool

    options = tuple(declared.get("options", {}).items())
    text = f"{tool.description or tool.id}. --json prints the envelope; --open opens the result."
    command = Command(f"skillpack {declared['name']}", tuple(declared.get("arguments", ())), dict(options), text)
    form = Tool(tool.id, lambda _params, _context: {}, dict(tool.input_schema), dict(tool.output_schema))
    stop_on_signals()
    try:
        own = [word for word in words if word not in {"--json", "--open"}]
        parser = command_line(form, command)
        request = read_request(parser, form, own)
        if request.help:
            click.echo(parser.format_help().rstrip())
            return 0
        if request.faults:
            raise invalid_params(request.faults)
        with Runner(tools, warm=False) as runner:
            result = runner.run(tool.id, request.params, context=request.context, on_stderr=pass_on).result
    except SkillError as error:
        result = SkillResult.failure(error)
    except (KeyboardInterrupt, Stopped) as stop:  # the tool was killed on the way here
        result = SkillResult.failure(error_of(stop)[0])
    if "--json" in words:
        click.echo(result.to_json())
    else:
        _tell(result, declared.get("shows"), opened="--open" in words)
    return result.exit_code


def _tell(result: SkillResult, shown: str | None, *, opened: bool) -> None:
    """Print the error in words, and last the field of the answer that the declaration names."""
    if result.error is not None:
        click.echo(f"{result.error.code}: {result.error.message}", err=True)
    value: Any = result.data
    for name in (shown or "").split("."):
        value = value.get(name) if isinstance(value, dict) else None
    if isinstance(value, (str, int, float)):
        click.echo(value)
        if opened and Path(str(value)).is_file():
            click.launch(Path(str(value)).resolve().as_uri())
