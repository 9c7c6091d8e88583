"""The eight operations: the specification's answers and codes (S2.1-S2.5), held against a model of dicts and sets."""

import json
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from designgraph import GraphError, KnowledgeGraph, Page, answer, open_graph


@pytest.fixture(autouse=True)
def project(tmp_path, monkeypatch):
    monkeypatch.delenv("KG_FILE", raising=False)
    monkeypatch.setenv("CHIPFORGE_PROJECT", str(tmp_path))
    return tmp_path


def done(operation, **arguments):
    result = answer(operation, graphId="demo", **arguments)
    assert (result["success"], set(result)) == (True, {"success", "data"}), result
    return result["data"]


def code(operation, **arguments):
    result = answer(operation, **{"graphId": "demo", **arguments})
    assert (result["success"], set(result)) == (False, {"success", "error", "code"}), result
    return result["code"]


CLK = {"id": "clk", "type": "Signal", "properties": {"description": "时钟信号", "width": "1"}}
EXAMPLE = {"id": "clk_example", "type": "SignalExample", "properties": {}}
RELATION = {"from": "clk", "to": "clk_example", "type": "EXAMPLES"}


@pytest.fixture
def demo():
    done("kg_init", nodes=[CLK, EXAMPLE], relations=[RELATION])


@pytest.mark.usefixtures("demo")
class TestSeed:
    """The examples and codes of the specification."""

    def test_the_file_is_where_the_specification_says_and_holds_its_structures(self, project):
        document = json.loads((project / ".chipforge" / "kg" / "graph.json").read_text(encoding="utf-8"))
        assert document["graphs"]["demo"] == {"nodes": [CLK, EXAMPLE], "relations": [RELATION]}

    def test_list_answers_nodes_without_relations(self):
        assert done("kg_list")["nodes"] == [CLK, EXAMPLE]
        assert done("kg_list", type="Signal")["nodes"] == [CLK]

    def test_query_answers_what_relations_lead_to(self):
        found = done("kg_query", nodeId="clk", depth=1)
        assert [node["id"] for node in found["nodes"]] == ["clk", "clk_example"]
        assert found["relations"] == [RELATION]

    def test_init_replaces_the_whole_graph(self):
        answered = done("kg_init", nodes=[EXAMPLE], relations=[])
        assert answered["replaced"] == {"nodes": 2, "relations": 1}
        assert done("kg_list")["nodes"] == [EXAMPLE]

    def test_update_replaces_all_properties(self):
        assert done("kg_update_node", id="clk", properties={"width": "2"})["previous"] == CLK["properties"]
        assert done("kg_list", type="Signal")["nodes"][0]["properties"] == {"width": "2"}

    @pytest.mark.parametrize(
        ("operation", "arguments", "expected"),
        [
            ("kg_create_node", {"id": "clk", "type": "Signal", "properties": {}}, "NODE_EXISTS"),
            ("kg_create_node", {"id": "9clk", "type": "Signal", "properties": {}}, "INVALID_ID"),
            ("kg_create_node", {"id": "x", "type": "Wire", "properties": {}}, "INVALID_TYPE"),
            ("kg_create_relation", {"fromId": "clk", "toId": "ghost", "type": "EXAMPLES"}, "NODE_NOT_FOUND"),
            ("kg_create_relation", {"fromId": "ghost", "toId": "clk", "type": "EXAMPLES"}, "NODE_NOT_FOUND"),
            ("kg_create_relation", {"fromId": "clk", "toId": "clk_example", "type": "EXAMPLES"}, "RELATION_EXISTS"),
            ("kg_create_relation", {"fromId": "clk", "toId": "clk_example", "type": "NORELATION"}, "INVALID_TYPE"),
            ("kg_delete_node", {"id": "clk"}, "HAS_RELATIONS"),
            ("kg_delete_node", {"id": "clk_example"}, "HAS_RELATIONS"),
            ("kg_delete_node", {"id": "ghost"}, "NODE_NOT_FOUND"),
            ("kg_delete_relation", {"fromId": "clk", "toId": "clk_example", "type": "DRIVES"}, "RELATION_NOT_FOUND"),
            ("kg_delete_relation", {"fromId": "clk_example", "toId": "clk", "type": "EXAMPLES"}, "RELATION_NOT_FOUND"),
            ("kg_delete_relation", {"fromId": "ghost", "toId": "clk", "type": "EXAMPLES"}, "RELATION_NOT_FOUND"),
            ("kg_update_node", {"id": "ghost", "properties": {}}, "NODE_NOT_FOUND"),
            ("kg_query", {"nodeId": "ghost", "depth": 1}, "NODE_NOT_FOUND"),
            ("kg_query", {"nodeId": "clk", "depth": 1, "graphId": "other"}, "NODE_NOT_FOUND"),
            ("kg_query", {"nodeId": "clk", "relationTypes": ["WIRE"]}, "INVALID_TYPE"),
            ("kg_list", {"type": "Wire"}, "INVALID_TYPE"),
            ("kg_list", {"graphId": "../demo"}, "INVALID_ID"),
            ("kg_query", {"nodeId": "clk", "depth": -1}, "INVALID_PARAM"),
            ("kg_query", {"nodeId": "clk", "depth": True}, "INVALID_PARAM"),
            ("kg_list", {"limit": 0}, "INVALID_PARAM"),
            ("kg_list", {"fields": ["colour"]}, "INVALID_PARAM"),
            ("kg_list", {"cursor": "no/cursor"}, "INVALID_PARAM"),
            ("kg_query", {"nodeId": "clk", "cursor": "x"}, "INVALID_PARAM"),
            ("kg_create_node", {"id": "x", "type": "Signal", "properties": {"a": float("nan")}}, "INVALID_PARAM"),
            ("kg_create_node", {"id": "x", "type": "Signal", "properties": {1: 2}}, "INVALID_PARAM"),
            ("kg_create_node", {"id": "x", "type": "Signal", "properties": {"a": [2**63]}}, "INVALID_PARAM"),
            ("kg_create_node", {"id": "x", "type": "Signal", "properties": {"a": "\0"}}, "INVALID_PARAM"),
            ("kg_create_node", {"id": "x", "type": "Signal", "properties": {"\0": 1}}, "INVALID_PARAM"),
            ("kg_create_node", {"id": "x", "type": "Signal", "properties": {"a": {1, 2}}}, "INVALID_PARAM"),
            ("kg_create_node", {"id": "x", "type": "Signal", "properties": {"a": "\ud800"}}, "INVALID_PARAM"),
            ("kg_create_node", {"id": "x", "type": "Signal", "properties": {"a": "x" * 300_000}}, "INVALID_PARAM"),
            ("kg_create_node", {"id": "x"}, "INVALID_PARAM"),
            ("kg_create_node", {"id": "x", "type": "Signal", "colour": "red"}, "INVALID_PARAM"),
            ("kg_paint", {}, "INVALID_PARAM"),
        ],
    )
    def test_each_refusal_has_its_code_and_changes_nothing(self, project, operation, arguments, expected):
        file = project / ".chipforge" / "kg" / "graph.json"
        before = file.read_bytes()
        assert code(operation, **arguments) == expected
        assert file.read_bytes() == before
        assert done("kg_list")["nodes"] == [CLK, EXAMPLE]

    def test_two_nodes_may_have_relations_of_several_types(self):
        done("kg_create_relation", fromId="clk", toId="clk_example", type="DRIVES")
        done("kg_create_relation", fromId="clk_example", toId="clk", type="DRIVES")
        assert done("kg_query", nodeId="clk", depth=2)["totalRelations"] == 3
        done("kg_delete_relation", fromId="clk", toId="clk_example", type="EXAMPLES")
        assert done("kg_query", nodeId="clk", depth=2)["totalRelations"] == 2

    def test_a_relation_is_deleted_by_its_type_in_any_case(self):
        assert done("kg_delete_relation", fromId="clk", toId="clk_example", type="examples")["type"] == "EXAMPLES"
        assert done("kg_query", nodeId="clk", depth=2)["totalRelations"] == 0

    def test_a_node_may_be_related_to_itself(self):
        done("kg_create_relation", fromId="clk", toId="clk", type="DEPENDS_ON")
        assert code("kg_delete_node", id="clk") == "HAS_RELATIONS"
        assert done("kg_query", nodeId="clk", depth=3, direction="both")["total"] == 2

    def test_graphs_of_one_file_do_not_know_each_other(self):
        assert answer("kg_list", graphId="Demo")["data"]["nodes"] == []
        assert answer("kg_create_node", graphId="Demo", id="clk", type="Plan", properties={})["success"]
        assert done("kg_list")["nodes"] == [CLK, EXAMPLE]

    def test_a_list_without_a_graph_lists_the_graphs(self):
        answer("kg_init", graphId="second")
        data = answer("kg_list")["data"]
        assert data["graphs"] == [
            {"graphId": "demo", "nodes": 2, "relations": 1}, {"graphId": "second", "nodes": 0, "relations": 0},
        ]  # fmt: skip
        assert data["total"] == 2

    @pytest.mark.parametrize(
        ("operation", "more"),
        [
            ("kg_query", {"nodeId": "a"}),
            ("kg_delete_node", {"id": "a"}),
            ("kg_update_node", {"id": "a", "properties": {}}),
            ("kg_create_relation", {"fromId": "a", "toId": "b", "type": "EXAMPLES"}),
            ("kg_delete_relation", {"fromId": "a", "toId": "b", "type": "EXAMPLES"}),
        ],
    )
    def test_an_unknown_graph_is_called_that(self, operation, more):
        result = answer(operation, graphId="dmeo", **more)
        assert (result["code"], result["error"]) == (
            "RELATION_NOT_FOUND" if operation == "kg_delete_relation" else "NODE_NOT_FOUND",
            "graph 'dmeo' does not exist; there are: demo",
        )

    def test_a_graph_that_does_not_exist_is_empty_with_a_warning(self):
        data = answer("kg_list", graphId="dmeo")["data"]
        assert (data["nodes"], data["warnings"]) == ([], ["graph 'dmeo' does not exist; there are: demo"])


