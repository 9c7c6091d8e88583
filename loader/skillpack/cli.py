"""The command ``skillpack``: list, prompt, show, read, run, doctor."""

from __future__ import annotations

import contextlib
import io
import json
import signal
import sys
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from skillpack.declaration import Tools
    from skillpack.loader import SkillLoader

EXIT_BAD_INPUT = 2
EXIT_SKILL_LOST = 1
_SKILLS_DIR = click.option(
    "--skills-dir",
    "skills_dirs",
    multiple=True,
    metavar="DIR",
    help="Folder with skills; repeat for several, the first has precedence. [default: SKILLPACK_PATH, else this pack]",
)
_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def main() -> None:
    """Run the command and leave with its exit code: 2 for whatever cannot be understood or found."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    from skillpack.errors import SkillpackError

    try:
        command(prog_name="skillpack")
    except SkillpackError as error:
        _fail(str(error))


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@_SKILLS_DIR
@click.version_option(package_name="analog-layout-skills")
@click.pass_context
def command(context: click.Context, skills_dirs: tuple[str, ...]) -> None:
    """Find skills, serve their text layer by layer, and run their tools."""
    context.obj = skills_dirs


@command.command("list")
@_SKILLS_DIR
@_JSON
def list_skills(skills_dirs: tuple[str, ...], as_json: bool) -> None:
    """List the skills and their tools."""
    loader = _loader(skills_dirs)
    tools = _tools(loader)
    if as_json:
        _print_json([_summary(loader, tools, name) for name in loader.skills])
    for name, line in zip(loader.skills, loader.get_descriptions().split("\n"), strict=False):
        if not as_json:
            click.echo(line)
            for tool in tools.of_skill(name):
                click.echo(f"    {tool.id}")
    if not loader.has_skills():
        click.echo(f"no skills in {', '.join(loader.catalog.roots)}", err=True)
    lost = len(loader.catalog.errors) + len(tools.faults)
    if lost:
        click.echo(f"{lost} skills or tools were left out; 'skillpack doctor' says why", err=True)


@command.command("prompt")
@_SKILLS_DIR
def prompt(skills_dirs: tuple[str, ...]) -> None:
    """Print the section for an agent's system prompt (layer 1)."""
    click.echo(_loader(skills_dirs).get_prompt_section().strip("\n"))


@command.command("show")
@_SKILLS_DIR
@click.argument("name")
@_JSON
def show(skills_dirs: tuple[str, ...], name: str, as_json: bool) -> None:
    """Print the instructions of skill NAME and the list of its resources (layer 2)."""
    answer = _loader(skills_dirs).skill_request(name)
    if as_json:
        _print_json(answer)
    elif answer["success"]:
        click.echo(answer["data"]["content"].rstrip("\n"))
    _exit_unless(answer, told=as_json)


@command.command("read")
@_SKILLS_DIR
@click.argument("name")
@click.argument("path")
@_JSON
def read(skills_dirs: tuple[str, ...], name: str, path: str, as_json: bool) -> None:
    """Print the file PATH of skill NAME, byte for byte (layer 3)."""
    loader = _loader(skills_dirs)
    answer = loader.read_resource(name, path)
    if as_json:
        _print_json(answer)
    elif answer["success"]:
        from skillpack.resources import read_resource

        sys.stdout.buffer.write(read_resource(loader.skills[name], path).data)
    _exit_unless(answer, told=as_json)


