"""``skillpack pipeline``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from skillpack.commands import EXIT_BAD_INPUT, SKILLS_DIR, json_argument, open_loader, open_tools, pass_on

if TYPE_CHECKING:
    from skillpack.skills.loader import SkillLoader


@click.group("pipeline")
def command() -> None:
    """Check or run a pipeline: tools in sequence, each of which can use the answers of earlier ones.

    FILE is a path, or SKILL/PATH for a file in a skill.
    """


@command.command("check")
@SKILLS_DIR
@click.argument("file")
def check(skills_dirs: tuple[str, ...], file: str) -> None:
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


@command.command("run")
@SKILLS_DIR
@click.argument("file")
@click.option("--inputs", default="{}", metavar="JSON|@FILE|-", help="Its inputs; - reads them from stdin.")
@click.option(
    "--state", type=click.Path(path_type=Path, dir_okay=False), help="File in which each finished step is recorded."
)
@click.option("--resume", is_flag=True, help="Skip the steps that --state records as done.")
@click.option("--pretty", is_flag=True, help="Indent the answer.")
def run(skills_dirs: tuple[str, ...], file: str, inputs: str, state: Path | None, resume: bool, pretty: bool) -> None:
    """Run FILE and print one envelope, whose data contains the envelope of each step.

    Exit code: as for 'skillpack run'; 1 if a step reports that the design violates something.
    """
    from skillpack.exceptions import PipelineError
    from skillpack.execution.runner import Runner
    from skillpack.pipelines.pipeline import load_pipeline
    from skillpack.pipelines.pipeline_run import RunOptions, run_pipeline
    from skillscript.envelope import ErrorCode, SkillError, SkillResult
    from skillscript.runtime import Stopped, error_of, stop_on_signals

    stop_on_signals()
    if resume and state is None:
        raise click.UsageError("--resume needs --state FILE")
    options = RunOptions(state_path=state, resume=resume, on_step=_report, on_stderr=pass_on)
    try:
        loader = open_loader(skills_dirs)
        pipeline = load_pipeline(_located(loader, file))
        with Runner(open_tools(loader)) as runner:
            result = run_pipeline(pipeline, json_argument("inputs", inputs), runner, options)
    except PipelineError as error:
        result = SkillResult.failure(SkillError(ErrorCode.INVALID_PARAM, str(error), error.details))
    except SkillError as error:
        result = SkillResult.failure(error)
    except (KeyboardInterrupt, Stopped) as stop:  # the step was killed on the way here
        result = SkillResult.failure(error_of(stop)[0])
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


def _report(step: str, status: str) -> None:
    """Print the status of a step on stderr."""
    click.echo(f"{step}: {status}", err=True)
