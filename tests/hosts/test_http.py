"""``skillpack http`` as a process of its own, asked by a real client (S4.2)."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from urllib.parse import urlsplit

import pytest

from extras import extra
from forked import run_server_command
from patience import WATCHDOG_S

extra("fastapi", reason="skipped: needs the extra http")
extra("uvicorn", reason="skipped: needs the extra http")

TOKEN = "a-token-of-some-length"  # noqa: S105
needs_proc = pytest.mark.skipif(not os.path.isdir("/proc"), reason="skipped: needs /proc")  # noqa: PTH112


def ask(address, method, path, body=None, headers=None):
    """Return status, JSON answer and headers of one request."""
    data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    request = urllib.request.Request(address + path, data, {"Content-Type": "application/json", **(headers or {})})  # noqa: S310
    request.method = method
    try:
        with urllib.request.urlopen(request, timeout=WATCHDOG_S) as answer:  # noqa: S310
            return answer.status, json.loads(answer.read()), answer.headers
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read()), error.headers


@pytest.fixture(scope="module")
def address(pack_dir, tools_of_the_trade):
    arguments = ("http", "--skills-dir", pack_dir, "--timeout", "300", "--max-body", "100000")
    with tools_of_the_trade.running(*arguments) as (_, address):
        yield address


def failed(answer, text=""):
    """Return whether an answer is the envelope of a failure that says ``text``."""
    assert set(answer) == {"ok", "error", "data", "duration_ms"}
    return answer["ok"] is False and text in answer["error"]["message"]


def test_it_lists_every_skill_with_all_fields_of_a_declaration(address, tools_of_the_trade):
    """S4.1, S4.2: GET /skills."""
    status, answer, _ = ask(address, "GET", "/skills")
    assert status == 200
    assert {skill["id"] for skill in answer["skills"]} == set(tools_of_the_trade.TOOLS)
    for skill in answer["skills"]:
        assert set(skill) >= {
            *("id", "display_name", "version", "intent_tags", "input_schema", "output_schema", "models"),
            *("context", "cost", "composable", "dependencies"),
        }
        assert "script" not in skill  # a place on this machine


def test_skills_that_serve_an_intent_come_in_their_rank_with_reasons(address):
    """S4.3."""
    status, answer, _ = ask(address, "GET", "/skills?intent=draw")
    assert status == 200
    assert [(skill["id"], skill["rank"]) for skill in answer["skills"]] == [("bench.draw", 1)]
    assert answer["skills"][0]["explanation"]


def test_it_gives_the_definition_of_one_skill(address):
    """S4.2: GET /skills/{id}."""
    status, answer, _ = ask(address, "GET", "/skills/bench.echo_text")
    assert (status, answer["version"], answer["versions"]) == (200, "1.2.0", ["1.2.0"])
    assert answer["input_schema"]["required"] == ["text"]
    assert ask(address, "GET", "/skills/bench.echo_text?version=1.0.0")[0] == 200  # a later compatible one
    assert ask(address, "GET", "/skills/bench.echo_text?version=2.0.0")[0] == 404


@pytest.mark.parametrize(
    ("body", "paths"),
    [
        ({"params": {"text": "a"}}, []),
        ({"params": {"txet": "a", "times": "x"}}, ["text", "times", "txet"]),
        ({"result": {"text": "a"}}, []),
        ({"result": {"text": 5}}, ["text"]),
        ({"params": {"text": "a"}, "result": {}}, ["text"]),
    ],
)
def test_it_says_whether_parameters_suit_a_skill(address, body, paths):
    """S4.2: POST /skills/validate with the body that the specification shows."""
    status, answer, _ = ask(address, "POST", "/skills/validate", {"skill_id": "bench.echo_text", **body})
    assert status == 200
    assert answer["valid"] is not paths and answer["valid"] == (not paths)  # noqa: PT018 - one statement
    assert sorted(error["path"] for error in answer["errors"]) == paths


def test_it_executes_a_skill_and_answers_its_envelope(address):
    """S1.2: params and context."""
    body = {"params": {"text": "ä"}, "context": {"memory_summary": "before"}}
    status, answer, _ = ask(address, "POST", "/skills/bench.echo_text/execute", body)
    assert status == 200
    assert (answer["ok"], answer["error"], answer["data"]["text"]) == (True, None, "ä")
    assert answer["data"]["context"]["memory_summary"] == "before"


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("INVALID_PARAM", 422),
        ("DEVICE_NOT_FOUND", 422),
        ("RULE_NOT_FOUND", 422),
        ("UNSUPPORTED_OPERATION", 422),
        ("DRC_VIOLATION", 409),
        ("LAYOUT_CONFLICT", 409),
        ("SERVICE_UNAVAILABLE", 503),
        ("TIMEOUT", 504),
        ("KLAYOUT_ERROR", 500),
        ("INTERNAL_ERROR", 500),
    ],
)
def test_every_code_has_its_status_and_no_error_tells_a_folder(address, code, status):
    """S0.2."""
    got, answer, _ = ask(address, "POST", "/skills/bench.fail/execute", {"params": {"code": code}})
    assert got == status
    assert answer["error"]["code"] == code
    assert "thing.gds" in answer["error"]["message"]
    assert "secret" not in json.dumps(answer)


def test_a_skills_own_code_is_the_callers_fault(address):
    status, answer, _ = ask(address, "POST", "/skills/memory.count/execute", {"params": {"by": 0}})
    assert (status, answer["error"]["code"]) == (422, "NOTHING_TO_COUNT")


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "text"),
    [
        ("GET", "/nothing", None, 404, "openapi.json"),
        ("GET", "/skills/nothing", None, 404, "unknown skill"),
        ("GET", "/skills/bench.echo_txt", None, 404, "bench.echo_text"),
        ("GET", "/skills/", None, 404, "openapi.json"),
        ("GET", "/skills/validate", None, 405, ""),
        ("DELETE", "/skills", None, 405, ""),
        ("GET", "/skills?indent=x", None, 400, "intent"),
        ("GET", "/skills?intent=a&intent=b", None, 400, "once"),
        ("POST", "/skills/validate", b"{", 400, "JSON"),
        ("POST", "/skills/validate", b"", 400, "JSON"),
        ("POST", "/skills/validate", b"null", 422, "object"),
        ("POST", "/skills/bench.echo_text/execute", b'{"params": {"text": NaN}}', 400, "NaN"),
        ("POST", "/skills/bench.echo_text/execute", {"params": None}, 422, "params"),
        ("POST", "/skills/validate", b'{"skill_id": "a", "skill_id": "b", "params": {}}', 400, "twice"),
        ("POST", "/skills/validate", b"[]", 422, "object"),
        ("POST", "/skills/validate", {"skill_id": "bench.echo_text"}, 422, "params"),
        ("POST", "/skills/validate", {"skill_id": "nothing", "params": {}}, 404, "unknown skill"),
        ("POST", "/skills/validate", {"skill_id": "bench.echo_text", "parms": {}, "params": {}}, 422, "parms"),
        ("POST", "/skills/nothing/execute", {}, 404, "unknown skill"),
        ("POST", "/skills/bench.echo_text/execute", {"params": {"text": 1}}, 422, "text"),
        ("POST", "/skills/bench.echo_text/execute", {"params": {}, "timeout_s": 1e9}, 422, "timeout_s"),
        ("POST", "/skills/bench.echo_text/execute", {"params": {}, "timeout_s": 0.5}, 422, "timeout_s"),
        ("POST", "/skills/bench.echo_text/execute", {"params": {}, "version": "7"}, 404, "no version 7"),
        ("PUT", "/skills", None, 405, ""),
        ("POST", "/skills/bench.echo_text/execute", {"params": {}, "context": {"x": 1}}, 422, "x"),
        ("POST", "/skills/bench.echo_text/execute", b'{"params": {"text": "' + b"a" * 200_000 + b'"}}', 413, "100000"),
    ],
)
def test_what_is_wrong_with_a_request_is_reported_in_an_envelope(address, method, path, body, status, text):
    got, answer, _ = ask(address, method, path, body)
    assert got == status
    assert failed(answer, text)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 421),
        ({"Host": "127.0.0.1.evil.example"}, 421),
        ({"Host": "localhost:1"}, 200),
        ({"Host": "[::1]:80"}, 200),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://localhost:3000"}, 200),
    ],
)
def test_a_page_in_a_browser_cannot_reach_the_server(address, headers, status):
    """DNS rebinding: the page's own name stands in Host; otherwise it stands in Origin."""
    assert ask(address, "GET", "/healthz", headers=headers)[0] == status