@command.command("run")
@_SKILLS_DIR
@click.argument("tool")
@click.option("--params", default="{}", metavar="JSON|@FILE|-", help="Parameters; - reads them from stdin.")
@click.option("--context", metavar="JSON|@FILE", help="user_profile, session_context, memory_summary, content_context.")
@click.option("--timeout", type=float, metavar="S", help="Seconds until the tool is killed. [default: 300]")
@click.option("--pretty", is_flag=True, help="Indent the answer.")
def run_tool(  # noqa: PLR0913, PLR0917 - one parameter an option
    skills_dirs: tuple[str, ...], tool: str, params: str, context: str | None, timeout: float | None, pretty: bool
) -> None:
    """Run TOOL in a process of its own and print its envelope.

    Exit code: 0 done; 1 done, but the design violates something; 2 bad input; 3 a needed program is
    missing; 4 timeout, crash or internal error.
    """
    from skillpack.runner import Runner
    from skillscript.envelope import SkillError, SkillResult

    with contextlib.suppress(ValueError):  # not the main thread
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    runner = Runner(_tools(_loader(skills_dirs)).by_id)
    try:
        values = _json_argument("params", params)
        surroundings = None if context is None else _json_argument("context", context)
        call = runner.run(tool, values, context=surroundings, timeout=timeout, on_stderr=_pass_on)
        result = call.result
    except SkillError as error:
        result = SkillResult.failure(error)
    except KeyboardInterrupt:
        result = SkillResult.failure(SkillError("INTERNAL_ERROR", "interrupted; the tool was killed"))
    click.echo(result.to_json(indent=2 if pretty else None))
    sys.exit(result.exit_code)


@command.command("doctor")
@_SKILLS_DIR
@_JSON
def doctor(skills_dirs: tuple[str, ...], as_json: bool) -> None:
    """Tell what was found, skipped and shadowed and why, and what this machine offers.

    Exit code: 1 when a skill or a tool was left out because of an error.
    """
    from skillpack.doctor import examine, report

    loader = _loader(skills_dirs)
    findings = examine(loader.catalog, _tools(loader))
    if as_json:
        _print_json(findings)
    else:
        click.echo(report(findings))
    sys.exit(0 if findings["ok"] else EXIT_SKILL_LOST)


def _loader(skills_dirs: tuple[str, ...]) -> SkillLoader:
    """Return the loader over the folders named after the subcommand, or else before it, or else by default."""
    from skillpack.loader import SkillLoader
    from skillpack.roots import default_roots

    return SkillLoader(default_roots(skills_dirs or click.get_current_context().obj))


def _tools(loader: SkillLoader) -> Tools:
    """Return the tools of the loader's skills."""
    from skillpack.declaration import find_tools

    return find_tools(loader.skills.values())


def _summary(loader: SkillLoader, tools: Tools, name: str) -> dict[str, Any]:
    """Return what ``list --json`` says of one skill."""
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


def _json_argument(name: str, text: str) -> Any:
    """Return the JSON value of an option: given in place, as @FILE, or as - for stdin.

    Raises:
        SkillError: INVALID_PARAM if it cannot be read or is not JSON.
    """
    from skillpack.errors import FileRefusedError
    from skillpack.files import read_bounded
    from skillscript.envelope import SkillError
    from skillscript.strict_json import MAX_BYTES, NotJsonError, parse_json

    try:
        if text == "-":
            return parse_json(sys.stdin.buffer.read(MAX_BYTES + 1))
        return parse_json(read_bounded(text[1:], MAX_BYTES) if text.startswith("@") else text)
    except FileNotFoundError as error:
        raise SkillError("INVALID_PARAM", f"--{name}: no such file {text[1:]!r}") from error
    except (FileRefusedError, NotJsonError, ValueError) as error:
        raise SkillError("INVALID_PARAM", f"--{name}: {error}") from error


def _pass_on(chunk: bytes) -> None:
    """Write a piece of the tool's stderr to ours; nobody listening is no reason to stop."""
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.buffer.write(chunk)
        sys.stderr.buffer.flush()


def _print_json(value: Any) -> None:
    """Print a value as indented JSON."""
    click.echo(json.dumps(value, ensure_ascii=False, indent=2))


def _exit_unless(answer: dict[str, Any], *, told: bool) -> None:
    """Leave with exit code 2 when the answer is a failure, saying it on stderr unless it was printed."""
    if answer["success"]:
        return
    if told:
        sys.exit(EXIT_BAD_INPUT)
    near = answer["suggestions"]
    _fail(answer["message"] + (f"; did you mean {' or '.join(map(repr, near))}?" if near else ""))


def _fail(message: str) -> None:
    """Say what was wrong and leave with exit code 2."""
    click.echo(f"skillpack: {message}", err=True)
    sys.exit(EXIT_BAD_INPUT)
