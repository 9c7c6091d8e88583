"""Serve the page of a watched layout on loopback, to who has its token, until no page has asked for some time.

``watch`` starts the server as a process of its own, which outlives the call: the server is this module as a program.
"""

from __future__ import annotations

import hmac
import importlib.util
import json
import os
import secrets
import socket
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

from layoutkit.errors import LayoutkitError, MissingProgramError
from layoutkit.layout.workspace import ENVIRONMENT_VARIABLE
from layoutkit.tools.watched_layout import WatchedLayout

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fastapi import FastAPI

HOST = "127.0.0.1"
_START_S = 30.0
_PASSED_ON = ("HOME", "PATH", "SYSTEMROOT", "TEMP", "TMPDIR", ENVIRONMENT_VARIABLE)


def watch(params: Mapping[str, Any]) -> dict[str, Any]:
    """Start the server as ``params`` (of ``layout.watch``) request and return the address of its page.

    Raises:
        MissingProgramError: If the HTTP server's libraries are not installed.
        LayoutkitError: If there is no such folder, the port is taken, or the server does not start.
    """
    if missing := [name for name in ("fastapi", "uvicorn") if importlib.util.find_spec(name) is None]:
        raise MissingProgramError(
            f"the page needs {' and '.join(missing)}; install analog-layout-skills[http]", details={"missing": missing}
        )
    watched = WatchedLayout(params)
    state = watched.state()
    token = secrets.token_urlsafe(24)
    # None of the variables by which a runner finds what a call has started, and ends it: the server outlives this call.
    environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    environment["PYTHONPATH"] = os.pathsep.join(sys.path)
    process = subprocess.Popen(
        [sys.executable, "-m", "layoutkit.tools.watch_server"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
        start_new_session=True,
    )
    assert process.stdin is not None and process.stdout is not None  # noqa: S101, PT018 - both are pipes
    with process.stdin as stdin:
        stdin.write(json.dumps({**params, "token": token}).encode())
    late = threading.Timer(_START_S, process.kill)
    late.start()
    with process.stdout as stdout:
        said = json.loads(stdout.readline() or b"{}")
    late.cancel()
    if "port" not in said:
        process.kill()
        process.wait()
        raise LayoutkitError(said.get("error") or f"the page's server did not start within {_START_S:g} s")
    return {
        "url": f"http://{HOST}:{said['port']}/?token={token}",
        "process": process.pid,
        "watched_path": str(watched.path),
        "told": state["told"],
        "warnings": [],
    }


def app(watched: WatchedLayout, token: str, asked: Any = lambda: None) -> FastAPI:
    """Return the application: the page at ``/``, its state at ``/state``.

    Args:
        watched: What it shows.
        token: What each request must hold as the query parameter ``token``.
        asked: Called at each request that holds it.
    """
    from fastapi import FastAPI, HTTPException
    from fastapi.middleware.trustedhost import TrustedHostMiddleware
    from fastapi.responses import HTMLResponse

    served = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
    served.add_middleware(TrustedHostMiddleware, allowed_hosts=[HOST, "localhost"])  # against DNS rebinding
    scripts, style = watched.digests()
    allowed = " ".join(f"'sha256-{each}'" for each in scripts)
    headers = {
        "cache-control": "no-store",
        "content-security-policy": f"default-src 'none'; connect-src 'self'; img-src data:; script-src {allowed}; "
        f"style-src 'sha256-{style}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        "referrer-policy": "no-referrer",  # the address holds the token
        "x-content-type-options": "nosniff",
    }

    def check(given: str) -> None:
        if not hmac.compare_digest(given.encode(), token.encode()):
            raise HTTPException(401, "the address needs the token that layout.watch answered")
        asked()

    # Functions that are not coroutines run in threads, so that a large layout holds up nobody.
    def page(token: str = "") -> HTMLResponse:
        check(token)
        return HTMLResponse(watched.page(), headers=headers)

    def state(token: str = "") -> dict[str, str]:
        check(token)
        return watched.state()

    served.add_api_route("/", page, methods=["GET"], response_model=None)
    served.add_api_route("/state", state, methods=["GET"])
    return served


def _serve() -> None:
    """Serve what standard input describes; the first line of standard output is the port, or what is wrong."""
    import uvicorn

    params = json.loads(sys.stdin.buffer.read())
    minutes, port = params.pop("minutes"), params.pop("port", 0)
    last = time.monotonic()

    def asked() -> None:
        nonlocal last
        last = time.monotonic()

    served = app(WatchedLayout(params), params.pop("token"), asked)
    listener = socket.socket()
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((HOST, port))
    except OSError as error:
        _say({"error": f"cannot listen on {HOST} port {port}: {error.strerror}; choose another port"})
        return
    server = uvicorn.Server(uvicorn.Config(served, ws="none", log_level="critical", server_header=False))

    def end_when_idle() -> None:
        while time.monotonic() - last < 60 * minutes:
            time.sleep(1)
        server.should_exit = True

    threading.Thread(target=end_when_idle, daemon=True).start()
    listener.listen()
    _say({"port": listener.getsockname()[1]})
    server.run(sockets=[listener])


def _say(what: Mapping[str, Any]) -> None:
    """Write the one line of standard output, and close it, so that nobody waits for more."""
    sys.stdout.write(f"{json.dumps(what)}\n")
    sys.stdout.flush()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


if __name__ == "__main__":
    _serve()