def test_a_body_must_be_declared_as_json(address):
    body = {"skill_id": "bench.echo_text", "params": {}}
    for kind in ("text/plain", "application/x-www-form-urlencoded", "application/json; charset=latin-1"):
        assert ask(address, "POST", "/skills/validate", body, {"Content-Type": kind})[0] == 415
    assert (
        ask(address, "POST", "/skills/validate", body, {"Content-Type": 'application/json; charset="UTF-8"'})[0] == 200
    )


def test_a_body_in_pieces_is_bounded_too(address):
    url = urlsplit(address)
    with socket.create_connection((url.hostname, url.port), timeout=WATCHDOG_S) as connection:
        head = f"POST /skills/validate HTTP/1.1\r\nHost: {url.netloc}\r\nContent-Type: application/json\r\n"
        connection.sendall(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode())
        for _ in range(2):
            connection.sendall(b"EA60\r\n" + b"x" * 60_000 + b"\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.1 413")


def test_a_call_that_takes_too_long_is_killed(address, tmp_path):
    body = {"params": {"pids": str(tmp_path / "pids"), "seconds": 600}, "timeout_s": 1}
    status, answer, _ = ask(address, "POST", "/skills/bench.wait/execute", body)
    assert (status, answer["error"]["code"]) == (504, "TIMEOUT")


