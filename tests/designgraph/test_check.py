"""The consistency check (S2.6): each kind of finding from a graph that has it, and none from one that has not."""

import json
import os
import subprocess
import sys

import networkx as nx
import pytest

from designgraph import GraphError
from designgraph.consistency import check_graph, rings, width_of
from designgraph.consistency.state_machine import Condition, NotUnderstoodError, cases


def signal(node, **properties):
    return {"id": node, "type": "Signal", "properties": properties}


def related(*relations):
    return [dict(zip(("from", "to", "type"), relation, strict=True)) for relation in relations]


def found(graph, nodes, relations=(), *rules):
    """Return the findings of these rules (of all if none is named) as (rule, ids)."""
    graph.init("g", nodes, related(*relations))
    verdict = check_graph(graph, "g")
    assert verdict["passed"] is not any(f["severity"] == "error" for f in verdict["findings"])
    assert all(f["message"] and f["suggestion"] for f in verdict["findings"])
    return [(f["rule"], f["ids"]) for f in verdict["findings"] if not rules or f["rule"] in rules]


def transition(node, source, target, condition=None, **more):
    given = {"from": source, "to": target, **({} if condition is None else {"condition": condition}), **more}
    return {"id": node, "type": "StateTransition", "properties": given}


def machine(*steps, **register):
    """Return nodes and relations of a state machine whose register has these properties."""
    nodes = [signal("state", width=2, **register), *(transition(f"t{i}", *step) for i, step in enumerate(steps))]
    return nodes, [("state", f"t{i}", "STATETRANSITION") for i in range(len(steps))]


def test_an_empty_graph_is_not_clean(graph):
    graph.init("g")
    verdict = check_graph(graph, "g")
    assert verdict["passed"] is False
    assert verdict["warnings"] == ["graph 'g' has no nodes, so nothing was checked"]


def test_an_orphan_is_found(graph):
    nodes = [signal("a"), signal("b"), signal("c")]
    assert found(graph, nodes, [("a", "b", "DRIVES")]) == [("orphan", ["c"])]


@pytest.mark.parametrize(
    ("first", "second", "differ"),
    [
        ("8", 8, False),
        ("[7:0]", "8", False),
        ("[0:7]", "8 bits", False),
        ("8", "4", True),
        (1, "[1:0]", True),
        ("8", None, False),
        ("WIDTH", "WIDTH", False),
    ],
)
@pytest.mark.parametrize("kind", ["DRIVES", "CONNECTS"])
def test_connected_signals_of_different_width_conflict(graph, first, second, differ, kind):
    nodes = [signal("a", width=first), signal("b", **({} if second is None else {"width": second}))]
    expected = [("width_conflict", ["a", "b"])] if differ else []
    assert found(graph, nodes, [("a", "b", kind)]) == expected


def test_a_width_that_is_a_parameter_is_unchecked_not_clean(graph):
    graph.init("g", [signal("a", width="W"), signal("b", width="8")], related(("a", "b", "DRIVES")))
    verdict = check_graph(graph, "g")
    assert (verdict["findings"], verdict["unchecked"][0]["ids"]) == ([], ["a", "b"])
    assert "cannot be compared" in verdict["unchecked"][0]["reason"]


@pytest.mark.parametrize(
    ("text", "bits"),
    [
        (8, 8),
        ("8", 8),
        (" 8 ", 8),
        ("8位", 8),
        ("[31:0]", 32),
        ("[3:3]", 1),
        ("N-1", None),
        (True, None),
        ("", None),
        ("1.5", None),
    ],
)
def test_widths_are_read(text, bits):
    assert width_of(text) == bits


@pytest.mark.parametrize(
    ("first", "kind", "second", "rule"),
    [
        ("output", "CONNECTS", "output", "direction_conflict"),
        ("input", "CONNECTS", "input", "direction_conflict"),
        ("output", "CONNECTS", "input", None),
        ("inout", "CONNECTS", "output", None),
        ("output", "DRIVES", "input", "driven_input"),
        (None, "DRIVES", "input", "driven_input"),
        ("input", "DRIVES", "output", None),
    ],
)
def test_directions_that_do_not_go_together_conflict(graph, first, kind, second, rule):
    nodes = [signal("a", **({"direction": first} if first else {})), signal("b", direction=second)]
    assert found(graph, nodes, [("a", "b", kind)]) == ([(rule, ["a", "b"])] if rule else [])


