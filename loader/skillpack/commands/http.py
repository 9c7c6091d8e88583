"""``skillpack http``."""

from __future__ import annotations

import click

from skillpack.commands import SKILLS_DIR, fail
from skillpack.commands._servers import LISTENING, SERVING, Listening, Serving


@click.command("http")
@SKILLS_DIR
@LISTENING
@SERVING
def command(skills_dirs: tuple[str, ...], listening: Listening, serving: Serving) -> None:
    """Serve the registry and calls of its tools over HTTP, described at /openapi.json.

    Needs the extra 'http'.
    """
    try:
        from skillpack.hosts.http.api import run
    except ImportError as error:
        from skillscript.install import install_command

        fail(f"this needs the package {error.name}, which is not installed: {install_command('http')}")
    access = listening.access()
    with serving.open_pack(skills_dirs) as pack:
        run(pack, access, listening.port, listening.max_body)
