"""Send one request to one model over an OpenAI-compatible HTTP service, within a fixed time.

Which models to use, where and for how long is read from the tool's declaration and the environment:

=============================  ===========================================================================
``SKILL_MODEL_URL``            base of an OpenAI-compatible service, such as ``http://localhost:11434/v1``
``SKILL_MODEL_KEY``            its key, if it requires one
``SKILL_MODEL_PRIMARY``        name of the first model; default: ``models.primary`` in skill.yaml
``SKILL_MODEL_FALLBACK``       name of the model if the first fails; default: ``models.fallback``
``SKILL_MODEL_FALLBACK_URL``   another service for the fallback, with ``SKILL_MODEL_FALLBACK_KEY``
``SKILL_MODEL_DEADLINE_S``     maximum time for all attempts together, default 60 [s]
=============================  ===========================================================================

Without ``SKILL_MODEL_URL`` no model is configured. Keys never appear in messages, logs or envelopes.

Redirects are not followed, since the key would be sent along. Compressed answers are not unpacked, since they can be
bombs. At most ``MAX_ANSWER_BYTES`` of an answer are read.
"""

from __future__ import annotations

import os
import threading
from concurrent import futures
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from sturdy.strict_json import NotJsonError, parse_json

from .envelope import ErrorCode, SkillError
from .install import missing_library

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import httpx


DEFAULT_DEADLINE_S = 60.0
MIN_SECRET = 8  # characters


@dataclass(frozen=True)
class ModelEndpoint:
    """One model at one service.

    Attributes:
        model: Its name.
        url: Base URL of the service.
        key: Key for the service, or "".
    """

    model: str
    url: str
    key: str = field(default="", repr=False)

    def without_key(self, text: str) -> str:
        """Return ``text`` with the key replaced; a key as short as ``none`` is a placeholder, not a secret."""
        return text.replace(self.key, "***") if len(self.key) >= MIN_SECRET else text


@dataclass(frozen=True)
class ModelSettings:
    """The models in order, and the time for all attempts.

    Attributes:
        endpoints: Primary, then fallback if there is one.
        deadline_s: Maximum time for all attempts together. [s]
    """

    endpoints: tuple[ModelEndpoint, ...]
    deadline_s: float = DEFAULT_DEADLINE_S


def model_settings(declared: Mapping[str, str], environment: Mapping[str, str] | None = None) -> ModelSettings | None:
    """Return the settings of a tool, or None when no model is configured.

    Args:
        declared: ``models`` of the tool's entry in skill.yaml: primary, fallback.
        environment: The environment variables; default: those of this process.

    Raises:
        SkillError: SERVICE_UNAVAILABLE if the configuration cannot work.
    """
    values = os.environ if environment is None else environment
    url = values.get("SKILL_MODEL_URL", "").strip()
    if not url:
        return None
    primary = values.get("SKILL_MODEL_PRIMARY") or declared.get("primary", "")
    fallback = values.get("SKILL_MODEL_FALLBACK") or declared.get("fallback", "")
    if not primary:
        raise _unusable("SKILL_MODEL_URL is set, but no model is named; set SKILL_MODEL_PRIMARY")
    endpoints = [
        ModelEndpoint(_checked_name(primary), _checked_url("SKILL_MODEL_URL", url), _key("SKILL_MODEL_KEY", values))
    ]
    if fallback:
        other = values.get("SKILL_MODEL_FALLBACK_URL", "").strip()
        key = _key("SKILL_MODEL_FALLBACK_KEY", values)
        same = not other
        endpoints.append(
            ModelEndpoint(
                _checked_name(fallback),
                _checked_url("SKILL_MODEL_FALLBACK_URL", other or url),
                key or (endpoints[0].key if same else ""),
            )
        )
    return ModelSettings(tuple(endpoints), _deadline(values.get("SKILL_MODEL_DEADLINE_S", "")))


