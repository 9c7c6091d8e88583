"""What a call may name: paths inside the server's folder, no programs, and no look into files that are no netlists."""

import json
import os
import re
import socket
import stat
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from forked import run_server_command
from pack_tools import pack_tools
from patience import WATCHDOG_S
from skillpack import Runner, ToolDeclaration
from skillpack.execution.limits import CallLimits, is_path, named_paths
from skillscript import SkillError

ROOT = Path(__file__).parents[2]
SECRET = "hunter2"  # noqa: S105 - what no answer may show
TOOLS = pack_tools().by_id
NO_PATHS = re.compile(
    r"graphId|(?:^|\.)type$|circuit$|^format$"
)  # described with the word file or folder, yet no paths


def text_properties(schema, where=""):
    """Yield place, rule and name of every text that a schema describes."""
    for name, rule in schema.get("properties", {}).items():
        place = f"{where}.{name}".lstrip(".")
        for inner in (rule, rule.get("items"), rule.get("additionalProperties"), *rule.get("anyOf", ())):
            if isinstance(inner, dict):
                if inner.get("type") == "string":
                    yield place, inner, name, rule.get("description", "")
                yield from text_properties(inner, place)


@pytest.mark.parametrize("tool_id", TOOLS)
def test_every_parameter_that_is_a_path_is_declared(tool_id):
    words = re.compile(r"\b(?:path|file|folder|director)", re.IGNORECASE)
    for place, rule, name, description in text_properties(TOOLS[tool_id].input_schema):
        told = words.search(f"{description} {rule.get('description', '')}") and not NO_PATHS.search(place)
        if told or is_path({}, name):
            assert "x-path" in rule, f"{place} of {tool_id} is a path; say so with x-path"
        if rule.get("x-path"):
            assert "enum" not in rule


def test_the_declared_programs_are_what_the_tool_runs():
    from layoutkit.drc.rule_files import DECKS

    assert tuple(TOOLS["drc.run_check"].input_schema["properties"]["drc_rules_path"]["x-programs"]) == DECKS


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A server's folder with ways out of it, and a secret beside it."""
    home = tmp_path / "project"
    (home / "ws").mkdir(parents=True)
    (tmp_path / "secret.sp").write_text(f".subckt {SECRET} a\nR1 a b 1k\n.ends\n")
    (tmp_path / "other").mkdir()
    (home / "out").symlink_to(tmp_path)
    (home / "linked.sp").symlink_to(tmp_path / "secret.sp")
    (home / "dangling.sp").symlink_to(tmp_path / "not-yet.sp")
    monkeypatch.chdir(home)
    return home


OUTSIDE = (
    "/etc/passwd",
    "..",
    "../secret.sp",
    "ws/../../secret.sp",
    "linked.sp",
    "dangling.sp",
    "out/secret.sp",
    "out/new/x.sp",
    "out/project/../secret.sp",
    "~/x.sp",
    "/",
    "a\x00b",
    "./out",
)
INSIDE = (".", "ws", "new/deep/x.sp", "ws/../n.sp", "./n.sp", "..n.sp", "out/project/n.sp")


def refused(limits, tool_id, params):
    try:
        limits.check(TOOLS[tool_id], params)
    except Exception as error:  # noqa: BLE001
        return error.code, str(error)
    return None


@pytest.mark.parametrize("path", OUTSIDE)
def test_a_path_outside_is_refused_for_every_parameter_of_every_tool(project, path):
    limits = CallLimits(str(project))
    for tool_id, tool in TOOLS.items():
        for place, rule, _, _ in text_properties(tool.input_schema):
            if rule.get("x-path"):
                value = [path] if tool.input_schema["properties"][place].get("type") == "array" else path
                assert refused(limits, tool_id, {place: value})[0] == "INVALID_PARAM", (tool_id, place)


@pytest.mark.parametrize("path", [*INSIDE, "{}/n.sp"])
def test_a_path_inside_is_let_through(project, path):
    assert refused(CallLimits(str(project)), "netlist.parse", {"netlist_path": path.format(project)}) is None


def test_every_fault_is_reported_and_a_default_of_the_environment_counts(project, monkeypatch):
    monkeypatch.setenv("ANALOG_LAYOUT_WORKSPACE", str(project.parent))
    _, message = refused(CallLimits(str(project)), "netlist.parse", {"netlist_path": "/etc/passwd"})
    assert "netlist_path" in message
    assert "workspace" in message


