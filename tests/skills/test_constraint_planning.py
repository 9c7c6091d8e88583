"""The tool plan.suggest_constraints: by recognition, by a model that behaves, and by models that do not (S1.3-S1.6)."""

import json
from pathlib import Path

import pytest

from layoutkit.circuit import read_netlist
from layoutkit.circuit.suggested_constraints import suggest_constraints
from model_service import drips, fails, hangs, model_service, says
from pack_tools import pack_tools
from skillpack import Runner
from skillscript.install import install_command

SKILLS = Path(__file__).parents[2] / "skills"
TOOL = "plan.suggest_constraints"
SCRIPT = "constraint-planning/scripts/suggest_constraints.py"
NETLIST = SKILLS / "constraint-planning/assets/comparator.spice"
KEY = "secret-key-1234"
GOOD = {
    "symmetry": [{"pairs": [["min1", "min2"]], "self_symmetric": ["mtail"], "net_pairs": [], "reason": "input pair"}],
    "matching": [{"devices": ["min1", "min2"], "arrangement": "ABBA", "reason": "offset"}],
    "net_priorities": [{"net": "outp", "priority": 1, "kind": "sensitive", "reason": "the designer's wish"}],
}
INVENTED = {**GOOD, "matching": [{"devices": ["min1", "min7"], "arrangement": "ABBA", "reason": "offset"}]}


@pytest.fixture
def service():
    with model_service() as service:
        yield service


@pytest.fixture
def ask(run_script, service):
    """Run the script with a service that does what it is told; return the exit code and the envelope."""

    def run(*script, models=("big", "small"), flags=(), **environment):
        service.script[:] = script
        variables = {"SKILL_MODEL_URL": service.url, "SKILL_MODEL_KEY": KEY, "SKILL_MODEL_PRIMARY": models[0]}
        variables |= {"SKILL_MODEL_FALLBACK": models[1]} if len(models) > 1 else {}
        return run_script(SCRIPT, "--netlist-path", NETLIST, *flags, **{**variables, **environment})

    return run


def outcomes(envelope):
    attempts = envelope["data"]["attempts"] if envelope["ok"] else envelope["error"]["details"]["attempts"]
    return [(entry["model"], entry["outcome"]) for entry in attempts]


def test_without_a_model_recognition_answers(run_script):
    code, envelope = run_script(SCRIPT, "--netlist-path", NETLIST)
    data = envelope["data"]
    assert (code, data["source"], data["model"], data["attempts"]) == (0, "recognition", "", [])
    assert data["constraints"] == suggest_constraints(read_netlist(NETLIST)).to_json()


def test_a_configured_model_answers_and_sees_circuit_wishes_and_memory(ask, service):
    context = json.dumps({"memory_summary": "prefers quiet nets", "content_context": [{"note": "use ABBA"}]})
    code, envelope = ask(says(GOOD), flags=("--wishes", "outp is critical", "--context", context))
    data = envelope["data"]
    assert (code, data["source"], data["model"], data["constraints"]) == (0, "model", "big", GOOD)
    headers, body = service.requests[0]
    assert headers["authorization"] == f"Bearer {KEY}"
    prompt = body["messages"][1]["content"]
    for part in (
        "min1: nmos nmos",
        "outp is critical",
        "prefers quiet nets",
        "use ABBA",
        '"self_symmetric": ["mtail"]',
    ):
        assert part in prompt


def test_recognition_can_be_requested_although_a_model_is_configured(ask, service):
    _, envelope = ask(says(GOOD), flags=("--source", "recognition"))
    assert (envelope["data"]["source"], service.requests) == ("recognition", [])


def test_an_invented_device_goes_back_to_the_model_with_the_reason(ask, service):
    code, envelope = ask(says(INVENTED), says(GOOD))
    assert (code, outcomes(envelope)) == (0, [("big", "invalid_output"), ("big", "accepted")])
    asked_again = service.requests[1][1]["messages"][-1]["content"]
    assert "matching[0]: the circuit has no device 'min7' (did you mean 'min" in asked_again


@pytest.mark.parametrize(
    "act",
    [
        pytest.param(says("I would match M1 and M2."), id="not JSON"),
        pytest.param(says({"symmetry": []}), id="lacks fields"),
        pytest.param(says({"constraints": GOOD}), id="nested wrongly"),
        pytest.param(says(INVENTED), id="invents a device"),
        pytest.param(fails("500 Oops"), id="500"),
    ],
)
def test_a_model_that_fails_leads_to_the_fallback(ask, act):
    """S1.6, S1.4."""
    code, envelope = ask(act, act, says(GOOD))
    assert (code, envelope["data"]["model"]) == (0, "small")
    assert {model for model, _ in outcomes(envelope)[:-1]} == {"big"}


