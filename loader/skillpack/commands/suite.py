"""``skillpack suite``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from skillpack.commands import SKILLS_DIR, open_loader, open_tools, pass_on

TOOL = "flow.explore_layouts"
LONGEST_S = 1e6
PARAMETERS = {
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
def command(skills_dirs: tuple[str, ...], folders: tuple[str, ...], **options: Any) -> None:
    """Lay out all netlists in DIR... in several processes and write the scoreboard.

    A line of figures for each layout goes to stderr as it is finished; what is not clean, and what is worse than in
    --against, is listed at the end.

    Exit code: 1 if something is worse than in --against; else as for 'skillpack run'.
    """
    from skillpack.execution.runner import Runner
    from skillscript.envelope import SkillError, SkillResult
    from skillscript.runtime import Stopped, error_of, stop_on_signals

    names = [name for name in options["technologies"].split(",") if name]
    params: dict[str, Any] = {"netlist_folders": list(folders), "technologies": names, "seconds": LONGEST_S}
    params |= {name: options[option] for name, option in PARAMETERS.items() if options[option] is not None}
    stop_on_signals()
    try:
        with Runner(open_tools(open_loader(skills_dirs)), warm=False) as runner:
            call = runner.run(TOOL, params, timeout=LONGEST_S, on_stderr=pass_on)
            result = call.result
    except SkillError as error:
        result = SkillResult.failure(error)
    except (KeyboardInterrupt, Stopped) as stop:  # the tool was ended on the way here; what is finished stays
        result = SkillResult.failure(error_of(stop)[0])
    _report(result.data or {}, options["against"])
    if result.error is not None:
        click.echo(f"Error: {result.error.message}", err=True)
    sys.exit(result.exit_code)


def _report(data: dict[str, Any], against: str | None) -> None:
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