def test_a_parameter_named_as_a_path_counts_as_one_unless_it_says_otherwise():
    schema = {
        "type": "object",
        "properties": {
            "outputFile": {"type": "string"},
            "profile": {"type": "string"},
            "path": {"x-path": False, "type": "string"},
            "jobs": {"type": "array", "items": {"$ref": "#/$defs/job"}},
        },
        "$defs": {"job": {"type": "object", "additionalProperties": {"type": "array", "items": {"x-path": True}}}},
    }
    tool = ToolDeclaration("a.b", "a", "", schema, {})
    params = {"outputFile": "1", "profile": "2", "path": "3", "jobs": [{"x": ["4", "5"]}]}
    assert [(item.param, item.path) for item in named_paths(tool, params)] == [
        ("outputFile", "1"),
        ("jobs[0].x[0]", "4"),
        ("jobs[0].x[1]", "5"),
    ]


@pytest.fixture(scope="module")
def runners():
    """Runners over the real tools whose processes are shared by the tests below."""
    made = {}
    yield lambda folder: made.setdefault(folder, Runner(TOOLS, limits=CallLimits(folder, programs=False)))
    for runner in made.values():
        runner.close()


def test_a_link_inside_the_workspace_leads_nowhere_and_a_file_names_nothing_outside(project, runners):
    gds = ROOT / "skills/drc-check/assets/example.gds"
    (project.parent / "layout.gds").write_bytes(gds.read_bytes())
    (project / "ws/layout.gds").symlink_to(project.parent / "layout.gds")
    runner = runners(str(project))
    call = runner.run("eval.compute_metrics", {"workspace": "ws"})
    assert "outside of the folder" in call.envelope["error"]["message"]
    (project / "ws/layout.gds").unlink()
    (project / "ws/layout.gds").write_bytes(gds.read_bytes())
    assert runner.run("eval.compute_metrics", {"workspace": "ws"}).envelope["ok"]
    outside = f".include '../secret.sp'\n.include '{project.parent}/secret.sp'\n"
    (project / "top.sp").write_text(f"{outside}X1 a {SECRET}\n.end\n")
    data = runner.run("netlist.parse", {"netlist_path": "top.sp"}).envelope["data"]  # understood, not laid out
    (told,) = [text for text in data["parse_info"]["warnings"] if "that the netlist's folder does not hold" in text]
    assert told.count("secret.sp") == 2
    assert data["circuit"]["devices"] == []
    error = runner.run("flow.build_layout", {"netlist_path": "top.sp", "workspace": "ws"}).envelope["error"]
    assert error["code"] == "INVALID_PARAM"
    assert len(error["details"]["faults"]) == 2
    assert all("secret.sp' is not read" in fault for fault in error["details"]["faults"])
    (project / "top.sp").write_text(f"{outside}.subckt top a\nX1 a {SECRET}\n.ends\n")
    call = runner.run("netlist.parse", {"netlist_path": "top.sp"})
    assert SECRET not in json.dumps(call.envelope["data"]["circuit"]["devices"])
    assert "does not define" in " ".join(call.envelope["data"]["parse_info"]["warnings"])


def test_a_record_from_someone_else_shows_no_file_outside(project, runners):
    """It was handed over: its reports are names of files that may exist, its technology a file that may be read."""
    (project / "ws/layout.gds").write_bytes((ROOT / "skills/drc-check/assets/example.gds").read_bytes())
    (project / "mine.lyrdb").write_text("no digest")
    reports = [str(project.parent / "secret.sp"), "../../secret.sp", "/etc/passwd", str(project / "mine.lyrdb")]
    record = project / "ws/layout_workspace.json"
    record.write_text(json.dumps({"format": 1, "technology": None, "reports": reports}))
    call = runners(str(project)).run("drc.run_check", {"workspace": "ws", "technology": "generic"})
    assert call.envelope["ok"], call.envelope
    named = [note for note in call.envelope["data"]["notes"] if "does not state" in note]
    assert [note.partition(" ")[0] for note in named] == [str(project / "mine.lyrdb")]
    (project.parent / "secret.yaml").write_text(f"technology: {SECRET}")
    entry = {"name": "x", "source": str(project.parent / "secret.yaml"), "sha256": "0", "dbu_um": 0.001, "layers": {}}
    record.write_text(json.dumps({"format": 1, "technology": entry, "reports": []}))
    error = runners(str(project)).run("drc.run_check", {"workspace": "ws"}).envelope["error"]
    assert error["code"] == "INVALID_PARAM"
    assert "secret.yaml cannot be read: lies outside of the folder" in error["message"]
    assert SECRET not in str(error)


