"""A local HTTP service that speaks like a model's, or misbehaves in whatever way it is told to."""

import contextlib
import itertools
import json
import socketserver
import threading
import time
from dataclasses import dataclass, field


def completion(text, **choice):
    """Return the body of a chat completion whose content is ``text``."""
    message = {"role": "assistant", "content": text}
    return json.dumps({"choices": [{"index": 0, "message": message, "finish_reason": "stop", **choice}]}).encode()


def response(body, status="200 OK", **headers):
    """Return raw HTTP."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Connection: close"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + body


def says(value):
    """Answer with ``value``, as JSON unless it is text."""
    return lambda send: send(response(completion(value if isinstance(value, str) else json.dumps(value))))


def raw(data):
    return lambda send: send(data)


def fails(status, body=b"", **headers):
    return lambda send: send(response(body, status, **headers))


def hangs(_send):
    """Say nothing, for ever."""
    threading.Event().wait()


def drips(send):
    """Send an endless answer so slowly that each byte comes well within any read timeout."""
    send(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
    while True:
        send(b" ")
        time.sleep(0.05)


def drips_headers(send):
    """Send headers without an end."""
    send(b"HTTP/1.1 200 OK\r\n")
    for index in itertools.count():
        send(f"X-{index}: y\r\n".encode())
        time.sleep(0.05)


def floods(send):
    send(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
    for _ in range(400):
        send(b"x" * 65536)


def breaks_off(send):
    send(response(completion("{}"))[:-20])


@dataclass
class Service:
    """A running service.

    Attributes:
        url: Its base URL.
        script: What it does at each request in turn; the last goes on for ever.
        requests: ``(headers, body)`` of each.
    """

    url: str
    script: list = field(default_factory=list)
    requests: list = field(default_factory=list)

    @property
    def models(self):
        return [body["model"] for _, body in self.requests]


@contextlib.contextmanager
def model_service():
    """Give a service on a free port of this machine."""

    class Handler(socketserver.StreamRequestHandler):
        def handle(self):
            lines = []
            while line := self.rfile.readline().strip():
                lines.append(line.decode())
            if not lines:
                return
            headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
            body = json.loads(self.rfile.read(int(headers["content-length"])))
            service.requests.append((headers, body))
            act = service.script[min(len(service.requests), len(service.script)) - 1]
            with contextlib.suppress(OSError):
                act(self.wfile.write)

    class Server(socketserver.ThreadingTCPServer):
        allow_reuse_address = True
        daemon_threads = True
        block_on_close = False

    with Server(("127.0.0.1", 0), Handler) as server:
        service = Service(f"http://127.0.0.1:{server.server_address[1]}/v1")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        yield service
        server.shutdown()
        thread.join()