def test_models_that_all_fail_are_an_error_and_never_a_silent_recognition(ask):
    code, envelope = ask(says(INVENTED))
    assert (code, envelope["error"]["code"], envelope["data"]) == (3, "SERVICE_UNAVAILABLE", None)
    assert outcomes(envelope) == [("big", "invalid_output")] * 2 + [("small", "invalid_output")] * 2


@pytest.mark.parametrize("act", [hangs, drips])
def test_the_deadline_holds_whatever_the_service_does(ask, act):
    """The service would go on for ever."""
    code, envelope = ask(act, flags=("--deadline-s", "0.6"))
    assert (code, envelope["error"]["code"]) == (4, "TIMEOUT")


def test_a_model_that_is_wanted_but_not_configured_is_reported(run_script):
    code, envelope = run_script(SCRIPT, "--netlist-path", NETLIST, "--source", "model")
    assert (code, envelope["error"]["code"]) == (3, "SERVICE_UNAVAILABLE")
    assert "set SKILL_MODEL_URL" in envelope["error"]["message"]


def test_without_the_libraries_the_answer_says_what_to_install(ask, tmp_path):
    (tmp_path / "httpx.py").write_text("raise ImportError('hidden')")
    code, envelope = ask(says(GOOD), PYTHONPATH=str(tmp_path))
    assert (code, envelope["error"]["code"]) == (3, "SERVICE_UNAVAILABLE")
    assert envelope["error"]["details"] == {"missing": "httpx", "command": install_command("models")}


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ((), "give exactly one of netlist_path, netlist_text, circuit; received none of them"),
        (
            ("--netlist-path", NETLIST, "--circuit", "{}"),
            "give exactly one of netlist_path, netlist_text, circuit; received netlist_path, circuit",
        ),
        (("--netlist-path", "none.sp"), "Netlist file not found"),
        (("--circuit", '{"devices": 3}'), "devices"),
        (("--circuit", '{"name": "x", "devices": []}', "--top", "x"), "top chooses in a netlist"),
        (("--netlist-path", NETLIST, "--source", "oracle"), "must be one of auto, recognition, model"),
    ],
)
def test_bad_input_is_reported(run_script, flags, message):
    code, envelope = run_script(SCRIPT, *flags)
    assert (code, envelope["error"]["code"]) == (2, "INVALID_PARAM")
    assert message in envelope["error"]["message"]


def test_the_plan_is_kept_in_the_workspace(run_script, tmp_path):
    _, envelope = run_script(SCRIPT, "--netlist-path", NETLIST, "--workspace", tmp_path / "ws")
    kept = json.loads(Path(envelope["data"]["constraints_path"]).read_text())
    assert kept == envelope["data"]["constraints"]


@pytest.fixture
def runner():
    with Runner(pack_tools()) as runner:
        yield runner


def test_the_circuit_of_netlist_parse_gives_the_same_plan(runner):
    """S1.6: upstream output of a pipeline."""
    parsed = runner.run("netlist.parse", {"netlist_path": str(NETLIST)}).result.data
    planned = runner.run(TOOL, {"circuit": parsed["circuit"]}).result
    assert planned.data["constraints"] == suggest_constraints(read_netlist(NETLIST)).to_json()


@pytest.mark.parametrize("warm", [True, False])
def test_the_runner_hands_the_model_variables_to_this_tool(runner, service, monkeypatch, tmp_path, warm):
    service.script[:] = [says(GOOD)]
    log = tmp_path / "calls.jsonl"
    for name, value in (("URL", service.url), ("KEY", KEY), ("PRIMARY", "big")):
        monkeypatch.setenv(f"SKILL_MODEL_{name}", value)
    with Runner(runner.all_tools, warm=warm, log=str(log)) as logged:
        call = logged.run(TOOL, {"netlist_path": str(NETLIST)})
    assert (call.result.data["model"], call.warm) == ("big", warm)
    assert KEY not in log.read_text() + call.stderr + json.dumps(call.envelope)


def test_the_runner_hands_the_proxy_to_this_tool_however_it_is_spelled(runner, service, monkeypatch):
    """The service stands in for the proxy: it is asked for a host that does not exist."""
    service.script[:] = [says(GOOD)]
    for name in ("HTTP_PROXY", "ALL_PROXY", "NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", service.url.removesuffix("/v1"))
    monkeypatch.setenv("SKILL_MODEL_URL", "http://model.invalid/v1")
    monkeypatch.setenv("SKILL_MODEL_PRIMARY", "big")
    with Runner(runner.all_tools, warm=False) as proxied:
        call = proxied.run(TOOL, {"netlist_path": str(NETLIST)})
    assert (call.result.data or {}).get("model") == "big", call.envelope