def test_a_confined_tool_reads_the_files_of_its_skill(project, runners, monkeypatch):
    """A prompt template and a schema; nobody answers at the model's address."""
    pytest.importorskip("httpx", reason="skipped: needs the extra models")
    monkeypatch.setenv("SKILL_MODEL_URL", "http://127.0.0.1:9/")
    monkeypatch.setenv("SKILL_MODEL_PRIMARY", "test")
    (project / "n.sp").write_text(".subckt a d g s\nM1 d g s s nmos w=1u l=1u\nM2 g g s s nmos w=1u l=1u\n.ends\n")
    call = runners(str(project)).run(
        "plan.suggest_constraints", {"netlist_path": "n.sp", "source": "model", "deadline_s": 60}
    )
    assert call.envelope["error"]["code"] == "SERVICE_UNAVAILABLE", call.envelope


DECK_NAMES = ("ws/deck.LYDRC", "deck.drc/", "deck.drc/.", "deck.rb//", "ws/../deck.lydrc/./", "linked.json")


@pytest.mark.parametrize("name", DECK_NAMES)
def test_a_deck_is_not_run_unless_the_owner_allows_it(tmp_path, monkeypatch, name):
    (tmp_path / "deck.drc").write_text("")
    (tmp_path / "linked.json").symlink_to("deck.drc")
    monkeypatch.chdir(tmp_path)
    params = {"drc_rules_path": name}
    assert refused(CallLimits(None, programs=False), "drc.run_check", params)[0] == "UNSUPPORTED_OPERATION"
    assert refused(CallLimits(None, programs=True), "drc.run_check", params) is None


def test_programs_in_a_list_are_refused_however_their_suffix_is_written():
    rule = {"type": "array", "items": {"type": "string"}, "x-path": True, "x-programs": [".PY"]}
    tool = ToolDeclaration("a.b", "a", "", {"type": "object", "properties": {"jobs": rule}}, {})
    with pytest.raises(SkillError, match="--allow-decks"):
        CallLimits(None, programs=False).check(tool, {"jobs": ["job.txt", "job.py"]})


@pytest.mark.parametrize(
    ("rule", "value"),
    [
        ({"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string", "x-path": True}]}, [1, "/etc/x"]),
        ({"type": "object", "patternProperties": {"^f": {"type": "string", "x-path": True}}}, {"from": "/etc/x"}),
        ({"type": "object", "additionalProperties": True}, {"netlist_path": "/etc/x"}),
        ({"type": "object"}, {"netlist_path": "/etc/x"}),
    ],
)
def test_a_path_is_found_wherever_a_schema_may_state_it(tmp_path, rule, value):
    tool = ToolDeclaration("a.b", "a", "", {"type": "object", "properties": {"given": rule}}, {})
    with pytest.raises(SkillError, match="/etc/x"):
        CallLimits(str(tmp_path)).check(tool, {"given": value})


FOREIGN_FILES = {
    "passwd": f"root:x:0:0:{SECRET}:/root:/bin/bash\n{SECRET}:x:1:1::/:/bin/sh\nx {SECRET}\n",
    "env": f"# {SECRET}\nTOKEN={SECRET}\nexport KEY='{SECRET}'\n{SECRET} is my word for it = all\n",
    "yaml": f"{SECRET}: {SECRET}\nlist: [{SECRET}, *{SECRET}]\n",
    "yaml2": f"password: {SECRET}\n{SECRET}: [1, 2]\nrules: {SECRET}\n",
    "json": json.dumps({SECRET: SECRET, "list": [SECRET]}),
    "json2": f'{{"{SECRET}": 1, "{SECRET}": "{SECRET}"}}',
    "json3": json.dumps([{"name": SECRET, "value": SECRET}]),
    "php": f"<?php\ninclude 'a.php';\ndefine('{SECRET}', '{SECRET}');\nx {SECRET}\n",
    "js": f"x\n  .connect('{SECRET}')\n  .end()\nd {SECRET}\n",
    "key": f"-----BEGIN KEY-----\n{SECRET}{SECRET}\n-----END KEY-----\n",
}
OTA = str(ROOT / "skills/netlist-to-gds/assets/ota_5t.spice")
SUFFIXES = (".txt", ".sp", ".json", ".yaml", ".gds", ".lyrdb")


