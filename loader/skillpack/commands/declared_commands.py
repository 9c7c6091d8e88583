"""The commands that skills declare: ``skillpack NAME ARGUMENT... [OPTIONS]`` runs a tool, or several, for a person.

Standard output gets a summary and last the path of the result, or the envelope with --json. What the tools say
meanwhile goes to stderr: on a terminal as one line with a bar that the next replaces, up to an empty line, after which
all is kept; elsewhere as it comes.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from skillpack.commands import open_tools, pass_on, print_json
from skillpack.skills.catalog import default_roots
from skillpack.skills.loader import SkillLoader
from skillscript.arguments import Command, command_line, read_request, shown_name
from skillscript.envelope import SkillError, SkillResult, invalid_params
from skillscript.schema_references import described

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from skillpack.registry.declaration import ToolDeclaration, Tools

    Words = tuple[str, ...]
    Declared = Mapping[str, Any]

MAX_LINES = 8  # of one list in a summary
BAR = 20  # characters
LONGEST_S = 86400.0  # who waits at a terminal ends it with Ctrl-C
_FIELD = re.compile(r"\{(?P<path>[\w.\[\]]+)(?:\?(?P<yes>[^:{}]*):(?P<no>[^{}]*))?\}")


def declared_commands(skills_dirs: Words, own: Iterable[str]) -> dict[str, click.Command]:
    """Return the commands that the skills in some folders declare, by name; of one name, the first tool's.

    Args:
        skills_dirs: The folders; none for the default ones.
        own: Names of skillpack's own commands, which no skill replaces.
    """
    tools = open_tools(SkillLoader(default_roots(skills_dirs)))
    found: dict[str, click.Command] = {}
    for tool in tools.by_id.values():
        commands = tool.entry.get("command", [])
        for declared in commands if isinstance(commands, list) else [commands]:
            if declared["name"] not in own:
                found.setdefault(declared["name"], _command(tool, declared, tools))
    return found


def _command(tool: ToolDeclaration, declared: Declared, tools: Tools) -> click.Command:
    def run(words: Words) -> None:
        sys.exit(_run(tool, declared, tools, words))

    def files(_context: click.Context, _param: click.Parameter, begun: str) -> list[CompletionItem]:
        return [CompletionItem(begun, type="file")]

    places = " ".join(shown_name(name) for name in declared.get("arguments", ()))
    metavar = f"{places} [OPTIONS]".strip()
    words = click.Argument(["words"], nargs=-1, type=click.UNPROCESSED, metavar=metavar, shell_complete=files)
    settings = {"ignore_unknown_options": True, "allow_interspersed_args": False}
    text = declared.get("help") or tool.description or tool.id
    made = _Command(declared["name"], settings, run, [words], help=text, add_help_option=False)
    joined = _joined_schema([tool, *(step for step, _ in _further(declared, tools))])
    given = declared.get("options", {}).values()
    made.options = (*given, *(f"--{_dashed(name)}" for name in joined["properties"]), "--json", "--open", "--help")
    return made


class _Command(click.Command):
    """A command whose ``options`` a shell completes; the tool's command line reads them."""

    options: tuple[str, ...] = ()

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:  # noqa: ARG002
        """Return the options that begin with what a user has typed."""
        return [CompletionItem(name) for name in self.options if name.startswith(incomplete)]


