"""Subcommands that run tools: ``tools``, ``intent``, ``run``, ``pipeline`` and ``suite``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from skillpack.commands import (
    EXIT_BAD_INPUT,
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
    from skillpack.skills.loader import SkillLoader


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


@click.group("pipeline")
def pipeline_command() -> None:
    """Check or run a pipeline: tools in sequence, each of which can use the answers of earlier ones.

    FILE is a path, or SKILL/PATH for a file in a skill.
    """


@pipeline_command.command("check")
@SKILLS_DIR
@click.argument("file")
def _check_pipeline(skills_dirs: tuple[str, ...], file: str) -> None:
    """Report the faults of FILE without running it.

    Exit code: 2 if it cannot run; 0 with warnings only.
    """
    from skillpack.exceptions import PipelineError
    from skillpack.pipelines.pipeline import check_pipeline, load_pipeline

    loader = open_loader(skills_dirs)
    try:
        pipeline = load_pipeline(_located(loader, file))
        findings = check_pipeline(pipeline, open_tools(loader))
        problems, warnings, steps = findings.problems, findings.warnings, len(pipeline.steps)
    except PipelineError as error:
        problems, warnings, steps = tuple(error.problems), (), 0
    for text in problems:
        click.echo(f"error: {text}")
    for text in warnings:
        click.echo(f"warning: {text}")
    if problems:
        sys.exit(EXIT_BAD_INPUT)
    click.echo(f"{pipeline.name}: {steps} steps can run")


@pipeline_command.command("run")
@SKILLS_DIR
@click.argument("file")
@click.option("--inputs", default="{}", metavar="JSON|@FILE|-", help="Its inputs; - reads them from stdin.")
@click.option(
    "--state", type=click.Path(path_type=Path, dir_okay=False), help="File in which each finished step is recorded."
)
@click.option("--resume", is_flag=True, help="Skip the steps that --state records as done.")
@click.option("--pretty", is_flag=True, help="Indent the answer.")
def _run_pipeline(
    skills_dirs: tuple[str, ...], file: str, inputs: str, state: Path | None, resume: bool, pretty: bool
) -> None:
    """Run FILE and print one envelope, whose data contains the envelope of each step.

    Exit code: as for 'skillpack run'; 1 if a step reports that the design violates something.
    """
    from skillpack.exceptions import PipelineError
    from skillpack.execution.runner import Runner
    from skillpack.pipelines.pipeline import load_pipeline
    from skillpack.pipelines.pipeline_run import RunOptions, run_pipeline
    from skillscript.envelope import SkillError, SkillResult
    from skillscript.runtime import Stopped, error_of, stop_on_signals

    stop_on_signals()
    if resume and state is None:
        raise click.UsageError("--resume needs --state FILE")
    options = RunOptions(state_path=state, resume=resume, on_step=_report_step, on_stderr=pass_on)
    try:
        loader = open_loader(skills_dirs)
        pipeline = load_pipeline(_located(loader, file))
        with Runner(open_tools(loader)) as runner:
            result = run_pipeline(pipeline, json_argument("inputs", inputs), runner, options)
    except (PipelineError, SkillError, KeyboardInterrupt, Stopped) as problem:  # the step was killed on the way here
        result = SkillResult.failure(error_of(problem)[0])
    click.echo(result.to_json(indent=2 if pretty else None))
    sys.exit(result.exit_code)


def _located(loader: SkillLoader, file: str) -> str:
    """Return the path of FILE: FILE itself if it exists, or else a path inside the skill that its first part names."""
    skill, _, inner = file.partition("/")
    if not Path(file).exists() and inner and skill in loader.skills:
        from skillpack.exceptions import PipelineError
        from skillpack.untrusted.file_access import inside

        path = str(Path(loader.skills[skill].dir) / inner)
        if not inside(loader.skills[skill].dir, path):
            raise PipelineError([f"{file} leads out of the skill"])
        return path
    return file


def _report_step(step: str, status: str) -> None:
    """Print the status of a step on stderr."""
    click.echo(f"{step}: {status}", err=True)


_SUITE_TOOL = "flow.explore_layouts"
_SUITE_LONGEST_S = 1e6
_SUITE_PARAMETERS = {
    "workspace": "out", "seconds_each": "time_limit", "workers": "jobs", "against": "against", "resume": "resume",
    "scheduler": "scheduler", "tls_ca": "tls_ca", "tls_cert": "tls_cert", "tls_key": "tls_key",
}  # fmt: skip
"""Parameters of the tool and the options that give them."""


@click.command("suite")
@SKILLS_DIR
@click.argument("folders", nargs=-1, required=True, metavar="DIR...", type=click.Path(exists=True, file_okay=False))
@click.option("--technologies", default="sky130A,gf180mcuD,sg13g2", show_default=True, help="Names, with commas.")
@click.option("--jobs", type=int, help="Layouts at a time. [default: one for each core]")
@click.option("--out", default="build/suite", show_default=True, help="Folder that receives everything.")
@click.option("--time-limit", type=float, default=600.0, show_default=True, help="Of one layout. [s]")
@click.option("--against", type=click.Path(exists=True, dir_okay=False), help="board.json to compare with.")
@click.option("--scheduler", metavar="ADDRESS", help="Of a Dask cluster, such as tcp://HOST:8786 or tls://HOST:8786.")
@click.option("--tls-ca", metavar="FILE", help="Certificates that the cluster's are checked against (PEM).")
@click.option("--tls-cert", metavar="FILE", help="Certificate of this client (PEM).")
@click.option("--tls-key", metavar="FILE", help="Its private key (PEM).")
@click.option("--resume", is_flag=True, help="Continue the suite in --out.")
def suite_command(skills_dirs: tuple[str, ...], folders: tuple[str, ...], **options: Any) -> None:
    """Lay out all netlists in DIR... in several processes and write the scoreboard.

    A line of figures for each layout goes to stderr as it is finished; what is not clean, and what is worse than in
    --against, is listed at the end.

    Exit code: 1 if something is worse than in --against; else as for 'skillpack run'.
    """
    from skillpack.execution.runner import Runner
    from skillscript.envelope import SkillError, SkillResult
    from skillscript.runtime import Stopped, error_of, stop_on_signals

    names = [name for name in options["technologies"].split(",") if name]
    params: dict[str, Any] = {"netlist_folders": list(folders), "technologies": names, "seconds": _SUITE_LONGEST_S}
    params |= {name: options[option] for name, option in _SUITE_PARAMETERS.items() if options[option] is not None}
    stop_on_signals()
    try:
        with Runner(open_tools(open_loader(skills_dirs)), warm=False) as runner:
            call = runner.run(_SUITE_TOOL, params, timeout=_SUITE_LONGEST_S, on_stderr=pass_on)
            result = call.result
    except (SkillError, KeyboardInterrupt, Stopped) as problem:  # what is finished stays
        result = SkillResult.failure(error_of(problem)[0])
    _report_suite(result.data or {}, options["against"])
    if result.error is not None:
        click.echo(f"Error: {result.error.message}", err=True)
    sys.exit(result.exit_code)


def _report_suite(data: dict[str, Any], against: str | None) -> None:
    for entry in data.get("others", ()):
        click.echo(f"{entry['name']}: {entry['status']}: {entry['reason']}")
    for text in data.get("slower", ()):
        click.echo(f"slower  {text}")
    for text in data.get("worse", ()):
        click.echo(f"WORSE   {text}")
    if "clean" in data:
        click.echo(f"{data['clean']} of {data['layouts']} layouts are clean; board: {Path(data['files']['page'])}")
    if against and "worse" in data:
        click.echo(f"{len(data['worse'])} figures are worse by more than 3 % than in {against}")
