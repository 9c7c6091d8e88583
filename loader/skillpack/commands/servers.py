"""The servers as subcommands, ``http`` and ``mcp``, and their options."""

from __future__ import annotations

import functools
import math
import os
from typing import TYPE_CHECKING, Any

import click

from skillpack.commands import SKILLS_DIR, fail, roots_of, warn_about_unnamed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from skillpack.hosts.listening import Access
    from skillpack.hosts.pack import Pack
    from skillpack.hosts.served_schemas import NameStyle
    from skillpack.registry.declaration import Tools


DEFAULT_PORT = 8321


def _access(listening: Mapping[str, Any]) -> Access:
    """Return who may send requests, by the options ``LISTENING``; if the owner set no token, a random one is made.

    Raises:
        HostError: If the server would be open to other machines, the token is none, or options contradict each other.
    """
    from skillpack.hosts.listening import Access, HostError, is_loopback, new_token, read_token

    host, write_token, no_token = listening["host"], listening["write_token"], listening["no_token"]
    token = read_token(listening["token_file"])
    if no_token and (token is not None or write_token is not None):
        raise HostError("--no-token contradicts the token in --token-file, --write-token or SKILLPACK_TOKEN")
    if token is not None and write_token is not None:
        raise HostError("--write-token is for a token made at the start; --token-file or SKILLPACK_TOKEN gives one")
    note = "warning: without a token every user of this machine can run tools as you" if no_token else ""
    if token is None and not no_token and (is_loopback(host) or write_token is not None):
        token, note = new_token(write_token)
    access = Access(host, token, frozenset(name.lower() for name in listening["allow_hosts"]), note)
    problem = access.problem()
    if problem is not None:
        raise HostError(problem)
    return access


def _open_pack(skills_dirs: tuple[str, ...], serving: Mapping[str, Any], toolsets: tuple[str, ...] = ()) -> Pack:
    """Return the pack to serve, by the options ``SERVING``, after entering the folder that the tools work in.

    Args:
        skills_dirs: Folders with skills that were given after the subcommand.
        serving: The options.
        toolsets: The toolsets to serve; all tools if empty.
    """
    from skillpack.execution.limits import CallLimits
    from skillpack.hosts.pack import Pack
    from skillpack.hosts.work_files import WorkFiles

    roots = [os.path.abspath(root) for root in roots_of(skills_dirs)]  # noqa: PTH100 - before the folder is entered
    timeout, directory = serving["timeout"], serving["directory"]
    if math.isnan(timeout):
        raise click.BadParameter("must be a number of seconds, got nan", param_hint="--timeout")
    if directory is not None:
        os.chdir(directory)
    confined = directory is not None and not serving["no_confine"]
    limits = CallLimits(os.getcwd() if confined else None, programs=serving["allow_decks"])  # noqa: PTH109 - compared as text
    files = WorkFiles(None if directory is None else os.curdir)
    pack = Pack(roots, timeout=timeout, max_workers=serving["workers"], limits=limits, files=files, toolsets=toolsets)
    view = pack.view()
    warn_about_unnamed(view.loader)
    lost = len(view.tools.faults) + len(view.loader.catalog.errors)
    if lost:
        click.echo(f"skillpack: {lost} skills or tools are left out; 'skillpack doctor' says why", err=True)
    return pack


