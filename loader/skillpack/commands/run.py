"""``skillpack run``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from skillpack.commands import SKILLS_DIR, json_argument, open_loader, open_tools, pass_on

if TYPE_CHECKING:
    from skillpack.execution.short_answers import Detail


@click.command("run")
@SKILLS_DIR
@click.argument("tool")
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
def command(  # noqa: PLR0913, PLR0917 - click passes one argument for each option
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
    from skillscript.envelope import SkillError, SkillResult, to_json
    from skillscript.runtime import Stopped, error_of, stop_on_signals

    stop_on_signals()
    try:
        runner = Runner(open_tools(open_loader(skills_dirs)), warm=False)
        known = runner.tools.get(tool.partition("@")[0])
        values, detail = take_detail(known, json_argument("params", params), detail)
        surroundings = None if context is None else json_argument("context", context)
        call = runner.run(tool, values, context=surroundings, timeout=timeout, on_stderr=pass_on)
        for note in call.notes:
            click.echo(f"note: {note}", err=True)
    except SkillError as error:
        call = Call(SkillResult.failure(error))
    except (KeyboardInterrupt, Stopped) as stop:  # the tool was killed on the way here
        call = Call(SkillResult.failure(error_of(stop)[0]))
    click.echo(to_json(in_detail(call, detail).envelope, indent=2 if pretty else None))
    sys.exit(call.result.exit_code)