IMPATIENT = (
    "from skillpack.__main__ import main; from skillpack.hosts import listening as c; c.REQUEST_SECONDS = 1; main()"
)


def test_a_client_that_does_not_finish_its_request_loses_its_place(pack_dir):
    """Be it the first request of a connection or a later one."""
    server = [sys.executable, "-c", IMPATIENT, "http", "--skills-dir", str(pack_dir), "--port", "0"]
    with subprocess.Popen(server, stderr=subprocess.PIPE, text=True) as process, contextlib.ExitStack() as stack:
        stack.callback(process.kill)
        url = urlsplit(process.stderr.readline().split()[-1])
        place = (url.hostname, url.port)
        silent, begun, served = (
            stack.enter_context(socket.create_connection(place, timeout=WATCHDOG_S)) for _ in range(3)
        )
        begun.sendall(b"GET /healthz HTTP/1.1\r\nHost:")
        served.sendall(f"GET /healthz HTTP/1.1\r\nHost: {url.netloc}\r\n\r\n".encode())
        answer = b""
        while b'"ok"' not in answer:
            answer += served.recv(1000)
        served.sendall(b"GET")
        assert [silent.recv(1), begun.recv(1), served.recv(1)] == [b"", b"", b""]


def test_connections_that_send_nothing_leave_room_for_others(pack_dir):
    """Six hundred of them, with a server that waits for hours: the ones that have waited longest are closed."""
    patient = IMPATIENT.replace("REQUEST_SECONDS = 1", "REQUEST_SECONDS = 9999")
    server = [sys.executable, "-c", patient, "http", "--skills-dir", str(pack_dir), "--port", "0"]
    with subprocess.Popen(server, stderr=subprocess.PIPE, text=True) as process, contextlib.ExitStack() as stack:
        stack.callback(process.kill)
        address = process.stderr.readline().split()[-1]
        url = urlsplit(address)
        silent = []
        for _ in range(600):
            silent.append(stack.enter_context(socket.create_connection((url.hostname, url.port), timeout=WATCHDOG_S)))
            silent[-1].sendall(b"GET /healthz HTTP/1.1\r\nX-Slow:")
        with contextlib.suppress(ConnectionResetError):
            assert silent[0].recv(1) == b""
        assert ask(address, "GET", "/healthz")[:2] == (200, {"status": "ok"})
        silent[-1].setblocking(False)
        with pytest.raises(BlockingIOError):
            silent[-1].recv(1)


@needs_proc
def test_a_client_that_leaves_has_its_call_killed(address, tmp_path, tools_of_the_trade):
    url, pids = urlsplit(address), tmp_path / "pids"
    body = json.dumps({"params": {"pids": str(pids), "seconds": 600}}).encode()
    with socket.create_connection((url.hostname, url.port)) as connection:
        head = f"POST /skills/bench.wait/execute HTTP/1.1\r\nHost: {url.netloc}\r\nContent-Type: application/json\r\n"
        connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        assert tools_of_the_trade.eventually(lambda: pids.exists() and len(pids.read_text().split()) == 2)
    alive = [int(pid) for pid in pids.read_text().split()]
    assert tools_of_the_trade.eventually(lambda: not any(map(tools_of_the_trade.is_alive, alive)))


