"""``skillpack doctor``."""

from __future__ import annotations

import sys

import click

from skillpack.command_line import EXIT_FINDINGS, JSON, SKILLS_DIR, open_loader, open_tools, print_json


@click.command("doctor")
@SKILLS_DIR
@JSON
def command(skills_dirs: tuple[str, ...], as_json: bool) -> None:
    """Tell what was found, skipped and shadowed and why, and what this machine offers.

    Exit code: 1 when a skill or a tool was left out because of an error.
    """
    from skillpack.doctor import examine, report

    loader = open_loader(skills_dirs)
    findings = examine(loader.catalog, open_tools(loader))
    if as_json:
        print_json(findings)
    else:
        click.echo(report(findings))
    sys.exit(0 if findings["ok"] else EXIT_FINDINGS)
