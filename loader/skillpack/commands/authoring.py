"""Subcommands for those who write skills: ``new``, ``validate`` and ``doctor``."""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from skillpack.authoring.skill_rules import HOSTS
from skillpack.commands import EXIT_FINDINGS, JSON, SKILLS_DIR, open_loader, open_tools, print_json, roots_of

if TYPE_CHECKING:
    from skillpack.registry.declaration import Tools
    from skillpack.skills.catalog import Catalog


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
def validate_command(
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


@click.command("new")
@click.argument("name")
@click.option(
    "--to", "parent", default="skills", metavar="DIR", help="Folder in which to create the skill. [default: skills]"
)
@click.option("--description", default="", metavar="TEXT", help="What the skill does and when to use it.")
@click.option("--tool", metavar="ID", help="Id of its tool, such as text.count_words. [default: NAME.run]")
@click.option("--handler", is_flag=True, help="Write the tool as a handler.py, with a prompt template and tests.")
@click.option("--no-tool", is_flag=True, help="Create a skill without a tool.")
def new_command(name: str, parent: str, description: str, tool: str | None, handler: bool, no_tool: bool) -> None:
    """Create the skill NAME: a small example to edit. It passes `skillpack validate`, and its tool runs."""
    from skillpack.authoring.validation import Plan, default_tool, write_skill

    if no_tool and tool is not None:
        raise click.UsageError("--tool and --no-tool cannot be combined")
    if no_tool and handler:
        raise click.UsageError("--handler and --no-tool cannot be combined")
    tool_id = None if no_tool else tool or default_tool(name)
    home = write_skill(Plan(name, Path(parent), description, tool_id, handler))
    click.echo(f"wrote {home}; edit it, then run:")
    click.echo(f"  skillpack validate {shlex.quote(str(home))}")
    if tool_id is not None:
        params = shlex.quote('{"text": "three short words"}')
        click.echo(f"  skillpack run {tool_id} --skills-dir {shlex.quote(str(home))} --params {params}")
    if handler:
        click.echo(f"  python -m pytest {shlex.quote(str(home / 'tests'))}")


DISTRIBUTION = "analog-layout-skills"
PROGRAMS = {
    "klayout": ("klayout",),
    "netgen": ("netgen-lvs", "netgen"),
    "ngspice": ("ngspice",),
    "magic": ("magic",),
    "kpex": ("kpex",),
}
# Distributions of the extra explore, by what they are for.
LIBRARIES = {"dask": "distributed", "scipy": "scipy"}
# Without the working folder, which could contain an untrusted module klayout; tools do not search it, either.
_IMPORT_KLAYOUT = "import sys; sys.path[:] = filter(None, sys.path); import klayout.db; print(klayout.db.__version__)"
_IMPORT_TIMEOUT_S = 30.0
_REPORT = Path(__file__).with_name("doctor.txt.jinja")


@click.command("doctor")
@SKILLS_DIR
@JSON
def doctor_command(skills_dirs: tuple[str, ...], as_json: bool) -> None:
    """Report which skills were found, skipped and shadowed, why, and which programs this machine has.

    Exit code: 1 when a skill or a tool was left out because of an error.
    """
    loader = open_loader(skills_dirs)
    findings = examine(loader.catalog, open_tools(loader))
    if as_json:
        print_json(findings)
    else:
        click.echo(report(findings))
    sys.exit(0 if findings["ok"] else EXIT_FINDINGS)


def examine(catalog: Catalog, tools: Tools) -> dict[str, Any]:
    """Return the findings as JSON values; ``ok`` is false if a skill or a tool was left out because of an error.

    Unmet dependencies are reported, but do not remove a tool.

    Args:
        catalog: Result of a scan.
        tools: The tools of the skills in it.
    """
    from skillpack.authoring.validation import frontmatter_findings
    from skillpack.registry.skill_registry import SkillRegistry

    return {
        "ok": not catalog.errors and not tools.faults,
        "roots": list(catalog.roots),
        "skills": [
            {
                "name": skill.name,
                "path": skill.path,
                "tools": [tool.id for tool in tools.of_skill(skill.name)],
                "findings": [finding.to_json() for finding in frontmatter_findings(skill)],
            }
            for skill in catalog.skills.values()
        ],
        "skipped": [entry._asdict() for entry in catalog.skipped],
        "shadowed": [entry._asdict() for entry in catalog.shadowed],
        "tool_faults": [asdict(fault) for fault in tools.faults],
        "dependency_problems": [
            {"tool": problem.skill, "needs": problem.needs, "kind": problem.kind, "message": problem.message}
            for problem in SkillRegistry.from_tools(tools).dependency_problems()
        ],
        "environment": environment(),
    }


def environment() -> dict[str, Any]:
    """Return the versions of this package, Python, KLayout's module and libraries, and the paths of programs and kits.

    ``process_kits`` is the folder that ``PDK_ROOT`` names and the names of the kits in it.
    """
    return {
        "skillpack": _version(DISTRIBUTION) or "not installed",
        "python": {"version": platform.python_version(), "executable": sys.executable},
        "klayout_module": _klayout_module(),
        "programs": {
            name: next((path for path in map(shutil.which, commands) if path), None)
            for name, commands in PROGRAMS.items()
        },
        "libraries": {name: _version(distribution) for name, distribution in LIBRARIES.items()},
        "process_kits": _process_kits(),
    }


def report(findings: dict[str, Any]) -> str:
    """Return the findings of ``examine`` as text."""
    from jinja2 import Environment, StrictUndefined

    from skillpack.untrusted.file_access import written_out

    def shown(value: Any) -> Any:
        return written_out(value) if isinstance(value, str) else value

    engine = Environment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, finalize=shown)  # noqa: S701
    return engine.from_string(_REPORT.read_text(encoding="utf-8")).render(findings).rstrip()


def _process_kits() -> dict[str, Any]:
    """Return the folder that ``PDK_ROOT`` names, None if it is not set, and the names of the kits in it."""
    folder = os.environ.get("PDK_ROOT")
    return {
        "folder": folder,
        "names": sorted(path.parent.name for path in Path(folder).glob("*/libs.tech")) if folder else [],
    }


def _version(distribution: str) -> str | None:
    """Return the installed version; None if there is none, as for a checkout that is only on the path."""
    from importlib import metadata

    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def _klayout_module() -> dict[str, str | None]:
    """Return the version of KLayout that a tool's process imports, or why the import fails."""
    from sturdy.bounded_run import run_bounded

    outcome = run_bounded([sys.executable, "-c", _IMPORT_KLAYOUT], b"", _IMPORT_TIMEOUT_S)
    if outcome.returncode == 0:
        return {"version": outcome.stdout.decode().strip(), "error": None}
    last = outcome.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
    return {"version": None, "error": last or f"ended with {outcome.returncode}"}
