"""What the server commands share on their command lines."""

from __future__ import annotations

import functools
import math
import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Callable

    from skillpack.hosts.guard import Access
    from skillpack.hosts.pack import Pack

DEFAULT_PORT = 8321


@dataclass(frozen=True)
class Listening:
    """Where to listen, and to whom.

    Attributes:
        host: Address.
        port: Port; 0 for any free one.
        token_file: File that holds the token, or None.
        allow_hosts: Further names of this server.
    """

    host: str
    port: int
    token_file: str | None
    allow_hosts: tuple[str, ...]

    def access(self) -> Access:
        """Return who may ask.

        Raises:
            HostError: If the server would be open to other machines, or the token is none.
        """
        from skillpack.hosts.guard import Access
        from skillpack.hosts.listening import HostError, read_token

        names = frozenset(name.lower() for name in self.allow_hosts)
        access = Access(self.host, read_token(self.token_file), names)
        problem = access.problem()
        if problem is not None:
            raise HostError(problem)
        return access


@dataclass(frozen=True)
class Serving:
    """How calls are made.

    Attributes:
        timeout: Longest duration of a call. [s]
        workers: Most tool processes at one time, or None for a number that suits the machine.
        directory: Folder the tools work in, or None for the current one.
    """

    timeout: float
    workers: int | None
    directory: str | None

    def open_pack(self, skills_dirs: tuple[str, ...]) -> Pack:
        """Return the pack to serve, after entering the working folder."""
        from skillpack.hosts.pack import Pack
        from skillpack.roots import default_roots

        roots = [os.path.abspath(root) for root in default_roots(skills_dirs or click.get_current_context().obj)]  # noqa: PTH100
        if math.isnan(self.timeout):
            raise click.BadParameter("must be a number of seconds, got nan", param_hint="--timeout")
        if self.directory is not None:
            os.chdir(self.directory)
        pack = Pack(roots, timeout=self.timeout, max_workers=self.workers)
        lost = len(pack.view().tools.faults) + len(pack.view().loader.catalog.errors)
        if lost:
            print(f"skillpack: {lost} skills or tools are left out; 'skillpack doctor' says why", file=sys.stderr)  # noqa: T201
        return pack


def LISTENING(function: Callable[..., Any]) -> Callable[..., Any]:  # noqa: N802 - an option group, as SKILLS_DIR is an option
    """Add the options of where to listen; the command gets them as ``listening``."""

    @functools.wraps(function)
    def grouped(*, host: str, port: int, token_file: str | None, allow_hosts: tuple[str, ...], **others: Any) -> Any:
        return function(listening=Listening(host, port, token_file, allow_hosts), **others)

    return _with_options(
        grouped,
        click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on."),
        click.option(
            "--port", type=click.IntRange(0, 65535), default=DEFAULT_PORT, show_default=True, help="Port; 0: any free."
        ),
        click.option(
            "--token-file",
            metavar="FILE",
            help="File with the token that every request must bear. [default: SKILLPACK_TOKEN]",
        ),
        click.option(
            "--allow-host",
            "allow_hosts",
            multiple=True,
            metavar="NAME",
            help="Further name under which this server is reached, such as that of a proxy.",
        ),
    )


def SERVING(function: Callable[..., Any]) -> Callable[..., Any]:  # noqa: N802 - as above
    """Add the options of how calls are made; the command gets them as ``serving``."""

    @functools.wraps(function)
    def grouped(*, timeout: float, workers: int | None, directory: str | None, **others: Any) -> Any:
        return function(serving=Serving(timeout, workers, directory), **others)

    return _with_options(
        grouped,
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
            help="Folder the tools work in. [default: the current one]",
        ),
    )


def _with_options(function: Callable[..., Any], *options: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function with options added, in the order given."""
    for option in reversed(options):
        function = option(function)
    return function
