"""``skillpack mcp``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from skillpack.commands import SKILLS_DIR, fail
from skillpack.commands._servers import LISTENING, SERVING, Listening, Serving

if TYPE_CHECKING:
    from skillpack.hosts.served_schemas import NameStyle
    from skillpack.registry.declaration import Tools


@click.command("mcp")
@SKILLS_DIR
@click.option(
    "--tool-names",
    type=click.Choice(["underscored", "dotted"]),
    default="underscored",
    show_default=True,
    help="Form of the tool names. Some hosts refuse dots; a call can use either form.",
)
@click.option(
    "--toolsets",
    default="",
    envvar="SKILLPACK_TOOLSETS",
    metavar="NAME,...",
    help="List and call only the tools of these toolsets, which 'skillpack tools' shows. [default: "
    "SKILLPACK_TOOLSETS, else all tools]",
)
@click.option("--http", is_flag=True, help="Serve streamable HTTP at /mcp instead of stdin and stdout.")
@LISTENING
@SERVING
def command(
    skills_dirs: tuple[str, ...],
    tool_names: NameStyle,
    toolsets: str,
    http: bool,
    listening: Listening,
    serving: Serving,
) -> None:
    """Serve the skills and their tools over the Model Context Protocol.

    Without --http the server uses stdin and stdout, as hosts start it. Needs the extra 'mcp'.
    """
    try:
        from skillpack.hosts.mcp.sdk_server import run_http, run_stdio
    except ImportError as error:
        from skillscript.install import install_command

        fail(f"this needs the package {error.name}, which is not installed: {install_command('mcp')}")
    from skillpack.hosts.mcp.toolbox import Toolbox

    access = listening.access() if http else None
    chosen = tuple(dict.fromkeys(name.strip() for name in toolsets.split(","))) if toolsets else ()
    with serving.open_pack(skills_dirs, chosen) as pack:
        pack.max_upload = listening.max_body
        _check_toolsets(chosen, pack.view().tools)
        for name, tool_id in Toolbox(pack.view(), tool_names).renamed.items():
            click.echo(
                f"skillpack: {tool_id} is served as {name}; its plain name is another tool's or too long", err=True
            )
        if access is not None:
            run_http(pack, tool_names, access, listening.port, listening.max_body)
        else:
            run_stdio(pack, tool_names)


def _check_toolsets(chosen: tuple[str, ...], tools: Tools) -> None:
    """Refuse to start with a toolset that no tool is in."""
    from sturdy.near_names import did_you_mean

    known = sorted({name for tool in tools.by_id.values() for name in tool.toolsets})
    unknown = [f"no toolset {name!r}{did_you_mean(name, known)}" for name in chosen if name not in known]
    if unknown:
        raise click.BadParameter(f"{'; '.join(unknown)}; there are: {', '.join(known)}", param_hint="--toolsets")