def _run(tool: ToolDeclaration, declared: Declared, tools: Tools, words: Words) -> int:
    from skillscript.runtime import Stopped, error_of, stop_on_signals
    from skillscript.tool import Tool

    steps = [(tool, declared), *_further(declared, tools)]
    what = declared.get("help") or tool.description or tool.id
    text = f"{what}. --json prints the envelope; --open opens the result."
    options = dict(declared.get("options", {}))
    command = Command(f"skillpack {declared['name']}", tuple(declared.get("arguments", ())), options, text)
    form = Tool(tool.id, lambda _params, _context: {}, _joined_schema([each for each, _ in steps]), {})
    results: dict[str, SkillResult] = {}
    left_out: dict[str, str] = {}  # what tools would need
    stop_on_signals()
    try:
        parser = command_line(form, command)
        request = read_request(parser, form, [word for word in words if word not in {"--json", "--open"}])
        if request.help:
            click.echo(parser.format_help().rstrip())
            return 0
        if request.faults:
            raise invalid_params(request.faults)
        params = _in_folders(declared, {**declared.get("fixed", {}), **request.params})
        _check_needs(declared, params)
        for step, how in steps:
            before = results.get(how.get("after", ""))
            if missing := _lacking(how, declared, params):
                left_out[step.id] = missing
            if missing or (before and before.exit_code):
                continue
            own = step.input_schema.get("properties", {})
            values = {name: value for name, value in params.items() if len(steps) == 1 or name in own}
            if "answers" in how:
                values[how["answers"]] = {name: result.data for name, result in results.items()}
            results[step.id] = _call(step, values, request.context, tools, how.get("steps", 0))
            if results[step.id].error is not None:
                break
    except (SkillError, KeyboardInterrupt, Stopped) as problem:  # a tool that ran was killed on the way here
        results[tool.id] = SkillResult.failure(error_of(problem)[0])
    if "--json" in words:
        answers = {name: result.to_dict() for name, result in results.items()}
        print_json(answers if len(steps) > 1 else answers[tool.id])
    else:
        print_results(results, steps, left_out, opened="--open" in words)
    return max(result.exit_code for result in results.values())


