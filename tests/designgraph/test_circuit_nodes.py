"""Circuits, constraints and layout history as nodes and relations, and importing them into a graph."""

import pytest

from designgraph import GraphError
from designgraph.bulk_import import AssignedIds, Import, ImportedNode, Name, import_nodes
from designgraph.consistency import check_graph
from designgraph.graph import is_id
from layoutkit.circuit import read_netlist
from layoutkit.errors import LayoutkitError
from layoutkit.tools.circuit_nodes import circuit_nodes

NETLIST = """* pair
.subckt top inp inn out vdd vss
X1 inp inn out tail vdd half
M5 tail bias vss vss nmos_1v8 w=2u l=1u
M6 bias bias vss vss nmos_1v8 w=2u l=1u
.ends
.subckt half inp inn out tail vdd
M1 n1 inp tail tail nmos_1v8 w=4u l=1u
M2 out inn tail tail nmos_1v8 w=4u l=1u
M3 n1 n1 vdd vdd pmos_1v8 w=4u l=1u
M4 out n1 vdd vdd pmos_1v8 w=4u l=1u
.ends
"""


@pytest.fixture
def read(tmp_path):
    def make(text=NETLIST, **more):
        file = tmp_path / "top.sp"
        file.write_text(text)
        return circuit_nodes(read_netlist(file), "top.sp", **more)

    return make


def import_circuit(graph, graph_id, nodes, **options):
    """Join the two packages as the tool ``kg.import_circuit`` does."""
    return import_nodes(graph, graph_id, Import(**nodes), **options)


def nodes_of(graph, kind):
    return {node["id"]: node["properties"] for node in graph.list_nodes("g", kind)["nodes"]}


def ends(graph, node, kind, direction="out"):
    found = graph.query("g", node, 1, direction=direction, relation_types=[kind])
    return sorted(n["id"] for n in found["nodes"] if n["distance"])


def test_a_netlist_becomes_devices_nets_blocks_and_constraints(graph, read):
    answered = import_circuit(graph, "g", read())
    devices = nodes_of(graph, "Device")
    assert sorted(devices) == ["M5", "M6", "X1_M1", "X1_M2", "X1_M3", "X1_M4"]
    assert devices["X1_M1"]["name"] == "X1.M1"
    assert (devices["X1_M1"]["kind"], devices["X1_M1"]["w"]) == ("nmos", pytest.approx(4e-6))
    assert answered["renamed"]["X1.M1"] == "X1_M1"
    nets = nodes_of(graph, "Net")
    assert nets["net_vdd"] == {"name": "vdd", "port": True, "supply": "power", "circuit": "circuit_top"}
    assert nets["net_X1_n1"]["port"] is False
    assert ends(graph, "X1_M1", "TERMINAL_G") == ["net_inp"]
    assert sorted(ends(graph, "net_tail", "TERMINAL_S", "in")) == ["X1_M1", "X1_M2"]
    blocks = nodes_of(graph, "Block")
    pair = next(block for block, about in blocks.items() if about["kind"] == "differential_pair")
    assert ends(graph, pair, "PART_OF", "in") == ["X1_M1", "X1_M2"]
    assert ends(graph, f"symmetry_{pair}", "CONSTRAINS") == ["X1_M1", "X1_M2"]
    assert ends(graph, "circuit_top", "VERIFIES", "in") == []
    verdict = check_graph(graph, "g")
    assert verdict["passed"], verdict


def test_every_connection_of_the_circuit_is_there_and_no_other(graph, read, tmp_path):
    """Against the circuit itself, terminal by terminal."""
    import_circuit(graph, "g", read())
    names = {about["name"]: node for kind in ("Device", "Net") for node, about in nodes_of(graph, kind).items()}
    with graph.store.reading() as graphs:
        stored = {r for r in graphs["g"].edges(keys=True) if r[2].startswith("TERMINAL_")}
    assert stored == {
        (names[device.id], names[net], f"TERMINAL_{terminal.upper()}")
        for device in read_netlist(tmp_path / "top.sp").devices
        for terminal, net in device.terminals.items()
    }


def test_importing_again_changes_nothing_and_keeps_notes(graph, read):
    first = import_circuit(graph, "g", read())
    before = graph.store.path.read_bytes()
    import_circuit(graph, "g", read())
    assert graph.store.path.read_bytes() == before
    graph.update_node("g", "M5", {**nodes_of(graph, "Device")["M5"], "note": "hot"})
    graph.create_node("g", "why", "Decision", {})
    graph.create_relation("g", "why", "M5", "CONCERNS")
    again = import_circuit(graph, "g", read())
    assert again["unchanged"] == first["nodesCreated"] + first["relationsCreated"]
    assert (again["nodesCreated"], again["nodesUpdated"], again["stale"]) == (0, 0, [])
    assert nodes_of(graph, "Device")["M5"]["note"] == "hot"