def test_an_input_of_another_module_may_be_driven(graph):
    nodes = [signal("a", direction="output", module="x"), signal("b", direction="input", module="y")]
    assert found(graph, nodes, [("a", "b", "DRIVES")]) == []


def test_a_signal_with_two_drivers_is_found_unless_it_is_shared(graph):
    nodes = [signal("a"), signal("b"), signal("c"), signal("bus", shared=True)]
    relations = [(s, t, "DRIVES") for s in "ab" for t in ("c", "bus")]
    assert found(graph, nodes, relations) == [("several_drivers", ["c", "a", "b"])]


def test_an_example_needs_a_signal(graph):
    nodes = [signal("a"), *({"id": f"e{i}", "type": "SignalExample"} for i in range(3))]
    relations = [("a", "e0", "EXAMPLES"), ("e1", "a", "EXAMPLES"), ("e2", "e0", "EXAMPLES")]
    assert found(graph, nodes, relations) == [("example_without_signal", ["e2"])]


def test_a_reference_to_nothing_is_found(graph):
    nodes = [signal("a"), {"id": "e", "type": "SignalExample", "properties": {"signal": "b"}}]
    assert found(graph, nodes, [("a", "e", "EXAMPLES")]) == [("dangling_reference", ["e"])]


def test_cycles_where_none_may_be_are_found_each_once(graph):
    nodes = [{"id": node, "type": "Plan"} for node in "abcdefg"]
    relations = [("a", "b"), ("b", "c"), ("c", "a"), ("c", "d"), ("d", "e"), ("e", "d"), ("f", "f")]
    assert found(graph, nodes, [(*ends, "DEPENDS_ON") for ends in relations]) == [
        ("cycle", ["a", "b", "c"]),
        ("cycle", ["d", "e"]),
        ("cycle", ["f"]),
    ]
    assert found(graph, nodes, [(*ends, "CONNECTS") for ends in relations], "cycle") == []


def test_a_deep_chain_does_not_exhaust_the_stack():
    ids = [f"n{i}" for i in range(20_000)]
    assert len(rings(nx.DiGraph(zip(ids, [*ids[1:], ids[0]], strict=True)))[0]) == 20_000


def test_a_whole_state_machine_is_consistent(graph):
    steps = [("IDLE", "RUN", "go"), ("IDLE", "IDLE", "!go"), ("RUN", "IDLE", "done || abort"), ("RUN", "RUN", "else")]
    assert found(graph, *machine(*steps, initial="IDLE")) == []


def test_a_state_that_is_never_reached_is_found(graph):
    steps = [("IDLE", "RUN"), ("RUN", "IDLE"), ("DEAD", "IDLE")]
    assert found(graph, *machine(*steps, initial="IDLE")) == [("unreachable_state", ["t2"])]
    assert found(graph, *machine(*steps)) == [("unreachable_state", ["t2"])], "IDLE is taken for the first by its name"


def test_a_machine_that_does_not_say_where_it_begins_is_unchecked(graph):
    nodes, relations = machine(("A", "B"), ("B", "A"), ("C", "A"))
    graph.init("g", nodes, related(*relations))
    verdict = check_graph(graph, "g")
    assert verdict["findings"] == []
    assert "the initial state is not known" in verdict["unchecked"][0]["reason"]


@pytest.mark.parametrize("mark", [{"initial": True}, {}])
def test_a_transition_may_say_where_a_machine_begins(graph, mark):
    first = transition("t0", "B", "A", **mark) if mark else transition("t0", "reset", "B")
    nodes = [first, transition("t1", "B", "A"), transition("t2", "A", "B"), transition("t3", "C", "A")]
    assert ("unreachable_state", ["t3"]) in found(graph, nodes)


