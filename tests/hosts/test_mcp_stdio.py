"""The stdio session answers as the SDK's server does, in both eras of the protocol, and starts without the SDK."""

import io
import json
import re
import signal
import threading

import anyio
import pytest

from extras import extra
from patience import WATCHDOG_S, eventually

extra("mcp", reason="skipped: needs the extra mcp")

pytestmark = pytest.mark.anyio
CLIENT = {"name": "test", "version": "1"}
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": CLIENT}
VERSION, CAPABILITIES, INFO = (
    f"io.modelcontextprotocol/{key}" for key in ("protocolVersion", "clientCapabilities", "clientInfo")
)
ENVELOPE = {VERSION: "2026-07-28", CAPABILITIES: {}, INFO: CLIENT}
# method and parameters; each is sent in a session of either era
REQUESTS = [
    ("ping", {}),
    ("server/discover", {}),
    ("tools/list", {}),
    ("tools/list", {"cursor": None}),
    ("tools/list", {"cursor": 5}),
    ("tools/list", {"_meta": 5}),
    ("tools/list", {"_meta": []}),
    ("tools/list", {"_meta": None}),
    ("tools/call", {"name": "bench_echo_text", "arguments": {"text": "ä 😀"}}),
    ("tools/call", {"name": "bench.echo_text@1.0.0", "arguments": {"text": "a"}, "unknown": 1}),
    ("tools/call", {"name": "bench_echo_text", "arguments": {"text": "a", "volume": 11}}),
    ("tools/call", {"name": "bench_echo_text"}),
    ("tools/call", {"name": "bench_echo_text", "arguments": None}),
    ("tools/call", {"name": "bench_echo_text", "arguments": ["a"]}),
    ("tools/call", {"name": "bench_crash", "arguments": {}}),
    ("tools/call", {"name": "no_such_tool", "arguments": {}}),
    ("tools/call", {"name": "skill_request", "arguments": {"name": "bench"}}),
    ("tools/call", {"name": "skill_read", "arguments": {"name": "bench", "path": "references/dot.png"}}),
    ("tools/call", {"name": "skill_search", "arguments": {"words": "x"}}),
    ("tools/call", {"name": 5}),
    ("tools/call", {}),
    ("resources/list", {}),
    ("resources/list", {"cursor": "not base64!"}),
    ("resources/templates/list", {}),
    ("resources/read", {"uri": "skill://bench/SKILL.md"}),
    ("resources/read", {"uri": "skill://bench/references/dot.png"}),
    ("resources/read", {"uri": "skill://nothing/SKILL.md"}),
    ("resources/read", {"uri": 5}),
    ("resources/directory/read", {"uri": "skill://bench/references"}),
    ("resources/directory/read", {}),
    ("skills/list", {}),
    ("skills/get", {"uri": "skill://bench/SKILL.md"}),
    ("skills/get", {"uri": "skill://nothing"}),
    ("skills/get", {}),
    ("prompts/list", {}),
    ("resources/subscribe", {"uri": "skill://bench/SKILL.md"}),
    ("subscriptions/unknown", {}),
    ("no/such/method", {}),
]


def request(number, method, params=None, **meta):
    fields = {} if params is None else {"params": params}
    if meta:
        fields = {"params": {**(params or {}), "_meta": meta}}
    return {"jsonrpc": "2.0", "id": number, "method": method, **fields}


def notification(method, params=None):
    return {"jsonrpc": "2.0", "method": method, **({} if params is None else {"params": params})}


def numbered(requests, **meta):
    """Return the requests with ids and, except where the parameters have one, this ``_meta``."""
    return [
        request(index, name, {"_meta": meta, **params} if meta else params)
        for index, (name, params) in enumerate(requests)
    ]


