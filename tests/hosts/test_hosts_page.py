"""``references/hosts.md``: its code runs, its configurations are well formed, its commands exist."""

import json
import re
import subprocess
import sys

import pytest

PAGE = "references/hosts.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def page(tools_of_the_trade):
    return (tools_of_the_trade.ROOT / PAGE).read_text(encoding="utf-8")


def blocks(page, language):
    return [text for kind, text in BLOCK.findall(page) if kind == language]


@pytest.fixture
def host(page, monkeypatch, tools_of_the_trade):
    """Return the names that the page's Python defines, run from the root of the checkout."""
    monkeypatch.chdir(tools_of_the_trade.ROOT)
    names = {}
    for block in blocks(page, "python"):
        exec(compile(block, PAGE, "exec"), names)  # noqa: S102 - the page's own code
    yield names
    names["runner"].close()


def test_a_host_in_python_leads_a_model_through_the_three_layers_to_a_layout(host, tmp_path):
    """S3.1-S3.3: layer 1 in the prompt, layer 2 and 3 on request, then a tool is executed."""
    seen = []

    def model(messages):
        """Do what a model would do that knows only what the messages say."""
        seen.append(messages[-1]["content"])
        if len(messages) == 2:
            assert "- mos-pcell: " in messages[0]["content"]
            return {"tool": "skill_request", "arguments": {"skill_name": "mos-pcell"}}
        answer = json.loads(messages[-1]["content"])
        if len(messages) == 3:
            folder = answer["data"]["directory"]
            path = next(item["path"] for item in answer["data"]["resources"] if item["path"].endswith("nmos_pcell.py"))
            return {"tool": "file_read", "arguments": {"file": f"{folder}/{path}"}}
        if len(messages) == 4:
            tool_id = re.search(r'"(layout\.create_nmos_pcell)"', answer["data"]["content"])[1]
            params = {"device_id": "M1", "w": 2e-6, "l": 0.5e-6, "workspace": str(tmp_path / "ws")}
            return {"tool": "run_tool", "arguments": {"tool_id": tool_id, "params": params}}
        return {"content": answer["data"]["cell_name"]}

    assert host["converse"](model, "Draw an NMOS transistor.") == "nmos_M1"
    assert (tmp_path / "ws" / "layout.gds").stat().st_size > 0
    assert len(seen) == 4


def test_a_host_serves_no_file_outside_of_a_skill(host, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("secret")
    assert host["file_read"](str(secret))["success"] is False
    inside = host["loader"].skills["mos-pcell"].dir
    assert host["file_read"](f"{inside}/../../pyproject.toml")["success"] is False
    assert host["file_read"](f"{inside}/skill.yaml")["success"] is True


@pytest.mark.parametrize(
    "call", [{"tool": "draw", "arguments": {}}, {"tool": "skill_request", "arguments": {"name": "mos-pcell"}}]
)
def test_a_call_that_a_model_got_wrong_is_an_answer(host, call):
    answers = []

    def model(messages):
        answers.append(messages[-1]["content"])
        return call if len(messages) == 2 else {"content": "sorry"}

    assert host["converse"](model, "Draw.") == "sorry"
    assert json.loads(answers[1])["success"] is False


def test_an_unknown_skill_is_an_answer(host):
    """S3.2."""
    assert host["skill_request"]("mos-pcel")["suggestions"][0] == "mos-pcell"


def test_typed_functions_have_names_that_models_take(host):
    assert len(host["functions"]) == len(host["runner"].tools)
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", function["name"]) for function in host["functions"])
    assert all(function["parameters"]["type"] == "object" for function in host["functions"])
    named = next(function for function in host["functions"] if function["name"] == "netlist_parse")
    assert "netlist_path" in named["parameters"]["properties"]
    assert host["run_tool"](host["ids"]["netlist_parse"], {})["error"]["code"] == "INVALID_PARAM"


def test_the_configurations_are_well_formed_and_start_the_server(page):
    for text in blocks(page, "json"):
        for server in json.loads(text)["mcpServers"].values():
            assert server["command"].endswith("skillpack")
            assert server["args"][0] == "mcp"
    if sys.version_info >= (3, 11):
        import tomllib

        (text,) = blocks(page, "toml")
        assert tomllib.loads(text)["mcp_servers"]["analog-layout"]["args"] == ["mcp"]


@pytest.mark.parametrize("command", ["mcp", "http", "install"])
def test_every_option_that_the_page_names_exists(page, command):
    lines = [line for block in blocks(page, "bash") for line in block.splitlines() if f"skillpack {command}" in line]
    shown = {flag for line in lines for flag in re.findall(r"--[a-z-]+", line.partition(f"skillpack {command}")[2])}
    servers, _, rest = page.partition("\n## Copies of skills\n")
    copies, _, rest = rest.partition("\n## ")
    named = set(re.findall(r"`(--[a-z-]+)", copies if command == "install" else servers + rest))
    done = subprocess.run(
        [sys.executable, "-m", "skillpack", command, "--help"], capture_output=True, text=True, check=True
    )
    offered = set(re.findall(r"--[a-z-]+", done.stdout))
    assert lines
    assert shown - {"--method", "--strict", "--verify"} <= offered
    assert named
    assert named - {"--tool-names", "--schema", "--detail"} <= offered  # of http, of mcp, of scripts and of run alone
