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
    """The subcommands: each is ``command`` in the module ``skillpack.commands.NAME``."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the names of all subcommands, sorted."""
        return sorted(module.name for module in iter_modules(skillpack.commands.__path__))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the subcommand ``cmd_name``, or None; its module is imported now."""
        if cmd_name not in self.list_commands(ctx):
            return None
        found: click.Command = import_module(f"{skillpack.commands.__name__}.{cmd_name}").command
        return found


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