@pytest.mark.parametrize(
    "wrong",
    [
        "",
        "1a",
        "-a",
        "a b",
        "a.b",
        "a\n",
        "\na",
        "ä",
        "a" * 61,
        "../a",
        "a/b",
        "a\0",
        "\uff41",
        "a\u200b",
        None,
        7,
        ["a"],
    ],
)
def test_an_id_that_the_whole_rule_does_not_match_is_refused_everywhere(wrong):
    """S2.4; ``re.match("^...$")`` would accept "clk\\n"."""
    assert code("kg_create_node", id=wrong, type="Signal", properties={}) == "INVALID_ID"
    assert code("kg_list", graphId=wrong) == "INVALID_ID"
    assert code("kg_query", nodeId=wrong, depth=1) == "INVALID_ID"
    assert code("kg_create_relation", fromId=wrong, toId="a", type="DRIVES") == "INVALID_ID"
    assert code("kg_init", nodes=[{"id": wrong, "type": "Signal"}]) == "INVALID_ID"


@pytest.mark.parametrize("right", ["a", "_", "A-1", "a" * 60, "__proto__", "end", "CON", "x--y"])
def test_every_id_that_the_rule_matches_is_stored(right, project):
    done("kg_create_node", id=right, type="Signal", properties={"of": right})
    again = KnowledgeGraph(project / ".chipforge" / "kg" / "graph.json")
    assert again.list_nodes("demo")["nodes"] == [{"id": right, "type": "Signal", "properties": {"of": right}}]


