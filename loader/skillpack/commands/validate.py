"""``skillpack validate``."""

from __future__ import annotations

import sys

import click

from skillpack.authoring.skill_rules import HOSTS
from skillpack.commands import EXIT_FINDINGS, JSON, SKILLS_DIR, print_json, roots_of


@click.command("validate")
@SKILLS_DIR
@click.argument("paths", metavar="[PATH]...", nargs=-1)
@click.option(
    "--strict",
    "hosts",
    multiple=True,
    metavar="HOST",
    type=click.Choice([*HOSTS, "all"]),
    help=f"Treat warnings that concern HOST as errors: {', '.join(HOSTS)} or all. Repeatable.",
)
@click.option("--quiet", is_flag=True, help="Do not show infos.")
@JSON
def command(
    skills_dirs: tuple[str, ...], paths: tuple[str, ...], hosts: tuple[str, ...], quiet: bool, as_json: bool
) -> None:
    """Check skills. PATH is a skill, its SKILL.md, or a folder with skills.

    Errors violate the specification of Agent Skills or of skill.yaml, warnings concern some hosts, infos are hints.
    Without PATH, the skills directories are checked. No code of a skill is executed.

    Exit code: 0 without errors, 1 with errors, 2 if a path does not exist.
    """
    from skillpack.authoring.validation import report_text, validate

    reports = [validate(path, hosts) for path in paths or roots_of(skills_dirs)]
    if as_json:
        print_json({"ok": all(report.ok for report in reports), "reports": [report.to_json() for report in reports]})
    else:
        for report in reports:
            click.echo(report_text(report, quiet=quiet))
    sys.exit(0 if all(report.ok for report in reports) else EXIT_FINDINGS)
