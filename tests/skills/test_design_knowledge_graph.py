"""The twelve tools kg.* as programs, through the runner and in one warm process (S2.1, S2.5)."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from designgraph import GraphError
from designgraph.operations import ERROR_CODES
from pack_tools import pack_tools
from patience import WATCHDOG_S
from skillpack import Runner

ROOT = Path(__file__).resolve().parents[2]
SKILL = ROOT / "skills" / "design-knowledge-graph"
EXAMPLE = SKILL / "assets" / "uart_tx.json"
NETLIST = ROOT / "skills" / "netlist-parse" / "assets" / "opamp_diff_stage.json"


@pytest.fixture
def kg(run_script, tmp_path):
    """Return a function that runs a program of the skill in a project of its own."""

    def run(program, *arguments):
        return run_script(f"design-knowledge-graph/scripts/{program}.py", *arguments, CHIPFORGE_PROJECT=str(tmp_path))

    return run


@pytest.fixture
def uart(kg):
    assert kg("init_graph", "--params", EXAMPLE)[0] == 0
    return kg


def test_the_whole_life_of_a_graph_from_the_command_line(kg, tmp_path):
    steps = [
        ("init_graph", ["--graph-id", "d", "--nodes", '[{"id": "clk", "type": "Signal"}]', "--relations", "[]"]),
        (
            "create_node",
            ["--graph-id", "d", "--id", "ex", "--type", "SignalExample", "--properties", '{"timing": "01"}'],
        ),
        ("create_relation", ["--graphId", "d", "--fromId", "clk", "--toId", "ex", "--type", "EXAMPLES"]),
        ("query_graph", ["--graph-id", "d", "--node-id", "clk", "--depth", "2", "--direction", "both"]),
        ("list_nodes", ["--graph-id", "d", "--type", "Signal"]),
        ("update_node", ["--graph-id", "d", "--id", "clk", "--properties", '{"width": 1}']),
        ("delete_relation", ["--graph-id", "d", "--from-id", "clk", "--to-id", "ex", "--type", "EXAMPLES"]),
        ("delete_node", ["--graph-id", "d", "--id", "ex"]),
        ("check_graph", ["--graph-id", "d"]),
        ("render_graph", ["--graph-id", "d"]),
        ("export_graph", ["--graph-id", "d", "--output-path", tmp_path / "d.json", "--fold"]),
    ]
    answers = {}
    for program, arguments in steps:
        code, envelope = kg(program, *arguments)
        assert (code, envelope["ok"]) == (0, True), (program, envelope)
        answers[program] = envelope["data"]
    assert [node["id"] for node in answers["query_graph"]["nodes"]] == ["clk", "ex"]
    assert answers["list_nodes"]["nodes"] == [{"id": "clk", "type": "Signal", "properties": {}}]
    assert answers["delete_node"]["properties"] == {"timing": "01"}
    assert answers["export_graph"]["folded"] is True
    document = json.loads((tmp_path / ".chipforge" / "kg" / "graph.json").read_text())
    assert document["graphs"]["d"]["nodes"] == [{"id": "clk", "type": "Signal", "properties": {"width": 1}}]
    assert json.loads((tmp_path / "d.json").read_text()) == document["graphs"]["d"]


REFUSED = [
    ("create_node", {"id": "tx", "type": "Signal"}, "NODE_EXISTS"),
    ("create_node", {"id": "1x", "type": "Signal"}, "INVALID_ID"),
    ("create_node", {"id": "x\n", "type": "Signal"}, "INVALID_ID"),
    ("create_node", {"id": "x", "type": "Sognal"}, "INVALID_TYPE"),
    ("create_node", {"id": "x", "type": "Signal", "colour": 1}, "INVALID_PARAM"),
    ("create_node", {"id": "x"}, "INVALID_PARAM"),
    ("create_relation", {"fromId": "tx", "toId": "nothing", "type": "DRIVES"}, "NODE_NOT_FOUND"),
    ("create_relation", {"fromId": "tx", "toId": "frame", "type": "IMPLEMENTS"}, "RELATION_EXISTS"),
    ("delete_relation", {"fromId": "tx", "toId": "frame", "type": "DRIVES"}, "RELATION_NOT_FOUND"),
    ("delete_node", {"id": "tx"}, "HAS_RELATIONS"),
    ("delete_node", {"id": "nothing"}, "NODE_NOT_FOUND"),
    ("update_node", {"id": "nothing", "properties": {}}, "NODE_NOT_FOUND"),
    ("query_graph", {"nodeId": "nothing"}, "NODE_NOT_FOUND"),
    ("query_graph", {"nodeId": "tx", "depth": 1.5}, "INVALID_PARAM"),
    ("query_graph", {"nodeId": "tx", "relationTypes": ["WIRES"]}, "INVALID_TYPE"),
    ("list_nodes", {"graphId": "../../etc"}, "INVALID_ID"),
    ("init_graph", {"nodes": [{"id": "a", "type": "Signal"}] * 2}, "NODE_EXISTS"),
    ("render_graph", {"nodeId": "nothing"}, "NODE_NOT_FOUND"),
    ("check_graph", {"graphId": "a b"}, "INVALID_ID"),
]


@pytest.mark.parametrize(("program", "params", "expected"), REFUSED)
def test_each_refusal_has_the_specified_code_in_the_envelope_and_exit_code_2(uart, program, params, expected):
    code, envelope = uart(program, "--params", json.dumps({"graphId": "uart", **params}))
    assert (code, envelope["ok"], envelope["data"], envelope["error"]["code"]) == (2, False, None, expected)


@pytest.mark.usefixtures("uart")
def test_the_runner_and_python_answer_the_same_code_and_message(tmp_path, monkeypatch):
    monkeypatch.setenv("CHIPFORGE_PROJECT", str(tmp_path))
    monkeypatch.delenv("KG_FILE", raising=False)
    from designgraph.operations import perform

    tools = pack_tools()
    assert [fault for fault in tools.faults if fault.skill == SKILL.name] == []
    programs = {Path(tool.script).stem: tool.id for tool in tools.of_skill(SKILL.name)}
    runner = Runner(tools.by_id)
    try:
        for program, params, expected in REFUSED:
            if expected == "INVALID_PARAM" or program in ("render_graph", "check_graph"):
                continue
            arguments = {"graphId": "uart", **params}
            envelope = runner.run(programs[program], arguments).envelope
            with pytest.raises(GraphError) as caught:
                perform(programs[program], arguments)
            assert (envelope["error"]["code"], envelope["error"]["message"]) == (expected, str(caught.value))
    finally:
        getattr(runner, "close", lambda: None)()


def test_the_check_ends_with_1_when_the_design_is_inconsistent(uart):
    assert uart("check_graph", "--graph-id", "uart")[0] == 0
    params = '{"id": "ex2", "type": "SignalExample", "graphId": "uart"}'
    uart("create_node", "--params", params)
    code, envelope = uart("check_graph", "--graph-id", "uart")
    assert (code, envelope["ok"], envelope["data"]["passed"]) == (1, True, False)
    assert [finding["rule"] for finding in envelope["data"]["findings"] if "ex2" in finding["ids"]] == [
        "example_without_signal",
        "orphan",
    ]


def test_the_example_is_almost_consistent(uart):
    """The body says what its check finds."""
    data = uart("check_graph", "--graph-id", "uart")[1]["data"]
    assert (data["counts"], data["unchecked"]) == ({"missing_transition": 1}, [])
    assert "'STOP' has no transition when tick = 0" in data["findings"][0]["message"]


@pytest.mark.parametrize(
    ("form", "start"), [("mermaid", "flowchart LR"), ("svg", "<svg "), ("html", "<!DOCTYPE html>")]
)
def test_pictures_are_written_where_requested(uart, tmp_path, form, start):
    target = tmp_path / "pictures" / "picture"
    data = uart("render_graph", "--graph-id", "uart", "--format", form, "--output-path", target)[1]["data"]
    assert data["output_path"] == str(target)
    text = target.read_text(encoding="utf-8")
    assert text.startswith(start)
    assert data["file_size_bytes"] == len(text.encode())
    data = uart("render_graph", "--graph-id", "uart", "--format", form)[1]["data"]
    assert data["text"] == text if form == "mermaid" else Path(data["output_path"]).read_text(encoding="utf-8") == text


@pytest.mark.parametrize("name", ["graph.json", "graph.json.lock"])
def test_no_export_overwrites_the_graph_itself(uart, tmp_path, name):
    target = tmp_path / ".chipforge" / "kg" / name
    before = target.read_bytes()
    code, envelope = uart("export_graph", "--graph-id", "uart", "--output-path", target)
    assert (code, envelope["error"]["code"]) == (2, "INVALID_PARAM")
    assert target.read_bytes() == before


def test_a_target_that_cannot_be_written_is_refused(uart, tmp_path):
    (tmp_path / "file").write_text("x")
    code, envelope = uart("export_graph", "--graph-id", "uart", "--output-path", tmp_path / "file" / "x.json")
    assert (code, envelope["error"]["code"]) == (2, "INVALID_PARAM")


def test_a_workspace_brings_its_circuit_constraints_and_history(kg, tmp_path):
    workspace = tmp_path / "ws"
    workspace.mkdir()
    parse = ROOT / "skills" / "netlist-parse" / "scripts" / "parse_netlist.py"
    done = [sys.executable, str(parse), "--netlist-path", str(NETLIST), "--workspace", str(workspace)]
    subprocess.run(done, check=True, capture_output=True)
    (workspace / "constraints.json").write_text(
        '{"symmetry": [{"pairs": [["M1", "M2"]], "self_symmetric": [], "net_pairs": [], "reason": "input pair"}],'
        ' "matching": [], "net_priorities": []}'
    )
    report = {
        "drc": {"passed": True, "total_violations": 0, "violations": []},
        "lvs": {"matched": True, "mismatches": []},
    }
    (workspace / "summary.json").write_text(json.dumps({**report, "warnings": ["M5 got 4 fingers"], "modules": []}))
    data = kg("import_circuit", "--graph-id", "ota", "--workspace", workspace)[1]["data"]
    assert (data["circuit"], data["stale"], data["renamed"]) == ("circuit_opamp_diff_stage", [], {})
    listed = kg("list_nodes", "--graph-id", "ota", "--fields", '["type"]')[1]["data"]["nodes"]
    types = [node["type"] for node in listed]
    assert (types.count("Device"), types.count("Constraint"), types.count("Decision")) == (6, 1, 1)
    assert {"drc_1", "lvs_1"} <= {node["id"] for node in listed}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give netlist_path or netlist_text, or a workspace"),
        (["--netlist-path", "/no/such.sp"], "Netlist file not found"),
        (["--netlist-path", NETLIST, "--constraints", '[{"kind": "x", "devices": ["M99"]}]'], "names M99"),
        (["--netlist-path", NETLIST, "--prefix", "a b"], "prefix"),
    ],
)
def test_a_wrong_import_is_refused_and_changes_nothing(kg, tmp_path, arguments, message):
    code, envelope = kg("import_circuit", "--graph-id", "ota", *arguments)
    assert (code, envelope["error"]["code"]) == (2, "INVALID_PARAM")
    assert message in envelope["error"]["message"]
    graph = tmp_path / ".chipforge" / "kg" / "graph.json"
    assert not graph.exists()


@pytest.mark.parametrize("content", [b"", b"{", b'{"graphs": []}', b"\xff"])
def test_a_graph_file_that_cannot_be_used_is_an_invalid_parameter(kg, tmp_path, content):
    file = tmp_path / ".chipforge" / "kg" / "graph.json"
    file.parent.mkdir(parents=True)
    file.write_bytes(content)
    for program, arguments in (
        ("list_nodes", ["--graph-id", "d"]),
        ("create_node", ["--graph-id", "d", "--id", "a", "--type", "Signal"]),
    ):
        code, envelope = kg(program, *arguments)
        assert (code, envelope["error"]["code"]) == (2, "INVALID_PARAM")
        assert "cannot be used" in envelope["error"]["message"]
    assert file.read_bytes() == content


def test_one_warm_process_answers_all_tools(tmp_path):
    requests = [
        {"id": 1, "tool": "kg.init", "params": json.loads(EXAMPLE.read_text())},
        {"id": 2, "tool": "kg.create_node", "params": {"graphId": "uart", "id": "tx", "type": "Signal"}},
        {"id": 3, "tool": "kg.query", "params": {"graphId": "uart", "nodeId": "tx"}},
        {"id": 4, "tool": "kg.check", "params": {"graphId": "uart"}},
        {"id": 5, "tool": "kg.render", "params": {"graphId": "uart"}},
        {"id": 6, "tool": "kg.import_circuit", "params": {"graphId": "ota", "netlist_path": str(NETLIST)}},
        {
            "id": 7,
            "tool": "kg.export",
            "params": {"graphId": "ota", "output_path": str(tmp_path / "ota.graphml"), "format": "graphml"},
        },
        {"id": 8, "tool": "kg.list", "params": {"graphId": "ota", "type": "Device"}},
    ]
    done = subprocess.run(
        [sys.executable, str(SKILL / "scripts" / "graph_worker.py"), "--serve"],
        input="".join(json.dumps(request) + "\n" for request in requests),
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        timeout=WATCHDOG_S,
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [answer["id"] for answer in answers] == list(range(1, 9))
    assert [answer["ok"] for answer in answers] == [True, False, *[True] * 6]
    assert (answers[1]["error"]["code"], answers[1]["exit_code"]) == ("NODE_EXISTS", 2)
    assert len(answers[7]["data"]["nodes"]) == 6
    assert not [answer for answer in answers if answer.get("last")]


def test_the_worker_serves_exactly_the_declared_tools():
    declared = [tool.id for tool in pack_tools().of_skill(SKILL.name)]
    text = (SKILL / "scripts" / "graph_worker.py").read_text()
    assert sorted(declared) == sorted(set(re.findall(r'"(kg\.\w+)"', text)))


def test_the_codes_that_a_tool_declares_mean_what_the_skill_says():
    for path in (SKILL / "schemas").glob("*.json"):
        declared = json.loads(path.read_text(encoding="utf-8")).get("x-error-codes", {})
        assert {code: ERROR_CODES[code] for code in declared} == declared


def test_the_eight_operations_declare_all_codes_of_the_specification():
    """S2.5."""
    eight = ("init", "create_node", "create_relation", "delete_node", "delete_relation", "update_node", "query", "list")
    codes = set()
    for name in eight:
        schema = json.loads((SKILL / "schemas" / f"kg.{name}.output.json").read_text())
        codes |= set(schema["x-error-codes"])
    assert codes == set(ERROR_CODES)


@pytest.mark.parametrize(
    ("program", "arguments"),
    [("render_graph", []), ("render_graph", ["--output-path", "x.svg"]), ("export_graph", ["--output-path", "x.json"]),
     ("check_graph", [])],
)  # fmt: skip
def test_a_graph_that_does_not_exist_is_refused_by_name(uart, tmp_path, program, arguments):
    arguments = [str(tmp_path / word) if word.startswith("x.") else word for word in arguments]
    code, envelope = uart(program, "--graph-id", "urat", *arguments)
    assert (code, envelope["error"]["code"]) == (2, "INVALID_PARAM")
    assert envelope["error"]["message"] == "graph 'urat' does not exist; there are: uart"
    assert not list(tmp_path.glob("x.*"))


@pytest.mark.parametrize(
    ("program", "name", "start"),
    [("render_graph", "a.svg", "<svg"), ("render_graph", "a.HTML", "<!doctype html>"), ("render_graph", "a.md", "flow"),
     ("export_graph", "a.graphml", "<?xml"), ("export_graph", "a.json", '{\n  "nodes"'),
     ("export_graph", "a.node-link.json", '{\n  "directed"')],
)  # fmt: skip
def test_the_suffix_of_the_file_chooses_its_format(uart, tmp_path, program, name, start):
    code, envelope = uart(program, "--graph-id", "uart", "--output-path", tmp_path / name)
    assert code == 0, envelope
    assert (tmp_path / name).read_text().lower().startswith(start)


@pytest.mark.parametrize(
    ("program", "name", "format_", "message"),
    [("render_graph", "a.svg", "mermaid", "is the name of a svg file, but format is mermaid"),
     ("render_graph", "a.png", None, "does not show the format; give format, or a name that ends in .mmd, "),
     ("export_graph", "a.graphml", "json", "is the name of a graphml file, but format is json")],
)  # fmt: skip
def test_a_file_never_holds_another_format_than_its_name_says(uart, tmp_path, program, name, format_, message):
    asked = [] if format_ is None else ["--format", format_]
    code, envelope = uart(program, "--graph-id", "uart", "--output-path", tmp_path / name, *asked)
    assert (code, envelope["error"]["code"]) == (2, "INVALID_PARAM")
    assert message in envelope["error"]["message"]
    assert not (tmp_path / name).exists()
