"""``skillpack run``."""

from __future__ import annotations

import sys

import click

from skillpack.commands import SKILLS_DIR, json_argument, open_loader, open_tools, pass_on


@click.command("run")
@SKILLS_DIR
@click.argument("tool")
@click.option("--params", default="{}", metavar="JSON|@FILE|-", help="Parameters; - reads them from stdin.")
@click.option("--context", metavar="JSON|@FILE", help="user_profile, session_context, memory_summary, content_context.")
@click.option("--timeout", type=float, metavar="S", help="Seconds until the tool is killed. [default: 300]")
@click.option("--pretty", is_flag=True, help="Indent the answer.")
def command(
    skills_dirs: tuple[str, ...], tool: str, params: str, context: str | None, timeout: float | None, pretty: bool
) -> None:
    """Run TOOL, or TOOL@VERSION, in a separate process and print its envelope.

    Parameters for an older compatible version are converted; notes on stderr list the changes.

    Exit code: 0 done; 1 done, but the design violates something; 2 bad input; 3 a needed program is
    missing; 4 timeout, crash or internal error.
    """
    from skillpack.execution.runner import Runner
    from skillscript.envelope import SkillError, SkillResult
    from skillscript.runtime import Stopped, error_of, stop_on_signals

    stop_on_signals()
    try:
        runner = Runner(open_tools(open_loader(skills_dirs)), warm=False)
        values = json_argument("params", params)
        surroundings = None if context is None else json_argument("context", context)
        call = runner.run(tool, values, context=surroundings, timeout=timeout, on_stderr=pass_on)
        result = call.result
        for note in call.notes:
            click.echo(f"note: {note}", err=True)
    except SkillError as error:
        result = SkillResult.failure(error)
    except (KeyboardInterrupt, Stopped) as stop:  # the tool was killed on the way here
        result = SkillResult.failure(error_of(stop)[0])
    click.echo(result.to_json(indent=2 if pretty else None))
    sys.exit(result.exit_code)