def test_a_changed_netlist_moves_terminals_and_reports_what_is_gone(graph, read):
    import_circuit(graph, "g", read())
    changed = NETLIST.replace("M5 tail bias", "M5 tail out").replace("M6 bias bias vss vss nmos_1v8 w=2u l=1u\n", "")
    answered = import_circuit(graph, "g", read(changed))
    assert ends(graph, "M5", "TERMINAL_G") == ["net_out"]
    assert answered["relationsDeleted"] == 1
    assert {"M6", "net_bias"} <= set(answered["stale"])


def test_replace_makes_the_graph_anew(graph, read):
    graph.create_node("g", "mine", "Plan")
    answered = import_circuit(graph, "g", read(), replace=True)
    assert answered["replaced"] == {"nodes": 1, "relations": 0}
    assert nodes_of(graph, "Plan") == {}


def test_two_circuits_share_a_graph_by_prefix(graph, read):
    import_circuit(graph, "g", read(), prefix="a_")
    import_circuit(graph, "g", read(), prefix="b_")
    assert {"a_M5", "b_M5"} <= set(nodes_of(graph, "Device"))
    assert ends(graph, "a_M5", "TERMINAL_D") == ["a_net_tail"]


def test_an_id_that_is_something_else_already_is_refused(graph, read):
    graph.create_node("g", "M5", "Signal")
    with pytest.raises(GraphError, match="exists with type Signal") as caught:
        import_circuit(graph, "g", read())
    assert caught.value.code == "INVALID_TYPE"
    assert nodes_of(graph, "Device") == {}


def test_constraints_are_related_to_what_they_name(graph, read):
    given = [
        {"kind": "symmetry", "devices": ["X1.M1", "X1.M2"], "axis": "vertical"},
        {"kind": "net_width", "nets": ["vdd"], "width_um": 2},
    ]
    import_circuit(graph, "g", read(constraints=given))
    constraints = nodes_of(graph, "Constraint")
    assert len(constraints) == 2
    symmetric = next(node for node, about in constraints.items() if about["kind"] == "symmetry")
    assert ends(graph, symmetric, "CONSTRAINS") == ["X1_M1", "X1_M2"]
    assert constraints[symmetric]["axis"] == "vertical"


def test_planned_constraints_come_as_lists_by_kind(graph, read):
    """The form of plan.suggest_constraints."""
    planned = {
        "symmetry": [
            {"pairs": [["X1.M1", "X1.M2"]], "self_symmetric": ["M5"], "net_pairs": [["inp", "inn"]], "reason": "pair"}
        ],
        "matching": [{"devices": ["X1.M3", "X1.M4"], "arrangement": "ABBA", "reason": "mirror"}],
        "net_priorities": [{"net": "tail", "priority": 5, "kind": "sensitive", "reason": "r"}],
        "proximity": [{"devices": ["M5", "M6"], "reason": "bias"}],
        "net_currents": [{"net": "out", "current": 1e-3, "reason": "load"}],
        "port_sides": [{"port": "inp", "side": "left", "reason": "pads"}],
        "outline": [{"width": 20.0, "reason": "room"}],
    }
    import_circuit(graph, "g", read(constraints=planned))
    by_kind = {about["kind"]: (node, about) for node, about in nodes_of(graph, "Constraint").items()}
    assert sorted(by_kind) == [
        "matching",
        "net_current",
        "net_priority",
        "outline",
        "port_side",
        "proximity",
        "symmetry",
    ]
    assert ends(graph, by_kind["port_side"][0], "CONSTRAINS") == ["net_inp"]
    assert ends(graph, by_kind["symmetry"][0], "CONSTRAINS") == ["M5", "X1_M1", "X1_M2", "net_inn", "net_inp"]
    assert by_kind["net_priority"][1]["role"] == "sensitive"


def test_constraints_about_nothing_are_refused_all_at_once(read):
    given = [{"kind": "symmetry", "devices": ["M9"]}, {"devices": ["M5"]}, {"kind": "x", "text": "free"}]
    with pytest.raises(LayoutkitError) as caught:
        read(constraints=given)
    assert caught.value.code == "INVALID_PARAM"
    assert [fault.split(" ")[0] for fault in caught.value.details["faults"]] == [f"constraints[{i}]" for i in range(3)]


def report(violations, matched=True):
    return {
        "technology": "sky130A",
        "drc": {
            "passed": not violations,
            "total_violations": violations,
            "violations": [{"rule_id": "m1.2", "count": violations}] if violations else [],
        },
        "lvs": {"matched": matched, "mismatches": [] if matched else [{"message": "net x is open"}]},
        "routing": {"routed": 5, "failed": []},
        "warnings": ["l of M5 was raised to 0.5 um"],
        "modules": [{"name": "pair_1", "devices": ["X1.M1", "X1.M2"], "symmetric": True, "type": "differential_pair"}],
    }