ALTERED = [
    {},
    {VERSION: "2026-07-28"},
    {**ENVELOPE, VERSION: "2027-01-01"},
    {**ENVELOPE, VERSION: 5},
    {**ENVELOPE, CAPABILITIES: 5},
    {**ENVELOPE, INFO: 5},
    {**ENVELOPE, "progressToken": 1.5},
    {VERSION: "2026-07-28", CAPABILITIES: {}},
]
HELLOS = [
    {},
    {**HELLO, "protocolVersion": 5},
    {**HELLO, "protocolVersion": "1999-01-01"},
    {**HELLO, "protocolVersion": "2026-07-28"},
    {**HELLO, "capabilities": []},
    {**HELLO, "clientInfo": {"name": "a"}},
    {**HELLO, "_meta": ENVELOPE},
]
OPENING = [request("open", "initialize", HELLO), notification("notifications/initialized")]
CONVERSATIONS = {
    "handshake": [*OPENING, *numbered(REQUESTS)],
    "modern": [*numbered(REQUESTS, **ENVELOPE), request("late", "initialize", HELLO), request("bare", "tools/list")],
    "odd ids": [
        *OPENING,
        *(request(number, "ping") for number in ("--5", "9" * 5000, "007", "", " 1 ", "\u0661", -1, 10**30)),
    ],
    "odd cancellations": [
        *OPENING,
        *(notification("notifications/cancelled", {"requestId": one}) for one in ("--5", "9" * 5000, None, [1], 7)),
        request("after", "ping"),
    ],
    "before initialize": [*numbered(REQUESTS[:4]), *OPENING, request("after", "ping")],
    "initialized first": [OPENING[1], request("list", "resources/list", {})],
    "hellos": [request(index, "initialize", hello) for index, hello in enumerate(HELLOS)],
    "envelopes": [
        request("open", "server/discover", {"_meta": ENVELOPE}),
        *(request(index, "tools/call", {"name": "none", "_meta": meta}) for index, meta in enumerate(ALTERED)),
    ],
    "an envelope after the handshake": [*OPENING, request(1, "tools/list", {"_meta": ENVELOPE})],
    **{
        version: [request("a", "initialize", {**HELLO, "protocolVersion": version}), *numbered(REQUESTS[2:7])]
        for version in ("2024-11-05", "2025-03-26", "2025-06-18")
    },
}


def comparable(answer):
    """Return an answer without what may differ: the duration of a call and the wording of an error."""
    if "error" in answer:
        return {**answer, "error": {key: value for key, value in answer["error"].items() if key != "message"}}
    text = json.dumps(answer, sort_keys=True)
    return json.loads(re.sub(r'(duration_ms\\*": )\d+', r"\g<1>0", text))


class Lines:
    """A stream that gives the lines of an iterator."""

    def __init__(self, lines):
        self._lines = iter(lines)

    def readline(self, _):
        return next(self._lines, b"")


def session_answers(server, messages):
    """Return what the session writes; each request waits for its answer."""
    from skillpack.hosts.mcp.stdio_session import StdioSession

    answers = io.BytesIO()

    def lines():
        for message in messages:
            yield json.dumps(message).encode() + b"\n"
            if "id" in message:
                assert eventually(lambda wanted=message["id"]: any(answer["id"] == wanted for answer in written()))

    def written():
        return [json.loads(line) for line in answers.getvalue().splitlines()]

    session = StdioSession(server, Lines(lines()), answers)
    session.serve()
    assert session.end()
    return written()


async def sdk_answers(server, messages):
    """Return what the SDK's server writes to the same messages."""
    to_server, from_client = anyio.create_memory_object_stream(0)
    to_client, from_server = anyio.create_memory_object_stream(0)
    found = []
    import mcp_types as types
    from mcp.shared.message import SessionMessage

    from skillpack.hosts.mcp.sdk_server import sdk_server

    sdk = sdk_server(server)
    async with anyio.create_task_group() as group:
        group.start_soon(sdk.run, from_client, to_client, sdk.create_initialization_options())
        with anyio.fail_after(WATCHDOG_S):
            for message in messages:
                await to_server.send(SessionMessage(types.jsonrpc_message_adapter.validate_python(message)))
                while "id" in message and not any(answer["id"] == message["id"] for answer in found):
                    item = await from_server.receive()
                    found.append(json.loads(item.message.model_dump_json(by_alias=True, exclude_unset=True)))
        group.cancel_scope.cancel()
    return found


@pytest.fixture(scope="module")
def server(pack_dir):
    from skillpack.hosts.calls import Calls
    from skillpack.hosts.mcp.pack_server import PackServer
    from skillpack.hosts.pack import Pack

    with Pack([pack_dir], timeout=WATCHDOG_S) as opened:
        opened.max_upload = 100_000
        yield PackServer(opened, Calls(opened.max_workers))


@pytest.mark.parametrize("title", CONVERSATIONS)
async def test_the_session_answers_as_the_sdk_does(server, title):
    messages = CONVERSATIONS[title]
    ours = await anyio.to_thread.run_sync(session_answers, server, messages)
    theirs = await sdk_answers(server, messages)
    assert [*map(comparable, ours)] == [*map(comparable, theirs)]
    assert all(answer["error"]["message"] for answer in ours if "error" in answer)


