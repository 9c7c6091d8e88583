"""The subcommands of ``skillpack``, in modules by what they are for, and what they share.

Shared are options, the loader that the options name, and how an answer or a failure is printed.
"""

from __future__ import annotations

import contextlib
import json
import sys
from typing import TYPE_CHECKING, Any, NoReturn

import click

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from skillpack.registry.declaration import Tools
    from skillpack.skills.loader import SkillLoader
    from skillpack.skills.skill_md import Skill

_COMMANDS = {
    "authoring": ("doctor", "new", "validate"),
    "calling": ("intent", "pipeline", "run", "suite", "tools"),
    "copying": ("export", "install"),
    "reading": ("list", "prompt", "read", "search", "show"),
    "servers": ("http", "mcp"),
}
HOMES = {name: home for home, names in _COMMANDS.items() for name in names}
"""The module of each subcommand ``NAME``, which is imported when needed; its click command is ``NAME_command``."""
EXIT_BAD_INPUT = 2
EXIT_FINDINGS = 1
SKILLS_DIR = click.option(
    "--skills-dir",
    "skills_dirs",
    multiple=True,
    is_eager=True,  # the help of the group lists what is there
    metavar="DIR",
    help="Folder with skills, or @project, @user, @pack; repeat for several, the first has precedence. "
    "[default: SKILLPACK_PATH, else this pack]",
)
JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def open_loader(skills_dirs: tuple[str, ...]) -> SkillLoader:
    """Return the loader of the folders given after the subcommand, before it, or else by default."""
    from skillpack.skills.loader import SkillLoader

    loader = SkillLoader(roots_of(skills_dirs))
    warn_about_unnamed(loader)
    return loader


def warn_about_unnamed(loader: SkillLoader) -> None:
    """Print a warning on stderr for each skill that takes its name from its folder."""
    for skill in loader.skills.values():
        if skill.is_unnamed:
            from skillpack.authoring.skill_rules import UNNAMED
            from skillpack.untrusted.file_access import one_line

            click.echo(f"skillpack: warning: {one_line(skill.path)}: {UNNAMED}", err=True)


def chosen_skills(skills: Mapping[str, Skill], names: Iterable[str]) -> list[Skill]:
    """Return the skills with these names, each once, or all if there are none; exit with code 2 if one is unknown."""
    wanted = list(dict.fromkeys(names)) or list(skills)
    unknown = [name for name in wanted if name not in skills]
    if unknown:
        from sturdy.near_names import did_you_mean

        fail("\n".join(f"no skill {name!r}{did_you_mean(name, list(skills))}" for name in unknown))
    return [skills[name] for name in wanted]


def roots_of(skills_dirs: tuple[str, ...]) -> tuple[str, ...]:
    """Return the folders given after the subcommand, before it, or else the default folders."""
    from skillpack.skills.catalog import default_roots

    return default_roots(named_roots(skills_dirs))


def named_roots(skills_dirs: tuple[str, ...]) -> tuple[str, ...]:
    """Return the folders given after the subcommand, or else before it; none if there are none."""
    return skills_dirs or click.get_current_context().obj or ()


def open_tools(loader: SkillLoader) -> Tools:
    """Return the tools in the loader's folders."""
    from skillpack.registry.declaration import find_tools

    return find_tools(loader.declaring)


def complete_tools(context: click.Context, _param: click.Parameter, begun: str) -> list[str]:
    """Return the tools whose ids begin with what a user has typed in a shell."""
    return [name for name in open_tools(_loader_of(context)).by_id if name.startswith(begun)]


def complete_skills(context: click.Context, _param: click.Parameter, begun: str) -> list[str]:
    """Return the skills whose names begin with what a user has typed in a shell."""
    return [name for name in _loader_of(context).skills if name.startswith(begun)]


def _loader_of(context: click.Context) -> SkillLoader:
    from skillpack.skills.catalog import default_roots
    from skillpack.skills.loader import SkillLoader

    return SkillLoader(default_roots(context.find_root().params.get("skills_dirs", ())))


def json_argument(name: str, text: str) -> Any:
    """Return the JSON value of an option: JSON text, @FILE, or - for stdin.

    Raises:
        SkillError: INVALID_PARAM if it cannot be read or is not JSON.
    """
    from skillpack.exceptions import FileRefusedError
    from skillpack.untrusted.file_access import read_bounded
    from skillscript.envelope import SkillError
    from sturdy.strict_json import MAX_BYTES, NotJsonError, parse_json

    try:
        if text == "-":
            return parse_json(sys.stdin.buffer.read(MAX_BYTES + 1))
        return parse_json(read_bounded(text[1:], MAX_BYTES) if text.startswith("@") else text)
    except FileNotFoundError as error:
        raise SkillError("INVALID_PARAM", f"--{name}: no such file {text[1:]!r}") from error
    except (FileRefusedError, NotJsonError, ValueError) as error:
        is_path = text[:1] not in '@-{["' and not text[:1].isdigit()
        hint = f"; a file is given as --{name} @{text[:80]}" if is_path else ""
        raise SkillError("INVALID_PARAM", f"--{name}: {error}{hint}") from error


def print_json(value: Any) -> None:
    """Print a value as indented JSON."""
    click.echo(json.dumps(value, ensure_ascii=False, indent=2))


def answered(answer: dict[str, Any], *, as_json: bool) -> dict[str, Any] | None:
    """Return the data of an answer, or print it as JSON and return None; exit with code 2 if it is a failure."""
    if as_json:
        print_json(answer)
    elif not answer["success"]:
        from sturdy.near_names import suggestion

        fail(answer["message"] + suggestion(answer["suggestions"]))
    if not answer["success"]:
        sys.exit(EXIT_BAD_INPUT)
    return None if as_json else answer["data"]


def fail(message: str) -> NoReturn:
    """Print a message on stderr and exit with code 2."""
    from skillpack.untrusted.file_access import written_out

    text = "\n".join(map(written_out, message.split("\n")))
    click.echo(f"skillpack: {text}", err=True)
    sys.exit(EXIT_BAD_INPUT)


def pass_on(chunk: bytes) -> None:
    """Copy a part of a tool's stderr to ours; a closed stderr is ignored."""
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.buffer.write(chunk)
        sys.stderr.buffer.flush()