def _checked_url(variable: str, url: str) -> str:
    """Return a base URL without its last slash."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        raise _unusable(f"{variable} is not a URL such as https://host/v1") from None
    if not usable:
        raise _unusable(f"{variable} is not a URL such as https://host/v1")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise _unusable(f"{variable} must be a plain base URL; a key belongs in SKILL_MODEL_KEY")
    return url.rstrip("/")


def _checked_name(model: str) -> str:
    """Return the name of a model, which must be text that can be sent."""
    if not model.isprintable():
        raise _unusable(f"the model's name {model!r} holds a character that cannot be sent")
    return model


def _key(variable: str, values: Mapping[str, str]) -> str:
    """Return a key without blanks around it."""
    key = values.get(variable, "").strip()
    if not (key.isascii() and key.isprintable()):
        raise _unusable(f"{variable} holds a character that no key has, such as a line break")
    return key


def _deadline(text: str) -> float:
    """Return the deadline in seconds."""
    try:
        seconds = float(text) if text.strip() else DEFAULT_DEADLINE_S
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= 3600:
        raise _unusable(f"SKILL_MODEL_DEADLINE_S must be a number of seconds up to 3600, got {text!r}")
    return seconds


def _unusable(message: str) -> SkillError:
    return SkillError(ErrorCode.SERVICE_UNAVAILABLE, message)


MAX_ANSWER_BYTES = 2 << 20
CONNECT_SECONDS = 10.0
MAX_QUOTED = 200  # characters quoted from a service's error message
_WORTH_A_RETRY = (408, 409, 425, 429, 500, 502, 503, 504)


class ModelFaultError(Exception):
    """A request to a model failed, or its answer is not usable.

    Attributes:
        kind: unreachable, timeout, status, redirect, too_large, broken, no_answer or cut_off.
        retry: Whether repeating the request may help.
        wait_s: How long to wait before, as the service states. [s]
    """

    def __init__(self, kind: str, message: str, *, retry: bool = False, wait_s: float = 0.0) -> None:
        super().__init__(message)
        self.kind = kind
        self.retry = retry
        self.wait_s = wait_s


def complete(endpoint: ModelEndpoint, messages: Sequence[Mapping[str, str]], seconds: float) -> str:
    """Return a model's answer to ``messages``.

    Args:
        endpoint: The model.
        messages: ``{"role", "content"}`` each.
        seconds: Maximum duration, from the first look-up to the last byte. [s]

    Raises:
        ModelFaultError: If there is no answer.
        SkillError: SERVICE_UNAVAILABLE if httpx is not installed.
    """
    try:
        import httpx
    except ImportError as error:
        raise missing_library("httpx", "model calls") from error
    try:
        return _within(seconds, lambda: _request(endpoint, messages, seconds))
    except (futures.TimeoutError, httpx.TimeoutException) as error:
        raise ModelFaultError("timeout", f"no answer within {seconds:.1f} s") from error
    except (httpx.ConnectError, httpx.UnsupportedProtocol, httpx.InvalidURL, UnicodeError) as error:  # Unicode: a host
        raise ModelFaultError("unreachable", f"{_host(endpoint.url)} cannot be reached", retry=True) from error
    except httpx.HTTPError as error:
        reason = endpoint.without_key(str(error) or type(error).__name__)
        raise ModelFaultError("broken", f"the connection broke: {reason[:MAX_QUOTED]}", retry=True) from error


def _within(seconds: float, work: Callable[[], str]) -> str:
    """Return what ``work`` returns.

    It is done in a thread, which is left behind after ``seconds``: a look-up of a host name cannot be interrupted, and
    a service may send so slowly that no read takes too long.
    """
    answer: futures.Future[str] = futures.Future()

    def run() -> None:
        try:
            answer.set_result(work())
        except BaseException as error:  # noqa: BLE001 - raised again for the caller
            answer.set_exception(error)

    thread = threading.Thread(target=run, name="model request", daemon=True)
    thread.start()
    futures.wait([answer], seconds)
    if answer.done():
        thread.join()  # a process that has a thread after a call is not used again
    return answer.result(0)


def _request(endpoint: ModelEndpoint, messages: Sequence[Mapping[str, str]], seconds: float) -> str:
    """Send the request and return the answer's text."""
    import httpx

    headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
    if endpoint.key:
        headers["Authorization"] = f"Bearer {endpoint.key}"
    body = {"model": endpoint.model, "messages": list(messages), "temperature": 0, "stream": False}
    limits = httpx.Timeout(seconds, connect=min(CONNECT_SECONDS, seconds))
    with (
        _client(limits) as client,
        client.stream("POST", f"{endpoint.url}/chat/completions", json=body, headers=headers) as response,
    ):
        content = _content(response)
    _check_status(endpoint, response, content)
    return _answer_text(endpoint, content)