@pytest.mark.parametrize("kind", FOREIGN_FILES)
def test_no_answer_quotes_a_file_that_is_something_else(tmp_path, monkeypatch, kind):
    """Every path that every tool reads, in this process for speed."""
    monkeypatch.chdir(tmp_path)
    for suffix in (*SUFFIXES, ".jsonl"):
        Path(f"file{suffix}").write_text(FOREIGN_FILES[kind])
    for name in ("circuit.json", "constraints.json", "summary.json", "layout.gds", "ws.json"):
        Path(name).write_text(FOREIGN_FILES[kind])
    Path("top.sp").write_text(".include file.txt\n.subckt t a\nR1 a b 1k\n.ends\n")
    example = ROOT / "skills/drc-check/assets/example.gds"
    asked = [
        *(
            ("netlist.parse", {"netlist_path": f"file{suffix}", "format": form})
            for suffix in SUFFIXES
            for form in ("auto", "spice", "json")
        ),
        ("netlist.parse", {"netlist_path": "top.sp"}),
        *(("kg.init", {"graphId": "g", "input_path": f"file{suffix}"}) for suffix in (*SUFFIXES, ".jsonl")),
        *(("kg.import_circuit", {"graphId": "g", **more}) for more in ({"workspace": "."}, {"netlist_path": "top.sp"})),
        *((tool, {"workspace": "."}) for tool in ("drc.run_check", "lvs.run_check", "eval.compute_metrics")),
        ("layout.create_nmos_pcell", {"device_id": "M1", "w": 1e-6, "l": 5e-7, "workspace": "."}),
        ("plan.suggest_constraints", {"netlist_path": "file.sp"}),
        ("flow.build_layout", {"netlist_path": "file.sp"}),
        *(("flow.build_layout", {"netlist_path": OTA, "constraints": f"file{suffix}"}) for suffix in SUFFIXES),
        ("lvs.run_check", {"netlist_path": "file.txt", "layout_path": str(example)}),
        *(("drc.run_check", {"drc_rules_path": f"file{suffix}", "layout_path": str(example)}) for suffix in SUFFIXES),
        *(("drc.run_check", {"layout_path": f"file{suffix}"}) for suffix in (".gds", ".txt")),
        ("layout.render_view", {"report_path": "file.lyrdb", "layout_path": str(example)}),
        *(
            (tool, {"technology": "file.yaml"})
            for tool in ("technology.describe", "technology.validate", "drc.run_check")
        ),
    ]
    shown = [(tool, params) for tool, params in asked if SECRET in json.dumps(called_here(tool, params))]
    assert shown == []


def called_here(tool_id, params):
    """Return the envelope of a call that is made in this process."""
    from importlib.util import module_from_spec, spec_from_file_location

    from skillscript import call, load_tool

    script = TOOLS[tool_id].script
    spec = spec_from_file_location("script_under_test", script)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return call(load_tool(script, tool_id, module.execute), params).to_dict()


def test_a_faulty_netlist_is_still_explained_by_its_lines(tmp_path):
    path = tmp_path / "n.sp"
    path.write_text(".subckt a b\nM1 b b b b nmos w=1u l=\n.ends\n")
    assert "line 2" in called_here("netlist.parse", {"netlist_path": str(path)})["error"]["message"]


TOKEN_LINE = re.compile(r"Authorization: Bearer (\S{32,})'")


def started(*arguments, **environment):
    """Start ``skillpack http`` and return its process, address and second line, which says where its token is."""
    process = subprocess.Popen(
        [sys.executable, "-m", "skillpack", "http", "--port", "0", *map(str, arguments)],
        stderr=subprocess.PIPE,
        env={**os.environ, "SKILLPACK_TOKEN": "", **environment},
    )
    address = process.stderr.readline().decode().split()[-1]
    return process, address, process.stderr.readline().decode()


