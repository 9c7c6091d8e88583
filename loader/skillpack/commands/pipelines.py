"""Subcommands that run many calls: ``pipeline`` and ``suite``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from skillpack.commands import EXIT_BAD_INPUT, SKILLS_DIR, json_argument, open_loader, open_tools, pass_on

if TYPE_CHECKING:
    from skillpack.skills.loader import SkillLoader


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
