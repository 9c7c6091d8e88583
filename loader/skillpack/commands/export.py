"""``skillpack export``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from skillpack.commands import JSON, SKILLS_DIR, chosen_skills, open_loader, print_json

if TYPE_CHECKING:
    from skillpack.copies.skill_copy import SkillCopy


@click.command("export")
@SKILLS_DIR
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Export every skill.")
@click.option("--to", "folder", required=True, metavar="DIR", help="Folder in which to write; created if absent.")
@click.option("--archive", is_flag=True, help="Write archives NAME.skill instead of folders.")
@click.option("--force", is_flag=True, help="Also replace copies in which files were changed or added.")
@JSON
def command(  # noqa: PLR0913, PLR0917 - click passes every option
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
