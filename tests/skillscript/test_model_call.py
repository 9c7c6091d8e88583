"""Structured answers from a model, against a service that misbehaves in every way (S1.3, S1.4, S1.6)."""

import asyncio
import json
import sys
import threading
import types

import pytest

from model_service import (
    breaks_off,
    completion,
    drips,
    drips_headers,
    fails,
    floods,
    hangs,
    model_service,
    raw,
    response,
    says,
)
from patience import WATCHDOG_S
from skillscript import Fault, ModelSettings, SkillError, Task, ask_model, model_settings
from skillscript.model_client import ModelEndpoint, ModelFaultError, complete

SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "required": ["pairs"],
    "properties": {
        "pairs": {"type": "array", "items": {"type": "array", "items": {"type": "string"}, "minItems": 2}},
        "note": {"type": "string", "default": ""},
    },
}
GOOD = {"pairs": [["M1", "M2"]]}
BAD = {"pairs": "M1"}
KEY = "secret-key-1234"


@pytest.fixture
def service():
    with model_service() as service:
        yield service


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch):
    monkeypatch.setattr("skillscript.model_call.PAUSE_SECONDS", 0.01)


def ask(service, *script, deadline=WATCHDOG_S, fallback=True, check=None):
    service.script[:] = script
    endpoints = [ModelEndpoint("big", service.url, KEY), ModelEndpoint("small", service.url, KEY)]
    settings = ModelSettings(tuple(endpoints if fallback else endpoints[:1]), deadline)
    return ask_model(Task("Which pairs?", SCHEMA, check, system="Answer JSON."), settings)


def refused(service, *script, **options):
    with pytest.raises(SkillError) as caught:
        ask(service, *script, **options)
    attempts = caught.value.details["attempts"]
    return caught.value, [(entry["model"], entry["outcome"]) for entry in attempts]


def outcomes(answer):
    return [(entry["model"], entry["outcome"]) for entry in answer.attempts]


def test_a_good_answer_is_taken_with_defaults_filled_in(service):
    answer = ask(service, says(GOOD))
    assert (answer.value, answer.model) == ({"pairs": [["M1", "M2"]], "note": ""}, "big")
    assert answer.attempts == [{"model": "big", "outcome": "accepted"}]
    headers, body = service.requests[0]
    assert headers["authorization"] == f"Bearer {KEY}"
    assert body["messages"] == [
        {"role": "system", "content": "Answer JSON."},
        {"role": "user", "content": "Which pairs?"},
    ]


@pytest.mark.parametrize(
    "text",
    [f"```json\n{json.dumps(GOOD)}\n```", f"```\n{json.dumps(GOOD)}\n```\n", f"\n {json.dumps(GOOD)}\n"],
)
def test_an_answer_in_a_fence_or_with_blanks_is_read(service, text):
    assert ask(service, says(text)).value["pairs"] == GOOD["pairs"]


def test_an_answer_in_parts_is_read(service):
    parts = [{"type": "text", "text": '{"pairs":'}, {"type": "text", "text": " []}"}]
    body = json.dumps({"choices": [{"message": {"content": parts}}]}).encode()
    assert ask(service, raw(response(body))).value["pairs"] == []


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        pytest.param("The pairs are M1 and M2.", "the answer is not a JSON value", id="prose"),
        pytest.param(f"Here you are: {json.dumps(GOOD)}", "the answer is not a JSON value", id="prose around JSON"),
        pytest.param('{"pairs": [["M1", "M2"]', "the answer is not a JSON value", id="truncated JSON"),
        pytest.param('{"pairs": [], "pairs": []}', "appears twice", id="a key twice"),
        pytest.param('{"pairs": NaN}', "is not a JSON number", id="NaN"),
        pytest.param({}, "Missing required param: pairs", id="lacks fields"),
        pytest.param({"answer": GOOD}, "Unknown param: answer", id="nested wrongly"),
        pytest.param({"pairs": ["M1", "M2"]}, "'pairs[0]' must be an array", id="flat where nested is wanted"),
        pytest.param([GOOD], "must be an object", id="a list around it"),
        pytest.param({"pairs": [["M1", 2]]}, "'pairs[0][1]' must be a string", id="wrong type"),
    ],
)
def test_unusable_output_is_requested_again_with_what_is_wrong(service, answer, told):
    result = ask(service, says(answer), says(GOOD))
    assert outcomes(result) == [("big", "invalid_output"), ("big", "accepted")]
    assert told in result.attempts[0]["reason"]
    messages = service.requests[1][1]["messages"]
    assert [message["role"] for message in messages] == ["system", "user", "assistant", "user"]
    assert told in messages[-1]["content"]