def test_the_history_of_a_layout_grows_only_when_a_verdict_changes(graph, read):
    for outcome in (3, 3, 0, 0, 3):
        import_circuit(graph, "g", read(report=report(outcome)))
    results = nodes_of(graph, "Verification")
    assert [results[f"drc_{i}"]["total_violations"] for i in (1, 2, 3)] == [3, 0, 3]
    assert sorted(results) == ["drc_1", "drc_2", "drc_3", "lvs_1", "routing_1"]
    assert results["drc_1"]["violations"] == {"m1.2": 3}
    assert ends(graph, "drc_3", "VERIFIES") == ["circuit_top"]


def test_a_comparison_that_is_not_complete_has_not_passed(graph, read):
    incomplete = report(0)
    incomplete["lvs"]["complete"] = False
    import_circuit(graph, "g", read(report=incomplete))
    assert nodes_of(graph, "Verification")["lvs_1"]["passed"] is False


def test_what_the_flow_decided_is_kept_with_what_it_concerns(graph, read):
    import_circuit(graph, "g", read(report=report(0)))
    decisions = nodes_of(graph, "Decision")
    raised = next(node for node, about in decisions.items() if "raised" in about["text"])
    assert ends(graph, raised, "CONCERNS") == ["M5"]
    assert ends(graph, "drawn_pair_1", "CONCERNS") == ["X1_M1", "X1_M2"]
    assert decisions["drawn_pair_1"]["symmetric"] is True


@pytest.mark.parametrize("name", ["X1.M2", "0", "data[3]", "a b", "节点", "-x", "x" * 100, "", "../../x", "n\n"])
def test_any_name_gets_a_valid_id_that_stays(name):
    made = AssignedIds().of(Name("Net", name, "net_"))
    assert is_id(made)
    assert AssignedIds().of(Name("Net", name, "net_")) == made
    assert is_id(AssignedIds().of(Name("Device", name)))


def test_names_that_look_alike_as_ids_are_kept_apart():
    ids = AssignedIds()
    texts = ["a.b", "a_b", "a b", "a[b", "x" * 90 + "1", "x" * 90 + "2"]
    names = [Name(kind, text) for kind in ("Device", "Block", "Net") for text in texts]
    made = [ids.of(name) for name in names]
    assert len(set(made)) == len(names)
    assert all(map(is_id, made))
    assert [ids.of(name) for name in names] == made


def test_an_id_stays_the_one_that_earlier_versions_gave():
    """Literals from version 0.1.0: importing again must find the nodes of an older graph."""
    ids = AssignedIds("a_")
    assert ids.of(Name("Net", "data[3]", "net_")) == "a_net_data_3_"
    assert ids.of(Name("Net", "data.3.", "net_")) == "a_net_data_3__badb7e40"
    long = Name("Constraint", "symmetry_" + "M1_" * 20, "constraint_")
    assert ids.of(long) == "a_constraint_symmetry_M1_M1_M1_M1_M1_M1_M1_M1_M1_M1_8e0741bd"


def test_a_block_and_a_device_with_the_same_name_are_two_nodes(graph):
    nodes = [ImportedNode(Name(kind, "pair_1"), {"kind": kind}) for kind in ("Circuit", "Block", "Device")]
    contained = (nodes[2].name, nodes[1].name, "PART_OF")
    import_nodes(graph, "g", Import(nodes[0].name, nodes, [contained]))
    listed = {node["type"]: node["id"] for node in graph.list_nodes("g")["nodes"]}
    assert sorted(listed) == ["Block", "Circuit", "Device"]
    assert ends(graph, listed["Block"], "PART_OF", "in") == [listed["Device"]]


def test_an_import_of_something_else_than_a_circuit_owns_only_the_types_it_names(graph):
    def source(signals, drives):
        root = Name("Module", "uart")
        nodes = [ImportedNode(root, {}), *(ImportedNode(Name("Signal", name), {}) for name in signals)]
        relations = [(Name("Signal", a), Name("Signal", b), "DRIVES") for a, b in drives]
        return Import(root, nodes, relations, "module", frozenset({"Signal"}), ("DRIVES",))

    import_nodes(graph, "g", source("abc", ["ab", "bc"]))
    graph.create_node("g", "mine", "Plan", {"module": "uart"})
    graph.create_relation("g", "a", "b", "CONNECTS")
    again = import_nodes(graph, "g", source("ab", []))
    assert (again["root"], again["stale"], again["relationsDeleted"]) == ("uart", ["c"], 2)
    assert ends(graph, "a", "CONNECTS") == ["b"]
    assert ends(graph, "a", "DRIVES") == []
    assert graph.list_nodes("g", "Signal")["nodes"][0]["properties"] == {"module": "uart"}