def test_ids_differ_by_case():
    for node in ("clk", "CLK", "Clk"):
        done("kg_create_node", id=node, type="Signal", properties={})
    assert [node["id"] for node in done("kg_list")["nodes"]] == ["CLK", "Clk", "clk"]


@pytest.mark.usefixtures("demo")
def test_init_is_all_or_nothing_and_tells_every_fault():
    nodes = [{"id": "a", "type": "Signal"}, {"id": "a", "type": "Plan"}, {"id": "b c", "type": "Signal"}, "text"]
    relations = [{"from": "a", "to": "zz", "type": "DRIVES"}, {"from": "a", "to": "a", "type": "DRIVES", "note": 1}]
    with pytest.raises(GraphError) as caught:
        open_graph().init("demo", nodes, relations)
    assert caught.value.code == "NODE_EXISTS"
    assert [(e["path"], e["code"]) for e in caught.value.details["errors"]] == [
        ("nodes[1]", "NODE_EXISTS"),
        ("nodes[2]", "INVALID_ID"),
        ("nodes[3]", "INVALID_PARAM"),
        ("relations[0]", "NODE_NOT_FOUND"),
        ("relations[1]", "INVALID_PARAM"),
    ]
    assert done("kg_list")["nodes"] == [CLK, EXAMPLE]


def test_what_is_answered_is_a_copy():
    properties = {"list": [1]}
    done("kg_create_node", id="a", type="Signal", properties=properties)
    properties["list"].append(2)
    done("kg_list")["nodes"][0]["properties"]["list"].append(3)
    assert done("kg_list")["nodes"][0]["properties"] == {"list": [1]}