def test_after_one_re_ask_the_fallback_is_requested_afresh(service):
    answer = ask(service, says(BAD), says(BAD), says(GOOD))
    assert outcomes(answer) == [("big", "invalid_output"), ("big", "invalid_output"), ("small", "accepted")]
    assert answer.model == "small"
    assert service.models == ["big", "big", "small"]
    assert len(service.requests[2][1]["messages"]) == 2


def test_when_every_model_answers_nonsense_all_attempts_are_reported(service):
    error, attempts = refused(service, says(BAD))
    assert error.code == "SERVICE_UNAVAILABLE"
    assert attempts == [("big", "invalid_output")] * 2 + [("small", "invalid_output")] * 2
    assert error.details["attempts"][0]["errors"] == ["'pairs' must be an array, got string \"M1\""]


def test_a_check_beyond_the_schema_counts_as_the_schema_does(service):
    known = {"M1", "M2"}

    def check(value):
        return [
            Fault("pairs", f"there is no device {name}")
            for pair in value["pairs"]
            for name in pair
            if name not in known
        ]

    answer = ask(service, says({"pairs": [["M1", "M9"]]}), says(GOOD), check=check)
    assert outcomes(answer) == [("big", "invalid_output"), ("big", "accepted")]
    assert "pairs: there is no device M9" in service.requests[1][1]["messages"][-1]["content"]


@pytest.mark.parametrize(
    ("act", "outcome", "reason", "times"),
    [
        pytest.param(fails("500 Oops", b"stack trace"), "status", "HTTP 500: stack trace", 2, id="500"),
        pytest.param(fails("503 Busy"), "status", "HTTP 503", 2, id="503"),
        pytest.param(fails("429 Slow down", Retry_After="0.02"), "status", "HTTP 429", 2, id="429"),
        pytest.param(fails("429 Slow down", Retry_After="900"), "status", "HTTP 429", 1, id="429 for too long"),
        pytest.param(fails("401 No", f"bad key {KEY}".encode()), "status", "HTTP 401: bad key ***", 1, id="401"),
        pytest.param(fails("404 None"), "status", "HTTP 404", 1, id="404"),
        pytest.param(
            fails("302 Found", Location="http://evil.example/steal?x"),
            "redirect",
            "redirects to http://evil.example, which is not followed",
            1,
            id="redirect",
        ),
        pytest.param(raw(response(b"<html>down</html>")), "broken", "Invalid JSON format", 2, id="HTML"),
        pytest.param(raw(response(b"")), "broken", "Invalid JSON format", 2, id="empty body"),
        pytest.param(raw(response(b"\xff\xfe")), "broken", "not UTF-8", 2, id="bytes"),
        pytest.param(raw(response(b'{"choices": []}')), "no_answer", "has no choices", 1, id="no choices"),
        pytest.param(raw(response(b'{"error": "x"}')), "no_answer", "has no choices", 1, id="error with 200"),
        pytest.param(raw(response(completion(""))), "no_answer", "answered nothing", 1, id="empty content"),
        pytest.param(raw(response(completion(None))), "no_answer", "answered nothing", 1, id="null content"),
        pytest.param(
            raw(response(completion([{"type": "text", "text": None}, "x"]))), "no_answer", "nothing", 1, id="null part"
        ),
        pytest.param(
            raw(response(b'{"error": {"message": "no credit left"}}')), "no_answer", "no credit left", 1, id="200, no"
        ),
        pytest.param(
            raw(response(completion('{"pairs": [', finish_reason="length"))), "cut_off", "cut off", 1, id="length limit"
        ),
        pytest.param(breaks_off, "broken", "the connection broke", 2, id="truncated body"),
        pytest.param(raw(b""), "broken", "the connection broke", 2, id="closed without a word"),
        pytest.param(raw(b"hello\r\n\r\n"), "broken", "the connection broke", 2, id="no HTTP"),
        pytest.param(floods, "too_large", "longer than the 2097152 bytes allowed", 1, id="huge body"),
        pytest.param(raw(response(b"\x1f\x8b", Content_Encoding="gzip")), "broken", "compressed", 1, id="compressed"),
    ],
)
def test_a_service_that_fails_leads_to_the_fallback(service, act, outcome, reason, times):
    answer = ask(service, *[act] * times, says(GOOD))
    assert outcomes(answer) == [("big", outcome)] * times + [("small", "accepted")]
    assert all(reason in entry["reason"] for entry in answer.attempts[:-1]), answer.attempts
    assert KEY not in json.dumps(answer.attempts)


def test_a_fault_that_passes_does_not_change_the_model(service):
    assert outcomes(ask(service, fails("502 Bad"), says(GOOD))) == [("big", "status"), ("big", "accepted")]