def status_of(address, request):
    """Return the status of a raw request, and whether the server closed the connection after one answer."""
    url = urlsplit(address)
    with socket.create_connection((url.hostname, url.port), timeout=WATCHDOG_S) as connection:
        connection.sendall(request.replace("\n", "\r\n").encode())
        answer = b""
        while piece := connection.recv(1 << 16):
            answer += piece
    return int(answer.split()[1]), answer.count(b"HTTP/1.1 ")


def test_a_token_is_made_and_shown_once_and_a_smuggled_request_is_refused(pack_dir):
    pytest.importorskip("fastapi", reason="skipped: needs the extra http")
    process, address, line = started("--skills-dir", pack_dir)
    try:
        token = TOKEN_LINE.search(line)[1]
        head = "GET /skills HTTP/1.1\nHost: localhost\nConnection: close\n"
        bearing = f"{head}Authorization: Bearer {token}\n"
        assert status_of(address, f"{head}\n")[0] == 401
        assert status_of(address, f"{bearing}\n")[0] == 200
        smuggled = f"0\n\n{head}\n"
        for lengths in (
            "Content-Length: 9\nTransfer-Encoding: chunked",
            "Transfer-Encoding: chunked\nContent-Length: 9",
        ):
            request = bearing.replace("close", "keep-alive").replace("GET /skills", "POST /skills/validate")
            assert status_of(address, f"{request}{lengths}\n\n{smuggled}") == (400, 1)
    finally:
        process.terminate()
        rest = process.communicate(timeout=WATCHDOG_S)[1]
    assert token not in rest.decode()


def test_a_program_gets_the_token_from_a_file_that_only_its_owner_can_read(pack_dir, tmp_path):
    pytest.importorskip("fastapi", reason="skipped: needs the extra http")
    file = tmp_path / "token"
    process, address, line = started("--skills-dir", pack_dir, "--write-token", file)
    try:
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        token = file.read_text().strip()
        assert token not in line
        head = f"GET /skills HTTP/1.1\nHost: localhost\nConnection: close\nAuthorization: Bearer {token}\n\n"
        assert status_of(address, head)[0] == 200
    finally:
        process.terminate()
        process.communicate(timeout=WATCHDOG_S)


@pytest.mark.parametrize(
    ("arguments", "token", "said"),
    [
        (["--no-token"], "a-token-of-some-length", "contradicts"),
        (["--no-token", "--host", "0.0.0.0"], "", "can be reached from other machines"),  # noqa: S104
        (["--write-token", "/nowhere/at/all"], "", "cannot be written"),
        (["--write-token", "x"], "a-token-of-some-length", "--write-token"),
    ],
)
def test_options_that_contradict_each_other_start_nothing(pack_dir, arguments, token, said):
    pytest.importorskip("fastapi", reason="skipped: needs the extra http")
    command = ["http", "--port", "0", "--skills-dir", pack_dir, *arguments]
    done = run_server_command(*command, SKILLPACK_TOKEN=token)
    assert done.returncode == 2
    assert said in done.stderr


def test_a_server_confines_calls_to_its_folder_unless_configured_otherwise(pack_dir, tmp_path, tools_of_the_trade):
    """Over HTTP, where the tool's parameter is a path by its name alone."""
    import urllib.error
    import urllib.request

    pytest.importorskip("fastapi", reason="skipped: needs the extra http")
    home = tmp_path / "home"
    home.mkdir()

    def drawn(address, path):
        body = json.dumps({"params": {"output_path": str(path)}}).encode()
        url, headers = f"{address}/skills/bench.draw/execute", {"Content-Type": "application/json"}
        try:
            return urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=WATCHDOG_S).status  # noqa: S310
        except urllib.error.HTTPError as error:
            return error.code

    with tools_of_the_trade.running("http", "--skills-dir", pack_dir, "--directory", home) as (_, address):
        assert [drawn(address, path) for path in ("a.png", home / "b.png", tmp_path / "c.png", "../d.png")] == [
            200,
            200,
            422,
            422,
        ]
    arguments = ("http", "--skills-dir", pack_dir, "--directory", home, "--no-confine")
    with tools_of_the_trade.running(*arguments) as (_, address):
        assert drawn(address, tmp_path / "c.png") == 200