@needs_proc
def test_a_server_that_is_killed_takes_its_calls_with_it(pack_dir, tmp_path, tools_of_the_trade):
    pids = tmp_path / "pids"
    with tools_of_the_trade.running("http", "--skills-dir", pack_dir) as (process, address):
        url = urlsplit(address)
        body = json.dumps({"params": {"pids": str(pids), "seconds": 600}}).encode()
        with socket.create_connection((url.hostname, url.port)) as connection:
            head = f"POST /skills/bench.wait/execute HTTP/1.1\r\nHost: {url.netloc}\r\n"
            head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
            connection.sendall(head.encode() + body)
            assert tools_of_the_trade.eventually(lambda: pids.exists() and len(pids.read_text().split()) == 2)
            process.kill()
            worker, _ = map(int, pids.read_text().split())
            assert tools_of_the_trade.eventually(lambda: not tools_of_the_trade.is_alive(worker))


def test_calls_run_side_by_side(address, tmp_path, tools_of_the_trade):
    """A long call holds up neither a short one nor a question."""
    answers, pids, enough = [], tmp_path / "pids", tmp_path / "enough"

    def long():
        body = {"params": {"pids": str(pids), "until": str(enough)}}
        answers.append(ask(address, "POST", "/skills/bench.wait/execute", body)[0])

    thread = threading.Thread(target=long)
    thread.start()
    assert tools_of_the_trade.eventually(pids.exists)
    assert ask(address, "POST", "/skills/bench.echo_text/execute", {"params": {"text": "a"}})[0] == 200
    assert ask(address, "GET", "/healthz")[0] == 200
    assert answers == []
    enough.touch()
    thread.join()
    assert answers == [200]


def test_health_says_that_the_server_is_up_and_nothing_more(address):
    assert ask(address, "GET", "/healthz")[:2] == (200, {"status": "ok"})


def test_the_openapi_document_is_right_and_types_every_call(address):
    validator = pytest.importorskip("openapi_spec_validator", reason="skipped: needs openapi-spec-validator")
    status, document, _ = ask(address, "GET", "/openapi.json")
    assert status == 200
    assert document["openapi"] == "3.1.0"
    validator.validate(document)


def test_all_faults_of_a_body_are_reported_at_once_in_an_envelope(address):
    """FastAPI's refusal in the form and the words of a tool's own."""
    body = {"parms": {}, "timeout_s": "1", "version": None, "context": {"memory": 1, "memory_summary": 2}}
    status, answer, _ = ask(address, "POST", "/skills/bench.echo_text/execute", body)
    assert (status, answer["error"]["code"]) == (422, "INVALID_PARAM")
    paths = [fault["path"] for fault in answer["error"]["details"]["errors"]]
    assert paths == ["context.memory", "context.memory_summary", "parms", "timeout_s", "version"]
    assert "did you mean 'params'?" in answer["error"]["message"]


def test_the_head_of_every_page_can_be_requested(address):
    for path in ("/skills", "/skills/bench.echo_text", "/healthz", "/openapi.json", "/docs"):
        request = urllib.request.Request(address + path, method="HEAD")  # noqa: S310
        with urllib.request.urlopen(request, timeout=WATCHDOG_S) as answer:  # noqa: S310
            assert (answer.status, answer.read()) == (200, b"")


def test_a_path_refuses_other_methods_and_names_its_own(address):
    assert ask(address, "GET", "/skills/validate")[2]["allow"] == "POST"
    assert ask(address, "DELETE", "/skills/validate")[2]["allow"] == "POST"


def test_the_docs_page_shows_every_operation_without_a_network(address, browser):
    """No script, style or font from elsewhere; its content security policy allows the page's own."""
    browser.visit(f"{address}/docs")
    for path, methods in ask(address, "GET", "/openapi.json")[1]["paths"].items():
        for method in methods:
            browser.wait(f"document.documentElement.outerHTML.includes('<code>{method.upper()} {path}</code>')")
    assert browser.problems == []
    assert {url.startswith(address) for url in browser.requests} == {True}