def test_properties_keep_every_json_value(project):
    values = {
        "n": None,
        "t": True,
        "i": 2**63 - 1,
        "f": 1.5e-300,
        "s": '\x01\u2028"\\</script>\U0001f600',
        "d": {"": [[]]},
    }
    done("kg_create_node", id="a", type="Signal", properties=values)
    again = KnowledgeGraph(project / ".chipforge" / "kg" / "graph.json")
    assert again.list_nodes("demo")["nodes"][0]["properties"] == values


def test_a_reading_makes_no_file(project):
    answer("kg_list", graphId="demo")
    code("kg_query", nodeId="a", depth=1)
    assert list(project.iterdir()) == []


def test_kg_file_names_another_file(project, monkeypatch):
    monkeypatch.setenv("KG_FILE", str(project / "other" / "mine.json"))
    done("kg_create_node", id="a", type="Signal", properties={})
    assert sorted(file.name for file in (project / "other").iterdir()) == ["mine.json", "mine.json.lock"]
    monkeypatch.delenv("KG_FILE")
    assert done("kg_list")["nodes"] == []


def test_without_a_project_the_graph_is_in_the_current_folder(tmp_path, monkeypatch):
    monkeypatch.delenv("CHIPFORGE_PROJECT")
    monkeypatch.chdir(tmp_path)
    done("kg_create_node", id="a", type="Signal", properties={})
    assert Path(".chipforge/kg/graph.json").exists()


@pytest.fixture
def chain():
    """a -> b -> c -> d, and e -> b, d -> a."""
    nodes = [{"id": node, "type": "Signal"} for node in "abcde"]
    pairs = [
        ("a", "b", "DRIVES"),
        ("b", "c", "CONNECTS"),
        ("c", "d", "DRIVES"),
        ("e", "b", "DRIVES"),
        ("d", "a", "DRIVES"),
    ]
    done("kg_init", nodes=nodes, relations=[dict(zip(("from", "to", "type"), pair, strict=True)) for pair in pairs])


@pytest.mark.usefixtures("chain")
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"depth": 0}, {"b": 0}),
        ({}, {"b": 0, "c": 1}),
        ({"depth": 2}, {"b": 0, "c": 1, "d": 2}),
        ({"depth": 9}, {"b": 0, "c": 1, "d": 2, "a": 3}),
        ({"direction": "in"}, {"b": 0, "a": 1, "e": 1}),
        ({"direction": "both"}, {"b": 0, "a": 1, "c": 1, "e": 1}),
        ({"depth": 9, "relationTypes": ["CONNECTS"]}, {"b": 0, "c": 1}),
        ({"depth": 9, "relationTypes": []}, {"b": 0}),
    ],
)
def test_query_walks_to_a_depth_in_a_direction_over_chosen_types(arguments, expected):
    found = done("kg_query", nodeId="b", **arguments)
    assert {node["id"]: node["distance"] for node in found["nodes"]} == expected
    reached = {(r["from"], r["to"]) for r in found["relations"]}
    assert all({source, target} <= set(expected) for source, target in reached)


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 100])
def test_pages_put_together_are_the_whole_list(limit):
    done("kg_init", nodes=[{"id": f"n{i}", "type": "Signal" if i % 3 else "Plan"} for i in range(20)])
    for kind in (None, "Signal"):
        whole = done("kg_list", **({"type": kind} if kind else {}))
        pages, cursor = [], ""
        while cursor is not None:
            page = done("kg_list", limit=limit, cursor=cursor, **({"type": kind} if kind else {}))
            assert page["total"] == whole["total"]
            pages += page["nodes"]
            cursor = page.get("nextCursor")
        assert pages == whole["nodes"]


@pytest.mark.usefixtures("chain")
@pytest.mark.parametrize("limit", [1, 2, 3])
def test_pages_of_a_walk_have_each_node_and_relation_once(limit):
    whole = done("kg_query", nodeId="b", depth=9, direction="both")
    nodes, relations, cursor = [], [], ""
    while cursor is not None:
        page = done("kg_query", nodeId="b", depth=9, direction="both", limit=limit, cursor=cursor)
        nodes += page["nodes"]
        relations += page["relations"]
        seen = {node["id"] for node in nodes}
        assert all({r["from"], r["to"]} <= seen for r in relations)
        cursor = page.get("nextCursor")
    assert nodes == whole["nodes"]
    assert sorted(map(str, relations)) == sorted(map(str, whole["relations"]))