@pytest.mark.parametrize("ids", [["long"], ["7", 7]], ids=["one", "two with the same id"])
def test_a_request_that_runs_when_the_input_ends_is_answered_with_an_error(server, tmp_path, ids):
    from skillpack.hosts.mcp.stdio_session import StdioSession

    answers, pids = io.BytesIO(), [tmp_path / str(index) for index in range(len(ids))]
    arguments = [{"pids": str(path), "seconds": 600} for path in pids]
    calls = [
        request(number, "tools/call", {"name": "bench_wait", "arguments": argument})
        for number, argument in zip(ids, arguments, strict=True)
    ]

    def lines():
        for message in (*OPENING, *calls):
            yield json.dumps(message).encode() + b"\n"
        assert eventually(lambda: all(path.exists() for path in pids))

    session = StdioSession(server, Lines(lines()), answers)
    session.serve()
    assert session.end()
    ended = [json.loads(line) for line in answers.getvalue().splitlines()[1:]]
    assert sorted((str(answer["id"]), answer["error"]["code"]) for answer in ended) == [
        (str(each), -32000) for each in ids
    ]


def test_a_client_that_reads_nothing_does_not_keep_the_server_from_ending(server, monkeypatch):
    from skillpack.hosts.mcp import stdio_session

    monkeypatch.setattr(stdio_session, "END_SECONDS", 0.1)
    read = threading.Event()

    class Full(io.BytesIO):
        def write(self, text):
            return super().write(text) if b'"open"' in text or read.wait(WATCHDOG_S) else 0

    answers = Full()
    reading = [request(number, "resources/read", {"uri": "skill://bench/SKILL.md"}) for number in range(200)]
    messages = [json.dumps(message).encode() + b"\n" for message in (*OPENING, *reading)]
    session = stdio_session.StdioSession(server, Lines(messages), answers)
    session.serve()
    assert not session.end()
    read.set()
    assert eventually(lambda: answers.getvalue().count(b"\n") == 1 + len(reading))


def test_the_longest_file_can_be_handed_over_and_no_longer_line_is_kept(server):
    from skillpack.hosts.mcp.stdio_session import StdioSession

    def lines():
        yield from (json.dumps(message).encode() + b"\n" for message in OPENING)
        for number, size in (("longest", server.pack.max_upload), ("too long", 4 * server.pack.max_upload)):
            yield json.dumps(request(number, "ping", {"text": "\0" * size})).encode() + b"\n"
        yield json.dumps(request("after", "ping")).encode()

    class Sent(io.BytesIO):
        def readline(self, size):
            line = super().readline(size)
            assert line or eventually(lambda: answers.getvalue().count(b"\n") == 4)
            return line

    answers = io.BytesIO()
    session = StdioSession(server, Sent(b"".join(lines())), answers)
    session.serve()
    assert session.end()
    written = [json.loads(line) for line in answers.getvalue().splitlines()]
    assert sorted((str(answer["id"]), "result" in answer) for answer in written) == [
        ("None", False),
        ("after", True),
        ("longest", True),
        ("open", True),
    ]
    assert "longer than" in next(answer["error"]["message"] for answer in written if "error" in answer)


def test_a_client_that_reads_nothing_is_not_listened_to_without_end(server, monkeypatch):
    from skillpack.hosts.mcp import stdio_session

    monkeypatch.setattr(stdio_session, "MAX_UNANSWERED", 100)
    unanswered, read = [], threading.Event()

    class Full(io.BytesIO):
        def write(self, text):
            return super().write(text) if b'"open"' in text or read.wait(WATCHDOG_S) else 0

    def lines():
        yield from (json.dumps(message).encode() + b"\n" for message in OPENING)
        for number in range(2000):
            unanswered.append(number + 2 - answers.getvalue().count(b"\n"))
            yield json.dumps(request(number, "ping")).encode() + b"\n"

    answers = Full()
    session = stdio_session.StdioSession(server, Lines(lines()), answers)
    serving = threading.Thread(target=session.serve)
    serving.start()
    assert eventually(lambda: len(unanswered) > 100)
    read.set()
    serving.join()
    assert session.end()
    assert max(unanswered) == 101
    assert answers.getvalue().count(b"\n") == 2001


def test_a_signal_ends_the_server_once_and_none_disturbs_its_end(monkeypatch):
    from skillpack.hosts.mcp import stdio_transport

    handlers = {}
    monkeypatch.setattr(signal, "signal", handlers.__setitem__)
    with stdio_transport._stopping_on_signals():
        assert signal.SIG_IGN not in handlers.values()
        with pytest.raises(stdio_transport._StoppedError):
            handlers[signal.SIGTERM](signal.SIGTERM, None)
        assert set(handlers.values()) == {signal.SIG_IGN}
        handlers.clear()
    assert handlers[signal.SIGTERM] is handlers[signal.SIGINT] is signal.SIG_IGN