@pytest.mark.parametrize("act", [hangs, drips, drips_headers])
def test_a_service_that_never_ends_its_answer_is_left(service, act):
    service.script[:] = [act]
    with pytest.raises(ModelFaultError) as caught:
        complete(ModelEndpoint("big", service.url, KEY), [{"role": "user", "content": "?"}], 0.3)
    assert (caught.value.kind, str(caught.value)) == ("timeout", "no answer within 0.3 s")


def test_a_slow_service_costs_half_of_the_time_and_then_the_fallback_is_requested(monkeypatch):
    """By a clock of the test's own, which goes on while a model is asked."""
    clock, given = types.SimpleNamespace(now=100.0), []

    def complete(endpoint, _messages, seconds):
        given.append((endpoint.model, seconds))
        if endpoint.model == "big":
            clock.now += seconds
            raise ModelFaultError("timeout", "too slow")
        return json.dumps(GOOD)

    monkeypatch.setattr("skillscript.model_call.complete", complete)
    monkeypatch.setattr("skillscript.model_call.time", types.SimpleNamespace(monotonic=lambda: clock.now))
    endpoints = (ModelEndpoint("big", "http://x", KEY), ModelEndpoint("small", "http://x", KEY))
    answer = ask_model(Task("?", SCHEMA), ModelSettings(endpoints, 2.4))
    assert outcomes(answer) == [("big", "timeout"), ("small", "accepted")]
    assert given == [("big", pytest.approx(1.2)), ("small", pytest.approx(1.2))]


@pytest.mark.parametrize("act", [hangs, drips])
def test_when_the_time_is_over_that_is_the_error(service, act):
    error, attempts = refused(service, act, deadline=1.0)
    assert error.code == "TIMEOUT"
    assert attempts in ([("big", "timeout"), ("small", "timeout")], [("big", "timeout")])  # one, if all is slow


def test_a_service_that_is_not_there_is_reported_without_its_path():
    settings = ModelSettings((ModelEndpoint("big", "http://127.0.0.1:9/secret/v1", KEY),), 5)
    with pytest.raises(SkillError) as caught:
        ask_model(Task("x", SCHEMA), settings)
    assert caught.value.code == "SERVICE_UNAVAILABLE"
    assert "http://127.0.0.1:9 cannot be reached" in caught.value.message
    assert "secret" not in caught.value.message


def test_without_a_fallback_the_one_model_has_all_the_time(service):
    error, attempts = refused(service, fails("500 Oops"), fallback=False)
    assert (error.code, attempts) == ("SERVICE_UNAVAILABLE", [("big", "status")] * 2)


def test_failed_attempts_are_logged_without_the_key(service, capsys):
    ask(service, fails("401 No", f"bad key {KEY}".encode()), says(GOOD))
    told = capsys.readouterr().err
    assert "model big: status: HTTP 401: bad key ***" in told
    assert KEY not in told


@pytest.mark.parametrize(
    "act",
    [
        pytest.param(fails("401 No", b" " * 790 + KEY.encode()), id="cut in the middle of the key"),
        pytest.param(fails("307 There", Location=f"http://{KEY}.example"), id="redirect"),
        pytest.param(
            raw(response(json.dumps({"choices": [{"message": {"content": None, "refusal": KEY}}]}).encode())),
            id="refusal",
        ),
        pytest.param(says({"pairs": KEY}), id="invalid output"),
    ],
)
def test_a_service_that_repeats_the_key_does_not_have_it_reported(service, capsys, act):
    error, _ = refused(service, act)
    told = json.dumps(error.details) + error.message + capsys.readouterr().err
    assert KEY[:8] not in told
    assert "***" in told


def test_a_placeholder_for_a_key_is_no_secret():
    assert ModelEndpoint("m", "http://x", "x").without_key("next") == "next"


def test_a_model_that_goes_on_with_empty_lines_costs_no_time(service):
    """A reader that looked through the lines again from each of them would use up the time."""
    error, attempts = refused(service, says("```json\n{" + "\n" * 900_000 + "x"), fallback=False, deadline=WATCHDOG_S)
    assert (error.code, attempts) == ("SERVICE_UNAVAILABLE", [("big", "invalid_output")] * 2)


def test_an_answer_of_a_hundred_thousand_or_endless_names_is_reported_briefly_and_soon(service):
    many, long = dict.fromkeys(map(str, range(100_000)), 1), {"k" * 1_000_000: 1}
    error, attempts = refused(service, says(many), says(long), fallback=False, deadline=WATCHDOG_S)
    assert (error.code, attempts) == ("SERVICE_UNAVAILABLE", [("big", "invalid_output")] * 2)
    assert len(json.dumps(error.details) + error.message) < 10_000


