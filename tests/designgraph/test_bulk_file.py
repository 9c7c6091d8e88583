"""Graphs too large for one request come from a file: read whole, checked whole, stored whole or not at all."""

import json
import os

import pytest

from designgraph import GraphError, answer, exchange
from designgraph.exchange import as_text
from designgraph.operations import perform

NODES = [{"id": "clk", "type": "Signal", "properties": {"width": 1}}, {"id": "edge", "type": "SignalExample"}]
RELATIONS = [{"from": "clk", "to": "edge", "type": "EXAMPLES"}]


def lines(*items):
    return "".join(json.dumps(item) + "\n" for item in items)


@pytest.fixture
def file(tmp_path):
    """Return a function that writes a file and returns its path."""

    def write(text, name="big.jsonl"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return str(path)

    return write


def contents(graph, graph_id="g"):
    with graph.reading(graph_id) as stored:
        return as_text(stored, graph_id, "json")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.json", json.dumps({"nodes": NODES, "relations": RELATIONS})),
        ("a.json", "\ufeff" + json.dumps({"nodes": NODES, "relations": RELATIONS}, indent=1)),
        ("a.jsonl", lines(*NODES, *RELATIONS)),
        ("a.NDJSON", lines(*RELATIONS, *NODES).replace("\n", "\r\n\r\n")),
    ],
)
def test_both_forms_make_the_graph_that_a_request_makes(graph, file, monkeypatch, name, text):
    monkeypatch.setattr("designgraph.operations.open_graph", lambda: graph)
    graph.init("asked", NODES, RELATIONS)
    made = perform("kg_init", {"graphId": "g", "input_path": file(text, name)})
    assert (made["nodes"], made["relations"]) == (2, 1)
    assert contents(graph) == contents(graph, "asked")


def test_what_export_writes_can_be_read_back(graph, file):
    graph.init("first", NODES, RELATIONS)
    graph.init("g", input_path=file(contents(graph, "first"), "export.json"))
    assert contents(graph) == contents(graph, "first")


def test_a_graph_larger_than_a_request_may_be_survives_the_process(graph, file, open_store):
    from sturdy.strict_json import MAX_BYTES

    nodes = [{"id": f"n{i}", "type": "Signal", "properties": {"text": "x" * 400}} for i in range(11_000)]
    text = lines(*nodes)
    assert len(text) > MAX_BYTES
    graph.init("g", input_path=file(text))
    assert contents(open_store()) == contents(graph)


def test_every_fault_is_reported_with_its_line_and_nothing_changes(graph, file):
    graph.init("g", NODES, RELATIONS)
    before = contents(graph)
    wrong = [NODES[0], {"id": "1x", "type": "Signal"}, {"from": "clk", "to": "gone", "type": "DRIVES"}, 7, {"id": "y"}]
    with pytest.raises(GraphError) as refused:
        graph.init("g", input_path=file(lines(*wrong)))
    assert [fault["path"] for fault in refused.value.details["errors"]] == ["line 2", "line 4", "line 5", "line 3"]
    assert contents(graph) == before


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("a.jsonl", '{"id": "a", "type": "Signal"}\n{"id":', "is not JSON: line 2: "),
        ("a.jsonl", '{"id": "a", "id": "b"}', "appears twice"),
        ("a.jsonl", '{"id": "a", "type": "Signal", "properties": {"x": NaN}}', "NaN is not a JSON number"),
        ("a.json", "[1]", 'must be an object {"nodes": [...], "relations": [...]}'),
        ("a.json", '{"nodes": {}}', 'must be an object {"nodes": [...], "relations": [...]}'),
        ("a.json", '{"nodes": [], "edges": []}', "has unknown fields edges"),
        ("a.json", b"\xff\xfe", "is not UTF-8 text (byte 0)"),
        ("a.json", "[" * 100_000, "is nested too deeply"),
        ("a.json", "", "is not JSON"),
    ],
)
def test_a_file_that_is_no_graph_is_refused(graph, file, name, text, reason):
    with pytest.raises(GraphError) as refused:
        graph.init("g", input_path=file(text, name))
    assert reason in str(refused.value)
    assert refused.value.details["param_name"] == "input_path"


def test_what_is_no_file_of_bounded_size_is_refused(graph, file, tmp_path, monkeypatch):
    os.mkfifo(tmp_path / "pipe.jsonl")
    for path in (tmp_path, tmp_path / "pipe.jsonl", tmp_path / "none.jsonl"):
        with pytest.raises(GraphError, match=r"is not a regular file|cannot be read: No such file"):
            graph.init("g", input_path=str(path))
    text = lines(*NODES)
    monkeypatch.setattr(exchange, "MAX_ITEMS", 1)
    with pytest.raises(GraphError, match="has 2 nodes and relations; at most 1"):
        graph.init("g", input_path=file(text))
    monkeypatch.setattr(exchange, "MAX_BYTES", 10)
    with pytest.raises(GraphError, match="at most 10 are read"):
        graph.init("g", input_path=file(text))


def test_a_file_beside_nodes_is_refused(graph, file, monkeypatch):
    monkeypatch.setenv("KG_FILE", str(graph.store.path))
    answered = answer("kg_init", graphId="g", nodes=NODES, input_path=file(""))
    assert (answered["success"], answered["code"]) == (False, "INVALID_PARAM")
    assert "not both" in answered["error"]
