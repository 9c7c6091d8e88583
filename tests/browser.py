"""A page in headless Chromium, driven by the DevTools protocol over a pipe: keys, pointer, screenshots, messages."""

import base64
import itertools
import json
import os
import shutil
import signal
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path

from patience import eventually

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
OFFLINE = "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"
KEY_CODES = {"Enter": 13, "Escape": 27, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "Tab": 9}


class Page:
    """One tab. ``problems`` collects errors and warnings of its console, ``requests`` every URL that it asked for."""

    def __init__(self, process, write, read):
        self.process, self.write, self.read = process, write, read
        self.numbers = itertools.count(1)
        self.buffer = b""
        self.problems, self.requests = [], []
        self.loaded = 0
        self.session = None

    def send(self, method, **params):
        """Return the result of a command of the protocol."""
        number = next(self.numbers)
        message = {"id": number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive()
            if answer.get("id") == number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return answer["result"]

    def receive(self):
        while b"\0" not in self.buffer:
            piece = os.read(self.read, 1 << 16)
            assert piece, "Chromium ended"
            self.buffer += piece
        text, _, self.buffer = self.buffer.partition(b"\0")
        message = json.loads(text)
        self.note(message.get("method"), message.get("params", {}))
        return message

    def note(self, method, params):
        if method == "Runtime.exceptionThrown":
            self.problems.append(str(params["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" and params["type"] in {"error", "warning", "assert"}:
            self.problems.append(str(params["args"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] in {"error", "warning"}:
            self.problems.append(params["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif method == "Page.loadEventFired":
            self.loaded += 1

    def size(self, width, height, scale=1):
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=scale,
            mobile=width < 600,
        )

    def prefer(self, scheme):
        self.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def begin(self):
        """Reset the page to the state after the start."""
        self.send("Page.navigate", url="about:blank")
        self.size(1400, 900)
        self.prefer("light")
        self.problems.clear()
        self.requests.clear()

    def visit(self, url):
        """Open a page and wait until it is loaded, but not for what its scripts do later."""
        before = self.loaded
        self.send("Page.navigate", url=url)
        while self.loaded == before:
            self.receive()

    def open(self, path):
        """Open a file and wait until its page says that it is ready."""
        self.visit(Path(path).resolve().as_uri())
        self.wait("document.documentElement.dataset.ready === 'true'")

    def elements(self):
        """Return the text of the page as its scripts have left it."""
        return self.run("document.documentElement.outerHTML")

    def run(self, expression):
        """Return the JSON value of an expression, evaluated in the page; promises are awaited."""
        answer = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def wait(self, expression):
        assert eventually(lambda: self.run(expression)), f"never true: {expression}"

    def settle(self):
        """Wait until two frames are drawn."""
        self.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))")

    def pointer(self, kind, x, y, button="none", clicks=0):
        self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button=button, clickCount=clicks)

    def click(self, x, y):
        self.pointer("mouseMoved", x, y)
        self.pointer("mousePressed", x, y, "left", 1)
        self.pointer("mouseReleased", x, y, "left", 1)
        self.settle()

    def press(self, key):
        text = {"Enter": "\r"}.get(key, key if len(key) == 1 else "")
        code = KEY_CODES.get(key, ord(key.upper()) if len(key) == 1 else 0)
        known = {"key": key, "windowsVirtualKeyCode": code}
        self.send("Input.dispatchKeyEvent", type="keyDown", text=text, **known)
        self.send("Input.dispatchKeyEvent", type="keyUp", **known)
        self.settle()

    def screenshot(self, path, *, whole=False):
        """Write the window, or the whole page, as PNG."""
        answer = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        self._save(path, answer["data"])

    def pdf(self, path):
        """Write the printed page as PDF."""
        self._save(path, self.send("Page.printToPDF", printBackground=True, preferCSSPageSize=True)["data"])

    def _save(self, path, data):
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_bytes(base64.b64decode(data))


@contextmanager
def chromium():
    """Give a ``Page`` of a browser without network."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        to_browser, of_browser = os.pipe(), os.pipe()

        options = (
            "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
            "--remote-debugging-pipe", f"--host-resolver-rules={OFFLINE}", f"--user-data-dir={profile}", "about:blank",
        )  # fmt: skip
        ends = to_browser[0], of_browser[1]  # Chromium reads from descriptor 3 and writes to 4
        process = subprocess.Popen(
            ["/bin/bash", "-c", f'exec "$@" 3<&{ends[0]} 4>&{ends[1]}', "sh", CHROMIUM, *options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=ends,
            start_new_session=True,
        )
        os.close(to_browser[0])
        os.close(of_browser[1])
        page = Page(process, to_browser[1], of_browser[0])
        try:
            targets = page.send("Target.getTargets")["targetInfos"]
            target = next(each["targetId"] for each in targets if each["type"] == "page")
            page.session = page.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
            for domain in ("Page", "Runtime", "Log", "Network"):
                page.send(f"{domain}.enable")
            page.size(1400, 900)
            yield page
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            os.close(to_browser[1])
            os.close(of_browser[0])
