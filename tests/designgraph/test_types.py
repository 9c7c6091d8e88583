"""The type rule (S2.3): known types by default, more from the project's types.yaml."""

import pytest

from designgraph import GraphError
from designgraph.graph import GraphFileError
from designgraph.type_rule import TypeRule, known_types


def invalid_type(match=None):
    return pytest.raises(GraphError, match=match, check=lambda error: error.code == "INVALID_TYPE")


def write(path, text):
    path.parent.mkdir(exist_ok=True)
    path.with_name("types.yaml").write_text(text, encoding="utf-8")


def test_the_types_of_the_specification_are_known():
    known = known_types()
    assert {"Plan", "Signal", "StateTransition", "SignalExample"} <= set(known["node_types"])
    assert {"IMPLEMENTS", "EXAMPLES", "STATETRANSITION"} <= set(known["relation_types"])
    assert all(about["description"] for types in known.values() for about in types.values())


def test_the_reference_lists_every_known_type():
    from pathlib import Path

    page = Path(__file__).parents[2] / "skills" / "design-knowledge-graph" / "references" / "types.md"
    text = page.read_text(encoding="utf-8")
    missing = [name for types in known_types().values() for name in types if f"`{name}`" not in text]
    assert missing == []


def test_an_unknown_type_is_refused_with_what_may_have_been_meant(graph, path):
    with invalid_type(match="did you mean Signal\\?") as caught:
        graph.create_node("g", "a", "signals")
    assert str(path.with_name("types.yaml")) in str(caught.value)
    assert "Signal" in caught.value.details["allowed"]


def test_a_type_in_another_case_is_the_known_one(graph, path):
    assert graph.create_node("g", "a", "signal")["type"] == "Signal"
    assert graph.create_relation("g", "a", "a", "Connects")["type"] == "CONNECTS"
    assert [node["id"] for node in graph.list_nodes("g", "SIGNAL")["nodes"]] == ["a"]
    with invalid_type():
        TypeRule({"None": {}}, {}, False, str(path)).check_node(None)
    write(path, "only: true\nnode_types: [Fifo, FIFO]")
    with invalid_type(match=r"known: Fifo, FIFO\)"):
        graph.create_node("g", "b", "fifo")


def test_a_key_that_stands_twice_is_refused_with_its_lines(graph, path):
    write(path, "node_types:\n  Fifo: {color: '#102030'}\n  Pipe: {}\n  Fifo: {color: '#405060'}")
    with pytest.raises(GraphFileError, match=r"types.yaml: line 4: its key is already in line 2"):
        graph.create_node("g", "a", "Fifo")


@pytest.mark.parametrize(
    "text", ["node_types: [Fifo]", "node_types: {Fifo: {color: '#102030'}}", "node_types: {Fifo: }", "open: true"]
)
def test_a_project_adds_types(graph, path, text):
    write(path, text)
    graph.create_node("g", "a", "Fifo")
    graph.create_node("g", "b", "Signal")


def test_a_project_may_allow_only_its_own_types(graph, path):
    write(path, "only: true\nnode_types: [Fifo]\nrelation_types: [FEEDS]")
    graph.create_node("g", "a", "Fifo")
    graph.create_relation("g", "a", "a", "FEEDS")
    with invalid_type():
        graph.create_node("g", "b", "Signal")


def test_types_may_belong_to_one_graph(graph, path):
    write(path, "graphs:\n  g: {node_types: [Fifo]}")
    graph.create_node("g", "a", "Fifo")
    with invalid_type():
        graph.create_node("h", "a", "Fifo")


def test_a_change_of_the_file_is_seen_at_once(graph, path):
    write(path, "node_types: [Fifo]")
    graph.create_node("g", "a", "Fifo")
    write(path, "node_types: [Queue]")
    with invalid_type():
        graph.create_node("g", "b", "Fifo")
    graph.create_node("g", "b", "Queue")


@pytest.mark.parametrize("name", ["", "A B", "a\n", "1a", "x" * 61, "<b>", None, 3])
def test_even_an_open_graph_takes_well_formed_names_only(graph, path, name):
    write(path, "open: true")
    with invalid_type():
        graph.create_node("g", "a", name)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("node_type: [A]", "node_type is unknown"),
        ("node_types: A", "must be a list of names"),
        ("node_types: [A B]", "'A B' is not a name"),
        ("node_types: {A: {colour: x}}", "node_types.A.colour is unknown"),
        ("relation_types: {A: {acyclic: 1}}", "node_types.A.acyclic must be"),
        ("open: 1", "open must be true or false"),
        ("graphs: [g]", "graphs must be a mapping"),
        ("graphs: {g: [A]}", "graphs.g must be a mapping"),
        ("a: !!python/object/apply:os.getcwd []", "is not valid YAML"),
        ("x" * 300_000, "not a regular file of at most"),
    ],
)
def test_a_wrong_file_is_refused_with_its_faults(graph, path, text, message):
    write(path, text)
    with pytest.raises(GraphError) as caught:
        graph.create_node("g", "a", "Signal")
    assert message.replace("node_types.A.acyclic", "relation_types.A.acyclic") in str(caught.value)
    assert caught.value.code == "INVALID_PARAM"