def test_a_state_that_nothing_leaves_is_found_unless_it_is_final(graph):
    steps = [("IDLE", "END")]
    assert found(graph, *machine(*steps, initial="IDLE")) == [("missing_transition", ["t0"])]
    assert found(graph, *machine(*steps, initial="IDLE", final=["END"])) == []


def test_a_state_that_is_named_but_has_no_transition_is_found(graph):
    steps = [("IDLE", "RUN"), ("RUN", "IDLE")]
    nodes, relations = machine(*steps, initial="IDLE", states=["IDLE", "RUN", "ERROR"])
    assert found(graph, nodes, relations) == [("missing_transition", ["state"]), ("unreachable_state", ["state"])]


@pytest.mark.parametrize(
    ("conditions", "missing", "conflict"),
    [
        (["a", "!a"], None, False),
        (["a", "b"], "a = 0, b = 0", True),
        (["a && b", "a && !b"], "a = 0, b = 0", False),
        (["a", "!a && b", "else"], None, False),
        (["mode == 1", "mode == 2", "mode != 1 && mode != 2"], None, False),
        (["mode == 1", "mode == 2"], "mode = another value", False),
        (["x == 1'b1", "!x"], None, False),
        (["a ^ b", "!(a ^ b)"], None, False),
        (["1"], None, False),
        (["a & ~b | c", "not (a and not b or c)"], None, False),
    ],
)
def test_the_conditions_of_a_state_cover_every_case_once(graph, conditions, missing, conflict):
    steps = [("S", f"T{i}", text) for i, text in enumerate(conditions)]
    back = [(f"T{i}", "S", "1") for i in range(len(conditions))]
    nodes, relations = machine(*steps, *back, initial="S")
    graph.init("g", nodes, related(*relations))
    verdict = check_graph(graph, "g")
    by_rule = {f["rule"]: f["message"] for f in verdict["findings"]}
    assert ("missing_transition" in by_rule) is (missing is not None)
    assert missing is None or missing in by_rule["missing_transition"]
    assert ("conflicting_transition" in by_rule) is conflict
    assert verdict["unchecked"] == []


@pytest.mark.parametrize("text", ["count < 7", "after a while", "a &&", "(a", "a b", "a = ", "a ==", "?"])
def test_a_condition_that_is_not_boolean_is_reported_as_not_understood(graph, text):
    with pytest.raises(NotUnderstoodError):
        Condition(text)
    nodes, relations = machine(("S", "T", text), ("S", "S", "!x"), ("T", "S", "1"), initial="S")
    graph.init("g", nodes, related(*relations))
    assert "covers every case is not known" in check_graph(graph, "g")["unchecked"][0]["reason"]


def test_too_many_combinations_are_reported_as_not_judged():
    with pytest.raises(NotUnderstoodError, match="4096"):
        cases([Condition(" && ".join(f"x{i}" for i in range(13)))])


def test_conditions_mean_what_python_means():
    """The evaluator against Python's own ``and``, ``or`` and ``not``."""
    for text in ("a && (b || !c)", "!(a || b) && c", "a ^ b ^ c", "a && b || c", "!a == 0 || b"):
        if "==" in text:
            continue
        condition = Condition(text)
        python = text.replace("&&", " and ").replace("||", " or ").replace("!", " not ").replace("^", "!=")
        if "^" in text:
            python = "(a + b + c) % 2 == 1"
        for case in cases([condition]):
            values = {name: int(value) for name, value in case.items()}
            assert condition.holds(case) == bool(eval(python, {}, values)), (text, case)  # noqa: S307 - a literal above


def test_states_may_be_nodes_of_their_own(graph):
    nodes = [{"id": name, "type": "State", "properties": {"initial": name == "A"}} for name in "ABC"]
    relations = [("A", "B", "STATETRANSITION"), ("B", "A", "STATETRANSITION"), ("C", "A", "STATETRANSITION")]
    assert found(graph, nodes, relations) == [("unreachable_state", ["C"])]