def test_a_hub_does_not_flood_the_answer():
    nodes = [{"id": f"n{i}", "type": "Signal"} for i in range(3000)]
    done("kg_init", nodes=nodes, relations=[{"from": "n0", "to": f"n{i}", "type": "DRIVES"} for i in range(1, 3000)])
    first = done("kg_query", nodeId="n0", depth=1)
    assert (len(first["nodes"]), first["total"], len(first["relations"])) == (1000, 3000, 999)
    few = done("kg_query", nodeId="n0", depth=1, limit=2, fields=["type", "properties.width"])
    assert few["nodes"] == [
        {"id": "n0", "type": "Signal", "properties": {}, "distance": 0},
        {"id": "n1", "type": "Signal", "properties": {}, "distance": 1},
    ]
    assert code("kg_create_relation", fromId="n0", toId="n77", type="DRIVES") == "RELATION_EXISTS"
    done("kg_delete_relation", fromId="n0", toId="n77", type="DRIVES")
    done("kg_create_relation", fromId="n0", toId="n77", type="DRIVES")


def test_fields_choose_what_of_a_node_is_answered():
    done("kg_create_node", id="a", type="Signal", properties={"x": 1, "y.z": 2})
    assert done("kg_list", fields=["id"])["nodes"] == [{"id": "a"}]
    assert done("kg_list", fields=["type", "properties.y.z"])["nodes"] == [
        {"id": "a", "type": "Signal", "properties": {"y.z": 2}}
    ]


IDS = st.sampled_from(["a", "b", "c", "d"])
TYPES = st.sampled_from(["DRIVES", "CONNECTS"])


class AgainstAModel(RuleBasedStateMachine):
    """Every operation, reopening and folding, against plain dicts and sets."""

    @initialize()
    def begin(self):
        import tempfile

        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name, "graph.json")
        self.graph = KnowledgeGraph(self.path)
        self.nodes, self.relations = {}, set()

    def teardown(self):
        if hasattr(self, "graph"):
            self.folder.cleanup()

    def attempt(self, operation, expected):
        code = None
        try:
            operation()
        except GraphError as error:
            code = error.code
        assert code == expected
        return code is None

    @rule(node=IDS, value=st.integers(0, 3))
    def create_node(self, node, value):
        expected = "NODE_EXISTS" if node in self.nodes else None
        if self.attempt(lambda: self.graph.create_node("g", node, "Signal", {"v": value}), expected):
            self.nodes[node] = value

    @rule(node=IDS, value=st.integers(0, 3))
    def update_node(self, node, value):
        expected = None if node in self.nodes else "NODE_NOT_FOUND"
        if self.attempt(lambda: self.graph.update_node("g", node, {"v": value}), expected):
            self.nodes[node] = value

    @rule(node=IDS)
    def delete_node(self, node):
        related = any(node in (source, target) for source, target, _ in self.relations)
        expected = "NODE_NOT_FOUND" if node not in self.nodes else "HAS_RELATIONS" if related else None
        if self.attempt(lambda: self.graph.delete_node("g", node), expected):
            del self.nodes[node]

    @rule(first=IDS, second=IDS, kind=TYPES)
    def create_relation(self, first, second, kind):
        missing = {first, second} - set(self.nodes)
        exists = (first, second, kind) in self.relations
        expected = "NODE_NOT_FOUND" if missing else "RELATION_EXISTS" if exists else None
        if self.attempt(lambda: self.graph.create_relation("g", first, second, kind), expected):
            self.relations.add((first, second, kind))

    @rule(first=IDS, second=IDS, kind=TYPES)
    def delete_relation(self, first, second, kind):
        expected = None if (first, second, kind) in self.relations else "RELATION_NOT_FOUND"
        if self.attempt(lambda: self.graph.delete_relation("g", first, second, kind), expected):
            self.relations.discard((first, second, kind))

    @rule(chosen=st.sets(IDS))
    def init(self, chosen):
        self.graph.init("g", [{"id": node, "type": "Signal", "properties": {"v": 9}} for node in chosen])
        self.nodes, self.relations = dict.fromkeys(chosen, 9), set()

    @rule()
    def reopen(self):
        self.graph = KnowledgeGraph(self.path)

    @rule()
    def fold(self):
        self.graph.store.fold()

    @invariant()
    def agrees(self):
        listed = self.graph.list_nodes("g")
        assert {node["id"]: node["properties"]["v"] for node in listed["nodes"]} == self.nodes
        for node in self.nodes:
            found = self.graph.query("g", node, 1, direction="both", page=Page())
            expected = {r for r in self.relations if node in r[:2]}
            assert {(r["from"], r["to"], r["type"]) for r in found["relations"]} == expected


AgainstAModel.TestCase.settings = settings(max_examples=25, stateful_step_count=25, deadline=None)
TestAgainstAModel = AgainstAModel.TestCase