def _client(limits: httpx.Timeout) -> httpx.Client:
    """Return a client that uses the proxy and the certificates that the environment names."""
    import httpx

    try:
        return httpx.Client(timeout=limits, follow_redirects=False)
    except (OSError, ValueError, ImportError) as error:
        text = "what SSL_CERT_FILE, SSL_CERT_DIR, HTTPS_PROXY or HTTP_PROXY names cannot be used"
        raise ModelFaultError("unreachable", f"{text} ({type(error).__name__})") from error


def _content(response: httpx.Response) -> bytes:
    """Return the body of a response, within bounds."""
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        raise ModelFaultError("broken", "the answer is compressed although that was not requested")
    content = b""
    for chunk in response.iter_raw():
        content += chunk
        if len(content) > MAX_ANSWER_BYTES:
            raise ModelFaultError("too_large", f"the answer is longer than the {MAX_ANSWER_BYTES} bytes allowed")
    return content


def _check_status(endpoint: ModelEndpoint, response: httpx.Response, content: bytes) -> None:
    """Raise the fault that an HTTP status other than success means."""
    status = response.status_code
    if 200 <= status < 300:
        return
    if 300 <= status < 400:
        target = _host(response.headers.get("location", "")) or "another place"
        raise ModelFaultError("redirect", f"HTTP {status} redirects to {target}, which is not followed; set its URL")
    said = _quoted(endpoint, content.decode("utf-8", "replace"))
    text = f"HTTP {status}{said}"
    raise ModelFaultError(
        "status", text, retry=status in _WORTH_A_RETRY, wait_s=_wait(response.headers.get("retry-after", ""))
    )


def _quoted(endpoint: ModelEndpoint, said: object) -> str:
    """Return a service's text as the end of a message; empty if it is not text."""
    text = " ".join(said.split()) if isinstance(said, str) else ""
    return f": {endpoint.without_key(text)[:MAX_QUOTED]}" if text else ""


def _answer_text(endpoint: ModelEndpoint, content: bytes) -> str:
    """Return the text of the first choice of a chat completion."""
    try:
        answer = parse_json(content, limit=MAX_ANSWER_BYTES)
    except NotJsonError as error:
        raise ModelFaultError("broken", f"the service's answer {error}", retry=True) from error
    try:
        choice = answer["choices"][0]
        message = choice["message"]
        text = message["content"]
    except (KeyError, IndexError, TypeError) as error:
        failure = answer.get("error") if isinstance(answer, dict) else None
        said = _quoted(endpoint, failure.get("message") if isinstance(failure, dict) else failure)
        raise ModelFaultError("no_answer", f"the service's answer has no choices[0].message.content{said}") from error
    if choice.get("finish_reason") == "length":
        raise ModelFaultError("cut_off", "the answer was cut off at the service's length limit")
    if isinstance(text, list):
        parts = [part.get("text") for part in text if isinstance(part, dict)]
        text = "".join(part for part in parts if isinstance(part, str))
    if not isinstance(text, str) or not text.strip():
        said = _quoted(endpoint, message.get("refusal"))
        raise ModelFaultError("no_answer", f"the model answered nothing{said}")
    return text


def _wait(text: str) -> float:
    """Return the seconds that a Retry-After header states; 0 if it does not state a number."""
    try:
        seconds = float(text)
    except ValueError:
        return 0.0
    return seconds if 0 <= seconds < 3600 else 0.0


def _host(url: str) -> str:
    """Return scheme and host of a URL; a message may not show more of it."""
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return ""
    return f"{parts.scheme}://{parts.hostname}{port}" if parts.hostname else ""