def test_machines_are_kept_apart(graph):
    nodes = [
        transition(f"{m}{i}", *step, machine=m)
        for m in "xy"
        for i, step in enumerate([("IDLE", "RUN"), ("RUN", "IDLE")])
    ]
    assert [
        rule for rule, _ in found(graph, [*nodes, transition("y2", "LOST", "IDLE", machine="y")]) if rule != "orphan"
    ] == ["unreachable_state"]


def test_a_transition_without_states_is_found(graph):
    assert ("incomplete_transition", ["t"]) in found(
        graph, [{"id": "t", "type": "StateTransition", "properties": {"to": "A"}}]
    )


def test_analog_findings(graph):
    nodes = [
        {"id": "M1", "type": "Device"},
        {"id": "n1", "type": "Net"},
        {"id": "n2", "type": "Net", "properties": {"port": True}},
        {"id": "c", "type": "Constraint"},
        {"id": "d", "type": "Decision"},
    ]
    relations = [("M1", "n1", "TERMINAL_D"), ("M1", "n2", "TERMINAL_G"), ("d", "c", "CONCERNS")]
    assert found(graph, nodes, relations) == [("constraint_without_subject", ["c"]), ("floating_net", ["n1", "M1"])]


RULES = """
without: [orphan]
rules:
  - {id: clock_is_one_bit, kind: property, types: [Signal], when: {role: clock}, property: width, one_of: ["1", 1],
     required: true, severity: error, suggestion: A clock is one wire.}
  - {id: names, kind: property, types: [Signal], property: name, pattern: "[a-z_]+", severity: info, suggestion: Lower.}
  - {id: plan_is_implemented, kind: relates, types: [Plan], relations: [IMPLEMENTS], direction: in, at_least: 1,
     severity: warning, suggestion: Implement it., graphs: [g]}
"""


def test_a_project_has_rules_of_its_own_as_data(graph, path):
    path.parent.mkdir(exist_ok=True)
    path.with_name("rules.yaml").write_text(RULES)
    nodes = [
        signal("clk", role="clock", width="2"),
        signal("clk2", role="clock"),
        signal("clk3", role="clock", width=1, name="CLK"),
        {"id": "p", "type": "Plan"},
    ]
    assert found(graph, nodes) == [
        ("clock_is_one_bit", ["clk"]),
        ("clock_is_one_bit", ["clk2"]),
        ("names", ["clk3"]),
        ("plan_is_implemented", ["p"]),
    ]
    graph.init("other", nodes)
    verdict = check_graph(graph, "other")
    assert "plan_is_implemented" not in verdict["rulesChecked"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rules: {}", "must be a list"),
        ("colour: 1", "colour is unknown"),
        ("without: [nothing]", "'nothing' is not a built-in rule"),
        ("rules: [{id: a, kind: magic}]", "kind must be one of"),
        ("rules: [{id: a, kind: property}]", "lacks property"),
        ("rules: [{id: a, kind: orphan, colour: red}]", "colour is unknown"),
        ("rules: [{id: a b, kind: orphan}]", "not a valid id"),
        ("rules: [{id: a, kind: relates, relations: X}]", "relations must be a list"),
        ("rules: [{id: a, kind: relates, relations: [X], at_least: true}]", "at_least must be a int"),
        ("rules: [{id: a, kind: orphan, severity: fatal}]", "severity must be one of"),
        ("rules: [{id: a, kind: property, property: x, pattern: '['}]", "not a regular expression"),
        ("rules: [{id: a, kind: clash, relations: [X], property: x, pairs: [[1]]}]", "pairs must be"),
        ("rules: [", "is not valid YAML"),
        ("without: [2026-99-99]", "is not valid YAML"),
        (f"without: [{'9' * 5000}]", "is not valid YAML"),
        (f"without: [0x{'f' * 5000}]", "holds a number beyond 64 bits"),
        ("rules: [{id: a, kind: relates, relations: [X], at_least: .nan}]", "holds a number beyond 64 bits"),
        ("rules: [{id: a, kind: property, property: x, one_of: [1.0e+300]}]", "holds a number beyond 64 bits"),
        ("-.inf: 1", "holds a number beyond 64 bits"),
        ("- 1", "must be a mapping"),
        ("without: &a [orphan]\nrules: *a", "uses a YAML alias"),
    ],
)
def test_a_wrong_rule_is_refused_with_its_place(graph, path, text, message):
    path.parent.mkdir(exist_ok=True)
    path.with_name("rules.yaml").write_text(text)
    with pytest.raises(GraphError) as caught:
        check_graph(graph, "g")
    assert message in str(caught.value)