def _in_folders(declared: Declared, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters; what names a folder is given to the parameter that is declared for folders."""
    found = dict(params)
    for name, other in declared.get("folders", {}).items():
        if other not in found and isinstance(found.get(name), str) and Path(found[name]).is_dir():
            found[other] = found.pop(name)
    return found


def _check_needs(declared: Declared, params: Mapping[str, Any]) -> None:

    if lacking := _lacking(declared, declared, params):
        text = f"skillpack {declared['name']} needs {lacking}; --help lists all parameters"
        raise SkillError("INVALID_PARAM", text)


def _lacking(how: Declared, declared: Declared, params: Mapping[str, Any]) -> str:
    """Return what is needed and not given, as a user gives it: ``SIZES or --netlist-path``."""
    arguments = declared.get("arguments", ())

    def given_as(name: str) -> str:
        return shown_name(name) if name in arguments else declared.get("options", {}).get(name, f"--{_dashed(name)}")

    needs = [need.split("|") for need in how.get("needs", ())]
    return " and ".join(" or ".join(map(given_as, need)) for need in needs if not params.keys() & set(need))


def _dashed(name: str) -> str:
    return name.replace("_", "-")


def _further(declared: Declared, tools: Tools) -> Iterator[tuple[ToolDeclaration, Declared]]:
    """Yield the tools that the command runs after the first, with what is declared of each."""
    for step in declared.get("then", ()):
        if step["tool"] in tools.by_id:
            yield tools.by_id[step["tool"]], step


def _joined_schema(tools: list[ToolDeclaration]) -> dict[str, Any]:
    """Return one schema with the parameters of all tools; of the same name, the first tool's."""
    schema = dict(tools[0].input_schema)
    properties = dict(schema.get("properties", {}))
    for tool in tools[1:]:
        for name, rule in tool.input_schema.get("properties", {}).items():
            properties.setdefault(name, described(rule, tool.input_schema))
    return {**schema, "properties": properties}


def _call(tool: ToolDeclaration, params: Mapping[str, Any], context: Any, tools: Tools, steps: int) -> SkillResult:
    """Return what a tool answers, and show meanwhile what it says."""
    from skillpack.execution.runner import Runner

    meanwhile = Meanwhile(steps)
    try:
        with Runner(tools, timeout=LONGEST_S, warm=False) as runner:
            return runner.run(tool.id, params, context=context, on_stderr=meanwhile.feed).result
    finally:
        meanwhile.clear()


class Meanwhile:
    """Shows what a tool says while it runs.

    Args:
        steps: Number of lines that it says until it is done; 0 if that is not known.
    """

    def __init__(self, steps: int) -> None:
        self._steps = steps
        self._on_terminal = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self._unfinished = b""
        self._said = 0
        self._kept = False

    def feed(self, chunk: bytes) -> None:
        """Take a piece of what the tool writes to stderr."""
        if not self._on_terminal:
            pass_on(chunk)
            return
        *lines, self._unfinished = (self._unfinished + chunk).split(b"\n")
        for line in lines:
            if self._kept or not line.strip():
                self.clear()
                self._kept = True
                pass_on(line + b"\n")
            else:
                self._said += 1
                self._draw(line.decode("utf-8", "replace").strip())

    def clear(self) -> None:
        """Remove the line that is shown."""
        if self._on_terminal and not self._kept:
            pass_on(b"\r\x1b[K")

    def _draw(self, text: str) -> None:
        done = BAR * min(self._said, self._steps) // self._steps if self._steps else 0
        bar = f"[{'#' * done}{'-' * (BAR - done)}] " if self._steps else ""
        width = shutil.get_terminal_size().columns - 1
        pass_on(f"\r\x1b[K{(bar + text)[:width]}".encode())


def print_results(
    results: Mapping[str, SkillResult],
    steps: list[tuple[ToolDeclaration, Declared]],
    left_out: Mapping[str, str],
    *,
    opened: bool,
) -> None:
    """Print the summaries and errors in words, and last the field of the answers that a declaration names."""
    shown: Any = None
    for tool, declared in steps:
        result, before = results.get(tool.id), results.get(declared.get("after", ""))
        if result is None:
            if before and before.error is None and before.exit_code:
                click.echo(f"{tool.id} was left out, since {declared['after']} found faults")
            elif tool.id in left_out:
                click.echo(f"{tool.id} was left out: it needs {left_out[tool.id]}")
            continue
        if result.data is not None:
            lines = list(summary_lines(declared.get("summary", ()), result.data))
            if not lines and "shows" not in declared:  # nothing is said in words: the plain fields of the answer
                lines = [
                    f"{name}: {value}" for name, value in result.data.items() if not isinstance(value, (dict, list))
                ]
            click.echo("".join(f"{line}\n" for line in lines), nl=False)
        if result.error is not None:
            click.echo(f"{result.error.code}: {result.error.message}", err=True)
        if "shows" in declared:
            shown = _field(result.data, declared["shows"]) or shown
    if isinstance(shown, (str, int, float)):
        click.echo(shown)
        if opened and re.match(r"http://127\.0\.0\.1:\d+/", str(shown)):
            click.launch(str(shown))
        elif opened and Path(str(shown)).is_file():
            click.launch(Path(str(shown)).resolve().as_uri())


def summary_lines(lines: Iterable[str], data: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of a summary with the fields of an answer.

    ``{passed?clean:NOT CLEAN}`` chooses a text, ``{findings[].why}`` and ``{words[]}`` make a line of each item,
    ``MAX_LINES`` at most. A line with a field that is not there is left out.
    """
    for line in lines:
        listed = next((name.partition("[]")[0] for name, _, _ in _FIELD.findall(line) if "[]" in name), None)
        if listed is None:
            yield from _filled(line, data)
            continue
        items = _field(data, listed) or []
        for item in items[:MAX_LINES]:
            if isinstance(item, dict):
                yield from _filled(line.replace(f"{{{listed}[].", "{"), item)
            else:
                yield line.replace(f"{{{listed}[]}}", str(item))
        if len(items) > MAX_LINES:
            yield f"{line[: len(line) - len(line.lstrip())]}and {len(items) - MAX_LINES} more"


def _filled(line: str, data: Any) -> list[str]:
    """Return the line with its fields; none if one is not there, or is an empty list that is to be shown."""
    fields = [(match["yes"], _field(data, match["path"])) for match in _FIELD.finditer(line)]
    missing = [value for yes, value in fields if value is None or (value == [] and yes is None)]
    return [] if missing else [_FIELD.sub(lambda match: _text(match, _field(data, match["path"])), line)]


def _text(match: re.Match[str], value: Any) -> str:
    if match["yes"] is not None:
        return match["yes"] if value else match["no"]
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def _field(data: Any, path: str) -> Any:
    """Return the field of an answer at a path (``files.report``), or None."""
    for name in path.split("."):
        data = data.get(name) if isinstance(data, dict) else None
    return data
