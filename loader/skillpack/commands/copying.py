"""Subcommands that copy skills: ``export`` and ``install``."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from skillpack.commands import JSON, SKILLS_DIR, chosen_skills, complete_skills, open_loader, print_json

if TYPE_CHECKING:
    from skillpack.copies.installation import Copied, HostFolder
    from skillpack.copies.skill_copy import SkillCopy


@click.command("export")
@SKILLS_DIR
@click.argument("names", metavar="[NAME]...", nargs=-1, shell_complete=complete_skills)
@click.option("--all", "everything", is_flag=True, help="Export every skill.")
@click.option("--to", "folder", required=True, metavar="DIR", help="Folder in which to write; created if absent.")
@click.option("--archive", is_flag=True, help="Write archives NAME.skill instead of folders.")
@click.option("--force", is_flag=True, help="Also replace copies in which files were changed or added.")
@JSON
def export_command(  # noqa: PLR0913, PLR0917 - click passes every option
    skills_dirs: tuple[str, ...],
    names: tuple[str, ...],
    everything: bool,
    folder: str,
    archive: bool,
    force: bool,
    as_json: bool,
) -> None:
    """Write self-contained copies of the skills NAME, for machines without this package.

    In a copy, the modules that scripts import lie beside them. Each script has a header (PEP 723) and a lock with
    the other libraries that it needs: `uv run scripts/x.py` installs them and runs the script. manifest.json lists
    all files with their SHA-256. The same skills give the same bytes.

    An earlier copy in DIR is replaced, anything else is refused. If one skill has a fault, nothing is written.
    """
    from skillpack.copies.writing import export_skills

    if everything == bool(names):
        raise click.UsageError("name the skills to export, or use --all")
    if not folder:
        raise click.UsageError("--to is empty: give a folder, such as '.'")
    chosen = chosen_skills(open_loader(skills_dirs).skills, names)
    written = export_skills(chosen, Path(folder), archive=archive, force=force)
    if as_json:
        print_json({"copies": [_shown(copy, path) for copy, path in written]})
        return
    for copy, path in written:
        click.echo(f"wrote {path}: {len(copy.files)} files, version {copy.version or 'unknown'}")
        for note in copy.notes:
            click.echo(f"note: {copy.name}: {note}", err=True)


def _shown(copy: SkillCopy, path: Path) -> dict[str, Any]:
    """Return what ``--json`` prints of a copy."""
    return {
        "name": copy.name,
        "version": copy.version or None,
        "path": str(path),
        "tools": list(copy.tools),
        "files": len(copy.files),
        "bytes": sum(map(len, copy.files.values())),
        "notes": list(copy.notes),
    }


@click.command("install")
@click.argument("names", nargs=-1, shell_complete=complete_skills)
@click.option("--all", "everything", is_flag=True, help="All skills of this pack; with --remove: all installed ones.")
@click.option(
    "--host",
    "hosts",
    multiple=True,
    metavar="HOST",
    help="claude, codex, agents, gemini, or a folder; repeat for several. [default of --list and --update: all four]",
)
@click.option("--user", is_flag=True, help="The host's folder for you, such as ~/.claude/skills.")
@click.option(
    "--project",
    is_flag=True,
    help="The host's folder in the working folder, such as .claude/skills. [default; --list and --update: both]",
)
@click.option("--list", is_flag=True, help="List installed skills, and which of their files were changed.")
@click.option("--update", is_flag=True, help="Update all installed skills, or only NAMES.")
@click.option("--remove", is_flag=True, help="Remove the installed skills NAMES.")
@click.option("--force", is_flag=True, help="Also replace or remove skills whose files were edited.")
@SKILLS_DIR
@JSON
def install_command(
    names: tuple[str, ...], hosts: tuple[str, ...], skills_dirs: tuple[str, ...], **flags: bool
) -> None:
    """Install the skills NAMES as self-contained copies into the folder of a host.

    Claude Code looks in .claude/skills, Gemini CLI in .gemini/skills, Codex and many others (--host agents) in
    .agents/skills. Skills with edited files are changed only with --force. An update keeps files that you added to a
    skill, such as a layout. Folders that this command did not make are never changed.
    """
    action = _one_of(flags, "list", "update", "remove")
    _check(names, action, hosts, everything=flags["everything"])
    from skillpack.copies.installation import PROJECT, USER, host_folders

    both = (PROJECT, USER) if action in {"list", "update"} else (PROJECT,)
    scope = _one_of(flags, PROJECT, USER)
    folders = host_folders(hosts, (scope,) if scope else both)
    if action == "list":
        _list(folders, names, as_json=flags["as_json"])
        return
    roots = [place.folder for place in folders]
    outcomes = _act(action, names, roots, skills_dirs, flags)
    if flags["as_json"]:
        print_json([_described(outcome) for outcome in outcomes])
    else:
        _report(outcomes)


def _one_of(flags: dict[str, bool], *names: str) -> str | None:
    """Return which of some options was given, or None."""
    given = [name for name in names if flags[name]]
    if len(given) > 1:
        raise click.UsageError(f"give only one of {' and '.join(f'--{name}' for name in given)}")
    return given[0] if given else None


def _check(names: tuple[str, ...], action: str | None, hosts: tuple[str, ...], *, everything: bool) -> None:
    """Refuse combinations of options that have no meaning."""
    if names and everything:
        raise click.UsageError("give either NAMES or --all")
    if action in {"list", "update"}:
        return
    if not names and not everything:
        raise click.UsageError("give NAMES of skills, or --all")
    if not hosts:
        raise click.UsageError("give --host: claude, codex, agents, gemini or a folder")


def _act(
    action: str | None,
    names: tuple[str, ...],
    roots: list[Path],
    skills_dirs: tuple[str, ...],
    flags: dict[str, bool],
) -> list[Copied]:
    """Install, update or remove, and return what was done."""
    from skillpack.copies.installation import install, uninstall, update

    wanted, force = list(dict.fromkeys(names)), flags["force"]
    if action == "remove":
        return uninstall(roots, wanted, force=force)
    skills = open_loader(skills_dirs).skills
    if action == "update":
        return update(skills, roots, wanted, force=force)
    return install(chosen_skills(skills, wanted), roots, force=force)


def _report(outcomes: list[Copied]) -> None:
    """Print what was done, one line per skill and folder."""
    from skillpack.untrusted.file_access import written_out

    for outcome in outcomes:
        version = f" {outcome.version}" if outcome.version else ""
        if outcome.action == "updated" and outcome.before != outcome.version:
            version = f" {outcome.before or '?'} -> {outcome.version}"
        why = "; this pack does not have it" if outcome.action == "kept" else ""
        click.echo(written_out(f"{outcome.action} {outcome.name}{version} in {outcome.folder.parent}{why}"))
    for note in dict.fromkeys(note for outcome in outcomes for note in outcome.notes):
        click.echo(f"skillpack: note: {note}", err=True)
    if not outcomes:
        click.echo("nothing is installed there", err=True)


def _list(folders: list[HostFolder], names: tuple[str, ...], *, as_json: bool) -> None:
    """Print what is installed in folders."""
    from skillpack.copies.writing import installed_skills, locked
    from skillpack.untrusted.file_access import written_out

    for place in folders:
        with suppress(OSError), locked(place.folder):  # restores what an interruption left
            pass
    found = [(place, skill) for place in folders for skill in installed_skills(place.folder)]
    found = [(place, skill) for place, skill in found if not names or skill.name in names]
    if as_json:
        print_json(
            [
                {
                    "name": skill.name,
                    "version": skill.version,
                    "folder": str(skill.folder),
                    "hosts": list(place.hosts),
                    "scope": place.scope,
                    "changed": list(skill.changed),
                    "added": list(skill.added),
                }
                for place, skill in found
            ]
        )
        return
    heading = None
    for place, skill in found:
        if place != heading:
            click.echo(written_out(str(place)))
        heading = place
        changed = f"  changed: {', '.join(skill.changed)}" if skill.changed else ""
        added = f"  added: {len(skill.added)} file{'s' * (len(skill.added) > 1)}" if skill.added else ""
        click.echo(written_out(f"    {skill.name} {skill.version or '?'}{changed}{added}"))
    missing = [name for name in names if name not in {skill.name for _, skill in found}]
    if missing or not found:
        what = f"skillpack did not install {', '.join(missing)}" if missing else "nothing is installed"
        click.echo(written_out(f"{what} in {', '.join(map(str, folders))}"), err=True)


def _described(outcome: Copied) -> dict[str, Any]:
    """Return what was done as ``--json`` prints it."""
    return {**outcome._asdict(), "folder": str(outcome.folder), "notes": list(outcome.notes)}