def test_a_file_that_was_edited_wrongly_is_a_verdict_with_findings(graph, path):
    graph.init("g", [signal("a"), signal("b")])
    document = json.loads(path.read_text())
    document["graphs"]["g"]["relations"] = related(("a", "ghost", "DRIVES"), ("a", "b", "DRIVES"))
    document["graphs"]["g"]["nodes"].append({"id": "9", "type": "Signal"})
    path.write_text(json.dumps(document))
    verdict = check_graph(graph, "g")
    assert verdict["passed"] is False
    assert [(f["rule"], f["ids"]) for f in verdict["findings"]] == [
        ("dangling_relation", ["a", "ghost"]),
        ("malformed", []),
    ]
    assert verdict["rulesChecked"] == []


def test_types_that_an_edit_added_are_reported(graph, path):
    graph.init("g", [signal("a"), signal("b")], related(("a", "b", "DRIVES")))
    path.write_text(path.read_text().replace('"type": "DRIVES"', '"type": "TOUCHES"'))
    assert [f["rule"] for f in check_graph(graph, "g")["findings"]] == ["unknown_type"]


def test_findings_are_bounded_and_counted(graph):
    graph.init("g", [signal(f"n{i:03}") for i in range(300)])
    verdict = check_graph(graph, "g", limit=5)
    assert (len(verdict["findings"]), verdict["total"], verdict["counts"]) == (5, 300, {"orphan": 300})


def test_thousands_of_findings_are_counted_and_twenty_listed(graph):
    nodes = [signal("hub", width=3), *(signal(f"n{i}", width="WIDE" if i % 2 else 8) for i in range(4000))]
    graph.init("g", nodes, related(*(("hub", f"n{i}", "DRIVES") for i in range(4000))))
    verdict = check_graph(graph, "g")
    assert (len(verdict["findings"]), verdict["counts"]) == (20, {"width_conflict": 2000})
    assert (len(verdict["unchecked"]), verdict["uncheckedTotal"]) == (20, 2000)
    assert len(json.dumps(verdict)) < 12000


def test_thousands_of_nodes_of_one_finding_are_counted_and_twenty_listed(graph):
    nodes = [{"id": f"n{i}", "type": "Module"} for i in range(2000)]
    graph.init("g", nodes, related(*((f"n{i}", f"n{(i + 1) % 2000}", "DEPENDS_ON") for i in range(2000))))
    (cycle,) = check_graph(graph, "g")["findings"]
    assert (cycle["rule"], len(cycle["ids"]), cycle["idsTotal"]) == ("cycle", 20, 2000)


def test_thousands_of_faults_of_an_edited_file_are_counted_and_twenty_listed(graph, path):
    graph.init("g", [signal("a")])
    document = json.loads(path.read_text())
    document["graphs"]["g"]["nodes"] = [{"id": f"{i}", "type": "Signal"} for i in range(3000)]
    path.write_text(json.dumps(document))
    verdict = check_graph(graph, "g")
    assert (len(verdict["findings"]), verdict["counts"]) == (20, {"malformed": 3000})


def test_equal_graphs_get_equal_answers_in_every_process(tmp_path):
    """Python orders sets of strings by a seed that differs from process to process."""
    states = [{"id": f"Q{number}", "type": "State"} for number in range(9)]
    code = f"""
import json
import os
import subprocess
import sys
from designgraph.consistency import check_graph
from designgraph.service import KnowledgeGraph
graph = KnowledgeGraph({str(tmp_path / "graph.json")!r})
graph.init("g", {states!r})
print(json.dumps(check_graph(graph, "g")))
"""
    answers = {
        subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(answers) == 1
    assert json.loads(answers.pop())["unchecked"][0]["ids"] == [state["id"] for state in states]
