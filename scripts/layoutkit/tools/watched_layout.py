"""The page of a layout that someone works on: what it shows now, and what keeps it from showing more.

If a file is incomplete or missing, the page says so and shows the last drawing that could be read.

``watch`` starts a server of the page as a process of its own, which outlives the call: this module as a program. It
serves on loopback, to who has its token, until no page has asked for some time.
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
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

import klayout.db as kdb

from layoutkit.errors import FileError, LayoutkitError, MissingProgramError, counted
from layoutkit.layout.cells import choose_cell
from layoutkit.layout.workspace import ENVIRONMENT_VARIABLE
from layoutkit.templates import digest, rendered
from layoutkit.tools.current_layout import CurrentLayout
from layoutkit.view.drawing_data import drawing_data, read_markers
from layoutkit.view.report_page import MOST, findings_of
from sturdy.atomic_files import state_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fastapi import FastAPI


REPORTS = {"drc.lyrdb": "DRC", "review.lyrdb": "design review"}
SUMMARY = "summary.json"
_VIEW = Path(__file__).parents[1] / "view"
_NOTHING: dict[str, Any] = {"unit": 0.001, "box": [0, 0, 1, 1], "marker": "#00ffff", "layers": [], "cells": []}
_EMPTY_CELL: dict[str, Any] = {"shapes": {}, "instances": []}


@dataclass
class _Shown:
    """What a page shows: the drawing, its names, findings, notes and what has judged this very layout."""

    drawing: dict[str, Any] = field(default_factory=lambda: {**_NOTHING, "cells": [_EMPTY_CELL]})
    labels: list[list[Any]] = field(default_factory=list)
    findings: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    judged: list[str] = field(default_factory=list)
    cell: str = "no layout yet"
    technology: str = ""


class WatchedLayout:
    """A layout whose page follows its file.

    Args:
        params: ``layout_path``, ``workspace`` and ``technology``, ``cell_name`` of the tool, each optional.

    Raises:
        FileError: If the workspace is a file.
    """

    def __init__(self, params: Mapping[str, Any]) -> None:
        self.params = dict(params)
        current = CurrentLayout(params)
        self.path = current.path.absolute()
        self._lock = Lock()
        self._seen: object = None
        self._shown = _Shown()
        self._problem = ""
        self._page = self._version = ""

    def state(self) -> dict[str, str]:
        """Return ``version`` of the page's content, what is ``told`` beside it, and its ``kind``, a class of style."""
        self._look()
        faults = sum(each["fault"] for each in self._shown.findings)
        if self._problem:
            return {"version": self._version, "told": self._problem, "kind": "warn"}
        if faults:
            return {"version": self._version, "told": f"{faults} fault{'s' * (faults > 1)}", "kind": "bad"}
        musts = sum(each["text"].startswith("must: ") for each in self._shown.findings)
        if not self._shown.notes and musts:
            told = f"no faults found, but the design review says {musts} must{'s' * (musts > 1)}"
            return {"version": self._version, "told": told, "kind": "warn"}
        if not self._shown.notes:
            return {"version": self._version, "told": "no faults found", "kind": "good"}
        clean = " and ".join(self._shown.judged)
        told = f"no faults found by {clean}; the rest is not checked" if clean else "not checked"
        return {"version": self._version, "told": told, "kind": "warn"}

    def page(self) -> str:
        """Return the page as HTML text."""
        self._look()
        return self._page

    def digests(self) -> tuple[list[str], str]:
        """Return the SHA-256 of the page's scripts and of its style, as a security policy names them."""
        return [digest(_text(name)) for name in ("report_page.js", "live_page.js")], digest(_text("report_page.css"))

    def _look(self) -> None:
        """Read the files again if one has changed since the last time."""
        with self._lock:
            seen = [state_of(path) for path in (self.path, *(self.path.parent / name for name in (*REPORTS, SUMMARY)))]
            if seen == self._seen:
                return
            try:
                self._shown, self._problem = self._read(), ""
            except LayoutkitError as error:
                last = "; this is the last layout that could be read" if self._shown.drawing["layers"] else ""
                self._problem = f"{error}{last}"
            self._seen = seen
            self._version, self._page = self._made()

    def _read(self) -> _Shown:
        """Return what the files show now.

        Raises:
            LayoutkitError: If the layout cannot be read, or has several top cells.
        """
        current = CurrentLayout(self.params)
        self._check_inside(self.path)
        layout = current.read()
        cell = choose_cell(layout, self.params.get("cell_name"))
        technology = current.technology()
        judged = self._findings(current, cell)
        return _Shown(drawing_data(cell, technology), _labels(cell), *judged, cell.name, technology.name)

    def _findings(self, current: CurrentLayout, cell: kdb.Cell) -> tuple[list[dict[str, Any]], list[str], list[str]]:
        """Return the findings of the reports on this very layout, which reports there are not, and which there are."""
        folder = self.path.parent
        summary = self._summary(current.sha256)
        if summary is not None:
            return findings_of(summary), [], []
        found, notes, judged = [], [], []
        for name, what in REPORTS.items():
            path = folder / name
            if not path.is_file():
                notes.append(f"{what}: not run on this layout")
                continue
            try:
                self._check_inside(path)
                doubts = current.doubts_of(str(path))
                markers = [] if doubts else read_markers(path, cell)
            except LayoutkitError as error:
                doubts, markers = [str(error)], []
            notes += doubts
            judged += [] if doubts else [what]
            for marker in markers:
                box = [marker.box.left, marker.box.bottom, marker.box.right, marker.box.top]
                found.append({"rule": marker.rule_id, "text": what, "fault": what == "DRC", "box": box})
        notes.append("LVS: see the answer of lvs.run_check")
        more = len(found) - MOST
        return found[:MOST], [*notes, *([f"{more} more findings are in the reports"] if more > 0 else [])], judged

    def _summary(self, layout: str) -> dict[str, Any] | None:
        """Return the summary of the build that made the layout with this SHA-256; None if there is none."""
        path = self.path.parent / SUMMARY
        try:
            self._check_inside(path)
            summary = json.loads(path.read_bytes())
        except (OSError, ValueError, LayoutkitError):  # none, or half written
            return None
        return summary if isinstance(summary, dict) and summary.get("layout_sha256") == layout else None

    def _check_inside(self, path: Path) -> None:
        """Check that no link leads out of the folder, since a server may confine this page's caller to it.

        Raises:
            FileError: If one does.
        """
        if path.resolve().parent != self.path.parent.resolve():
            raise FileError(f"{path} is a link to another folder; the page reads only files of its own folder")

    def _made(self) -> tuple[str, str]:
        """Return version and text of the page."""
        shown = self._shown
        data = {**shown.drawing, "nets": [], "devices": [], "labels": shown.labels, "findings": shown.findings}
        # The page shows a new status without being loaded again, so the status is not part of the version.
        version = sha256(json.dumps([data, shown.notes, shown.cell]).encode()).hexdigest()
        box, unit = shown.drawing["box"], shown.drawing["unit"]
        size = f"{(box[2] - box[0]) * unit:g} by {(box[3] - box[1]) * unit:g} um" if shown.drawing["layers"] else ""
        faults = sum(each["fault"] for each in shown.findings)
        page = rendered(
            "live_page.html",
            cell=shown.cell,
            technology=shown.technology,
            told=self._problem,
            alt=f"Layout of {shown.cell}",
            findings=shown.findings,
            faults=faults,
            unchecked=bool(self._problem or shown.notes),
            counted=counted,
            notes=shown.notes,
            source=str(self.path),
            size=size,
            data={**data, "version": version},
            style=_text("report_page.css"),
            script=_text("report_page.js"),
            follow=_text("live_page.js"),
        )
        return version, str(page)


def _labels(cell: kdb.Cell) -> list[list[Any]]:
    """Return the texts of the cell and the cells below it: text, x, y [dbu]."""
    found = set()
    for layer in cell.layout().layer_indexes():
        texts = cell.begin_shapes_rec(layer)
        texts.shape_flags = kdb.Shapes.STexts
        while not texts.at_end():
            place = texts.trans() * (kdb.Point() + texts.shape().text_pos)
            found.add((texts.shape().text_string, place.x, place.y))
            texts.next()
    return [list(each) for each in sorted(found)[:2000]]


def _text(name: str) -> str:
    return (_VIEW / name).read_text(encoding="utf-8")


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
        [sys.executable, "-m", "layoutkit.tools.watched_layout"],
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
