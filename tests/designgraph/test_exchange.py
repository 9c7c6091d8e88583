"""Other forms of a graph, read back by the programs they are for."""

import json
import threading
from xml.etree import ElementTree as ET

import pytest

from designgraph.exchange import as_text, to_node_link, xml_text
from sturdy.atomic_files import replace_file

NODES = [
    {"id": "a", "type": "Signal", "properties": {"text": '<&>"\x01\u2028', "n": [1, None]}},
    {"id": "b", "type": "Plan", "properties": {}},
]
RELATIONS = [
    {"from": "a", "to": "b", "type": "IMPLEMENTS"},
    {"from": "a", "to": "b", "type": "PART_OF"},
    {"from": "b", "to": "b", "type": "DEPENDS_ON"},
]


@pytest.fixture
def content(graph):
    graph.init("g", NODES, RELATIONS)
    with graph.store.reading() as graphs:
        yield graphs["g"]


def test_json_is_what_init_takes(content, graph):
    document = json.loads(as_text(content, "g", "json"))
    assert document == {"nodes": NODES, "relations": RELATIONS}
    graph.init("copy", **document)
    with graph.store.reading() as graphs:
        assert as_text(graphs["copy"], "copy", "json") == as_text(content, "g", "json")


def test_an_empty_graph_has_every_form(graph):
    graph.init("g")
    with graph.store.reading() as graphs:
        assert json.loads(as_text(graphs["g"], "g", "json")) == {"nodes": [], "relations": []}
        ET.fromstring(as_text(graphs["g"], "g", "graphml"))  # noqa: S314 - made here


def test_graphml_is_xml_with_the_properties_as_json(content):
    space = "{http://graphml.graphdrawing.org/xmlns}"
    root = ET.fromstring(as_text(content, "g", "graphml"))  # noqa: S314 - made here
    first = root.find(f".//{space}node[@id='a']")
    assert first.find(f"{space}data[@key='type']").text == "Signal"
    assert json.loads(first.find(f"{space}data[@key='properties']").text) == NODES[0]["properties"]
    edges = [(e.get("source"), e.get("target"), e[0].text) for e in root.iter(f"{space}edge")]
    assert edges == [(r["from"], r["to"], r["type"]) for r in RELATIONS]


def test_networkx_reads_the_same_graph(content):
    nx = pytest.importorskip("networkx", reason="needs networkx")
    from designgraph.exchange import to_networkx

    made = to_networkx(content)
    read = nx.node_link_graph(to_node_link(content, "g"), edges="edges")
    for graph in (made, read):
        assert isinstance(graph, nx.MultiDiGraph)
        assert sorted(graph.edges(keys=True)) == [(r["from"], r["to"], r["type"]) for r in RELATIONS]
        assert graph.nodes["a"]["properties"] == NODES[0]["properties"]


def test_xml_holds_no_character_that_xml_forbids():
    text = xml_text("".join(map(chr, range(0x20))) + "\ufffe\uffff<&>\"'")
    assert ET.fromstring(f"<a>{text}</a>").text.endswith("<&>\"'")  # noqa: S314 - made here


def test_the_part_file_of_a_killed_export_is_taken_over_by_the_next(tmp_path):
    target, part = tmp_path / "graph.svg", tmp_path / ".graph.svg.part"
    part.write_bytes(b"half of a picture, and longer than the next")
    replace_file(target, b"whole")
    assert [path.name for path in tmp_path.iterdir()] == ["graph.svg"]
    assert target.read_bytes() == b"whole"


def test_exports_to_one_file_at_once_leave_one_whole_content(tmp_path):
    contents = [bytes([65 + number]) * 100_000 for number in range(8)]
    threads = [threading.Thread(target=replace_file, args=(tmp_path / "f", content)) for content in contents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (tmp_path / "f").read_bytes() in contents
    assert [path.name for path in tmp_path.iterdir()] == ["f"]
