"""The command ``skillpack``, also ``python -m skillpack``; ``skillpack.commands`` holds the subcommands."""

from __future__ import annotations

import errno
import io
import sys
from importlib import import_module
from pkgutil import iter_modules

import click

import skillpack.commands
from skillpack.commands import SKILLS_DIR, fail
from skillpack.skills.exceptions import SkillpackError

_UNWRITABLE = {errno.ENOSPC: "the disk is full", errno.EBADF: "standard output is closed"}


class Subcommands(click.Group):
    """The subcommands: each module ``skillpack.commands.NAME`` has its own as ``command``."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the names of all subcommands, sorted."""
        return sorted(module.name for module in iter_modules(skillpack.commands.__path__))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the subcommand ``cmd_name``, importing its module now, or None."""
        if cmd_name not in self.list_commands(ctx):
            return None
        found: click.Command = import_module(f"{skillpack.commands.__name__}.{cmd_name}").command
        return found


def main() -> None:
    """Run the command and leave with its exit code: 2 for whatever cannot be understood or found."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    if sys.stdout is None:  # started with standard output closed; print() would say nothing and succeed
        sys.stdout = _ClosedStream()
    try:
        command(prog_name="skillpack")
    except SkillpackError as error:
        fail(str(error))
    except OSError as error:
        reason = _UNWRITABLE.get(error.errno or 0)
        if reason is None:
            raise
        sys.stdout = None  # nothing more is written when Python leaves
        fail(f"the answer cannot be written: {reason}")


class _ClosedStream(io.TextIOBase):
    """Standard output that was closed before the program started: what is written to it is an error."""

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