def test_a_look_up_that_hangs_costs_no_more_than_the_time_there_is(monkeypatch):
    """The look-up would take for ever."""
    monkeypatch.setattr("socket.getaddrinfo", lambda *_args, **_options: threading.Event().wait())
    with pytest.raises(SkillError) as caught:
        ask_model(Task("x", SCHEMA), ModelSettings((ModelEndpoint("m", "http://slow.example/v1"),), 0.5))
    assert caught.value.code == "TIMEOUT"


@pytest.mark.parametrize(
    ("variable", "value"),
    [("SSL_CERT_FILE", "/not/there"), ("HTTP_PROXY", "socks9://localhost"), ("HTTP_PROXY", "junk://localhost")],
)
def test_a_proxy_or_certificates_that_cannot_be_used_are_reported(service, monkeypatch, variable, value):
    monkeypatch.setenv(variable, value)
    error, attempts = refused(service, says(GOOD), fallback=False)
    assert attempts == [("big", "unreachable")]
    assert variable in error.message


def test_a_name_that_is_no_host_cannot_be_reached():
    settings = ModelSettings((ModelEndpoint("m", "http://xn--a/v1"),), 5)
    with pytest.raises(SkillError, match="http://xn--a cannot be reached"):
        ask_model(Task("x", SCHEMA), settings)


def test_a_caller_with_an_event_loop_of_its_own_is_served(service):
    async def inside():
        return ask(service, says(GOOD)).model

    assert asyncio.run(inside()) == "big"


def test_an_answered_request_leaves_no_thread(service):
    """A warm process that has a thread after a call is not used for another."""
    before = {thread for thread in threading.enumerate() if thread.name == "model request"}  # of services that hang
    ask(service, says(GOOD))
    assert {thread for thread in threading.enumerate() if thread.name == "model request"} <= before


def test_without_httpx_the_answer_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(SkillError, match=r"run: .* install .*\[models\]") as caught:
        ask_model(Task("x", SCHEMA), ModelSettings((ModelEndpoint("m", "http://127.0.0.1:9"),)))
    assert caught.value.code == "SERVICE_UNAVAILABLE"


# --- settings

URL = {"SKILL_MODEL_URL": "http://localhost:1/v1/"}


def test_without_a_url_no_model_is_configured():
    assert model_settings({"primary": "a", "fallback": "b"}, {"SKILL_MODEL_KEY": "k"}) is None


def test_the_environment_overrides_the_declared_models():
    declared = {"primary": "a", "fallback": "b"}
    found = model_settings(declared, {**URL, "SKILL_MODEL_KEY": KEY})
    assert [(end.model, end.url, end.key) for end in found.endpoints] == [
        ("a", "http://localhost:1/v1", KEY),
        ("b", "http://localhost:1/v1", KEY),
    ]
    found = model_settings(declared, {**URL, "SKILL_MODEL_PRIMARY": "c", "SKILL_MODEL_DEADLINE_S": "5"})
    assert ([end.model for end in found.endpoints], found.deadline_s) == (["c", "b"], 5.0)


def test_another_services_fallback_never_gets_the_first_ones_key():
    other = {"SKILL_MODEL_FALLBACK_URL": "https://other.example/v1", "SKILL_MODEL_KEY": KEY}
    found = model_settings({"primary": "a", "fallback": "b"}, {**URL, **other})
    assert [end.key for end in found.endpoints] == [KEY, ""]


@pytest.mark.parametrize(
    "environment",
    [
        {"SKILL_MODEL_URL": "localhost:1"},
        {"SKILL_MODEL_URL": "ftp://x"},
        {"SKILL_MODEL_URL": f"http://user:{KEY}@x"},
        {"SKILL_MODEL_URL": f"http://x/?key={KEY}"},
        {"SKILL_MODEL_URL": "http://[x"},
        {**URL, "SKILL_MODEL_DEADLINE_S": "soon"},
        {**URL, "SKILL_MODEL_DEADLINE_S": "-1"},
        {**URL, "SKILL_MODEL_KEY": f"{KEY}\n{KEY}"},
        {**URL, "SKILL_MODEL_KEY": f"{KEY}ä"},
        {**URL, "SKILL_MODEL_PRIMARY": "big\udcff"},
    ],
)
def test_settings_that_cannot_work_are_reported_without_the_key(environment):
    with pytest.raises(SkillError) as caught:
        model_settings({"primary": "a"}, environment)
    assert caught.value.code == "SERVICE_UNAVAILABLE"
    assert KEY not in caught.value.message


def test_a_url_without_any_models_name_is_reported():
    with pytest.raises(SkillError, match="set SKILL_MODEL_PRIMARY"):
        model_settings({"primary": "", "fallback": ""}, URL)


def test_a_key_is_not_shown():
    assert KEY not in repr(ModelSettings((ModelEndpoint("m", "http://x", KEY),)))