def test_the_docs_page_needs_no_token_and_says_nothing_of_the_pack(pack_dir, tmp_path, tools_of_the_trade):
    file = tmp_path / "token"
    file.write_text(TOKEN)
    with tools_of_the_trade.running("http", "--skills-dir", pack_dir, "--token-file", file) as (_, address):
        with urllib.request.urlopen(f"{address}/docs", timeout=WATCHDOG_S) as answer:  # noqa: S310
            page, policy = answer.read().decode(), answer.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; connect-src 'self'; script-src 'sha256-")
        assert "unsafe" not in policy
        assert "://" not in page
        assert "color-scheme: light dark" in page  # form fields and text are readable in both
        assert "bench" not in page
        assert ask(address, "GET", "/openapi.json")[0] == 401


def test_a_token_is_required_where_one_is_set(pack_dir, tmp_path, tools_of_the_trade):
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    arguments = ("http", "--skills-dir", pack_dir, "--token-file", file, "--host", "0.0.0.0")  # noqa: S104
    with tools_of_the_trade.running(*arguments) as (_, address):
        here = address.replace("0.0.0.0", "127.0.0.1")  # noqa: S104
        assert ask(here, "GET", "/healthz")[0] == 200
        status, answer, headers = ask(here, "GET", "/skills")
        assert (status, headers["www-authenticate"]) == (401, 'Bearer realm="skillpack"')
        assert failed(answer)
        for wrong in ("Bearer wrong", f"Basic {TOKEN}", TOKEN, f"Bearer {TOKEN}x"):
            assert ask(here, "GET", "/skills", headers={"Authorization": wrong})[0] == 401
        bearing = {"Authorization": f"Bearer {TOKEN}"}
        assert ask(here, "GET", "/skills", headers=bearing)[0] == 200
        body = {"params": {"text": "x"}}
        status, answer, _ = ask(here, "POST", "/skills/bench.echo_text/execute", body, bearing)
        assert (status, answer["ok"]) == (200, True)
        assert ask(here, "GET", "/openapi.json", headers=bearing)[1]["security"] == [{"token": []}]


@needs_proc
@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGHUP])
def test_a_server_that_is_stopped_lets_a_short_call_finish_and_leaves_no_tool_behind(
    pack_dir, tmp_path, tools_of_the_trade, ending
):
    with tools_of_the_trade.running("http", "--skills-dir", pack_dir) as (process, address):
        answers, pids = [], tmp_path / "pids"

        def call():
            body = {"params": {"pids": str(pids), "seconds": 1}}
            answers.append(ask(address, "POST", "/skills/bench.wait/execute", body)[0])

        thread = threading.Thread(target=call)
        thread.start()
        assert tools_of_the_trade.eventually(lambda: pids.exists() and len(pids.read_text().split()) == 2)
        alive = [int(pid) for pid in pids.read_text().split()]
        process.send_signal(ending)
        thread.join(WATCHDOG_S)
        assert answers == [200]
        process.wait(WATCHDOG_S)
        assert tools_of_the_trade.eventually(lambda: not any(map(tools_of_the_trade.is_alive, alive)))


@needs_proc
def test_a_call_that_a_stopped_server_has_to_kill_is_answered_by_an_envelope(pack_dir, tmp_path, tools_of_the_trade):
    with tools_of_the_trade.running("http", "--skills-dir", pack_dir) as (process, address):
        answers, pids = [], tmp_path / "pids"

        def call():
            body = {"params": {"pids": str(pids), "seconds": 600}}
            answers.append(ask(address, "POST", "/skills/bench.wait/execute", body))

        thread = threading.Thread(target=call)
        thread.start()
        assert tools_of_the_trade.eventually(lambda: pids.exists() and len(pids.read_text().split()) == 2)
        alive = [int(pid) for pid in pids.read_text().split()]
        process.send_signal(signal.SIGTERM)
        thread.join(WATCHDOG_S)
        status, answer, _ = answers[0]
        assert (status, answer["error"]["code"]) == (503, "SERVICE_UNAVAILABLE")
        assert failed(answer, "stopped")
        assert "Traceback" not in process.stderr.read()
        assert tools_of_the_trade.eventually(lambda: not any(map(tools_of_the_trade.is_alive, alive)))


@pytest.mark.parametrize("token", ["short", "with a blank in the middle", "ünïcödé-token-that-is-long"])
def test_a_token_that_is_none_is_refused(pack_dir, token):
    done = run_server_command("http", "--skills-dir", pack_dir, "--port", "0", SKILLPACK_TOKEN=token)
    assert done.returncode == 2
    assert "16 ASCII characters" in done.stderr
    assert token not in done.stderr
