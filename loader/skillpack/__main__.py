"""The command ``skillpack``, also ``python -m skillpack``; ``skillpack.commands`` holds the subcommands."""

from __future__ import annotations

import errno
import io
import re
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import click

from skillpack.commands import HOMES, SKILLS_DIR, fail
from skillpack.exceptions import SkillpackError
from sturdy.near_names import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_HELP = "skillpack.help"
_DECLARED = re.compile(
    r"^\s*(?:command:|-)\s*[{\[]*\s*name:\s*([a-z][a-z0-9-]*)(?:(?:(?!\bname:)[\s\S])*?\bhelp:\s*([^\n}]*))?",
    re.MULTILINE,
)
_MOST_READ = 1 << 18  # characters of a declaration
_UNWRITABLE = {errno.ENOSPC: "the disk is full", errno.EBADF: "standard output is closed"}


class Subcommands(click.Group):
    """The subcommands: those of ``skillpack.commands``, and those that skills declare."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all subcommands, sorted."""
        return sorted({*HOMES, *self._declared(ctx)})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the subcommand ``cmd_name``, or None; its module is imported, or the skills are read, now."""
        if cmd_name not in HOMES:
            return self._declared(ctx).get(cmd_name)
        found: click.Command = getattr(import_module(f"skillpack.commands.{HOMES[cmd_name]}"), f"{cmd_name}_command")
        return found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that the arguments name; an unknown one is refused with the most similar."""
        name = args[0]
        if not name.startswith("-") and self.get_command(ctx, name) is None:
            known = self.list_commands(ctx)
            ctx.fail(f"No such command {name!r}{did_you_mean(name, known) or '.'} There are: {', '.join(known)}.")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of the subcommands."""
        ctx.meta[_HELP] = True
        super().format_commands(ctx, formatter)

    def _declared(self, ctx: click.Context) -> dict[str, click.Command]:
        """Return the commands that skills declare, by name; for the list in the help without reading any YAML."""
        if "declared" not in ctx.meta:
            skills_dirs = ctx.params.get("skills_dirs", ())
            if ctx.meta.get(_HELP):
                from skillpack.skills.catalog import default_roots

                found = {
                    name: click.Command(name, help=text or f"Of skill {skill}: see skillpack {name} --help.")
                    for name, text, skill in _commands_in_skills(default_roots(skills_dirs))
                    if name not in HOMES
                }
            else:
                from skillpack.commands.declared_commands import declared_commands

                found = declared_commands(skills_dirs, HOMES)
            ctx.meta["declared"] = found
        result: dict[str, click.Command] = ctx.meta["declared"]
        return result


def _commands_in_skills(roots: Iterable[str]) -> Iterator[tuple[str, str, str]]:
    """Yield name, help and skill's folder of the commands that stand in the declarations below some folders."""
    for root in roots:
        for path in sorted(Path(root).glob("*/skill.yaml")):
            with suppress(OSError), path.open(errors="replace") as file:
                for name, text in _DECLARED.findall(file.read(_MOST_READ)):
                    yield name, text.strip(" '\""), path.parent.name


def main() -> None:
    """Run the command and exit with its code, which is 2 for invalid or missing input."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    if sys.stdout is None:  # standard output is closed; print() would silently succeed
        sys.stdout = _ClosedStream()
    try:
        command(prog_name="skillpack")
    except SkillpackError as error:
        fail(str(error))
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:  # pathlib raises it where it returns False for other paths that cannot be
            fail(f"{error.filename}: {error.strerror}")
        reason = _UNWRITABLE.get(error.errno or 0)
        if reason is None:
            raise
        sys.stdout = None  # so that Python does not write to it at exit
        fail(f"the answer cannot be written: {reason}")


class _ClosedStream(io.TextIOBase):
    """Replaces a standard output that was closed before the program started; writing to it is an error."""

    def write(self, text: str) -> int:
        if text:
            raise OSError(errno.EBADF, "standard output is closed")
        return 0


@click.group(cls=Subcommands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@SKILLS_DIR
@click.version_option(package_name="analog-layout-skills")
@click.pass_context
def command(context: click.Context, skills_dirs: tuple[str, ...]) -> None:
    """Find skills, serve their text layer by layer, and run their tools."""
    context.obj = skills_dirs


if __name__ == "__main__":
    main()