def _options(*options: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that adds these options to a command."""
    return lambda function: functools.reduce(lambda made, option: option(made), reversed(options), function)


LISTENING = _options(
    click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on."),
    click.option(
        "--port", type=click.IntRange(0, 65535), default=DEFAULT_PORT, show_default=True, help="Port; 0: any free."
    ),
    click.option(
        "--token-file",
        metavar="FILE",
        help="File with the token that every request needs. [default: SKILLPACK_TOKEN, else a random one, "
        "shown on stderr]",
    ),
    click.option(
        "--write-token",
        metavar="FILE",
        help="Write the random token to FILE, which only you can read (mode 0600), instead of showing it.",
    ),
    click.option(
        "--no-token",
        is_flag=True,
        help="Serve without a token, on a loopback address only. Every local user can then run tools as you.",
    ),
    click.option(
        "--allow-host",
        "allow_hosts",
        multiple=True,
        metavar="NAME",
        help="Further name under which this server is reached, such as that of a proxy.",
    ),
    click.option(
        "--max-body",
        type=click.IntRange(1024, 64 << 20),
        default=4 << 20,
        show_default=True,
        metavar="BYTES",
        help="Maximum size of a request body over HTTP and of an uploaded file.",
    ),
)
SERVING = _options(
    click.option(
        "--timeout",
        type=click.FloatRange(min=0, min_open=True, max=86400),
        default=300.0,
        show_default=True,
        metavar="S",
        help="Seconds until a call is killed.",
    ),
    click.option("--workers", type=click.IntRange(1, 256), help="Most tool processes at one time."),
    click.option(
        "--directory",
        type=click.Path(exists=True, file_okay=False),
        metavar="DIR",
        help="Folder the tools work in; calls can then name no path outside of it. [default: the current one, "
        "without that limit]",
    ),
    click.option("--no-confine", is_flag=True, help="Let calls name paths outside of --directory."),
    click.option(
        "--allow-decks",
        is_flag=True,
        help="Let calls name foundry rule decks. A deck is a program: whoever can call a tool can then run any.",
    ),
)


@click.command("http")
@SKILLS_DIR
@LISTENING
@SERVING
def http_command(skills_dirs: tuple[str, ...], **options: Any) -> None:
    """Serve the registry and calls of its tools over HTTP, described at /openapi.json.

    Needs the extra 'http'.
    """
    try:
        from skillpack.hosts.http.api import run
    except ImportError as error:
        from skillscript.install import install_command

        fail(f"this needs the package {error.name}, which is not installed: {install_command('http')}")
    access = _access(options)
    with _open_pack(skills_dirs, options) as pack:
        run(pack, access, options["port"], options["max_body"])


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
def mcp_command(skills_dirs: tuple[str, ...], tool_names: NameStyle, toolsets: str, http: bool, **options: Any) -> None:
    """Serve the skills and their tools over the Model Context Protocol.

    Without --http the server uses stdin and stdout, as hosts start it. Needs the extra 'mcp'.
    """
    try:
        from skillpack.hosts.mcp.sdk_server import run_http, run_stdio
    except ImportError as error:
        from skillscript.install import install_command

        fail(f"this needs the package {error.name}, which is not installed: {install_command('mcp')}")
    from skillpack.hosts.mcp.pack_server import Toolbox

    access = _access(options) if http else None
    chosen = tuple(dict.fromkeys(name.strip() for name in toolsets.split(","))) if toolsets else ()
    with _open_pack(skills_dirs, options, chosen) as pack:
        pack.max_upload = options["max_body"]
        _check_toolsets(chosen, pack.view().tools)
        for name, tool_id in Toolbox(pack.view(), tool_names).renamed.items():
            click.echo(
                f"skillpack: {tool_id} is served as {name}; its plain name is another tool's or too long", err=True
            )
        if access is not None:
            run_http(pack, tool_names, access, options["port"], options["max_body"])
        else:
            run_stdio(pack, tool_names)


def _check_toolsets(chosen: tuple[str, ...], tools: Tools) -> None:
    """Refuse to start with a toolset that no tool is in."""
    from sturdy.near_names import did_you_mean

    known = sorted({name for tool in tools.by_id.values() for name in tool.toolsets})
    unknown = [f"no toolset {name!r}{did_you_mean(name, known)}" for name in chosen if name not in known]
    if unknown:
        raise click.BadParameter(f"{'; '.join(unknown)}; there are: {', '.join(known)}", param_hint="--toolsets")
