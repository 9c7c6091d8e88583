"""The JSON netlist format: shapes, hierarchy, and every fault with its field (S0.3)."""

import copy
import json
from pathlib import Path

import jsonschema
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from layoutkit.circuit import Circuit, Device
from layoutkit.circuit.circuit import INTEGER_PARAMS
from layoutkit.circuit.readers.json_cells import SCHEMA
from layoutkit.circuit.readers.json_reader import circuit_from_json, parse_json
from layoutkit.errors import NetlistError
from layoutkit.file_schema import JsonSchema
from layoutkit.technology.device_kinds import KINDS

ROOT = Path(__file__).parents[3]


def mos(name="M1", **changes):
    device = {
        "id": name,
        "type": "nmos",
        "model": "nmos_1v8",
        "params": {"w": 2e-6, "l": 0.18e-6, "m": 2},
        "terminals": {"d": "out", "g": "in", "s": "vss", "b": "vss"},
    }
    return {**device, **changes}


def test_an_empty_netlist_is_an_empty_circuit():
    circuit = circuit_from_json({"cells": [], "top": ""})
    assert (circuit.name, circuit.devices, dict(circuit.nets)) == ("", (), {})


def test_one_flat_cell_is_a_netlist():
    circuit = circuit_from_json({"name": "a", "devices": [mos()]})
    assert circuit.devices == (Device("M1", "nmos", "nmos_1v8", {"w": 2e-6, "l": 0.18e-6, "m": 2}, mos()["terminals"]),)
    assert circuit.nets["vss"] == (("M1", "s"), ("M1", "b"))


def test_what_the_tool_answers_is_a_netlist_again():
    circuit = circuit_from_json({"name": "a", "ports": ["in", "out"], "devices": [mos()]})
    answered = json.loads(json.dumps({"circuit": circuit.to_json(), "parse_info": {}}))
    assert circuit_from_json(answered) == circuit
    assert circuit_from_json(answered["circuit"]) == circuit


def test_cells_are_flattened_under_instance_paths():
    leaf = {"name": "leaf", "ports": ["in", "out"], "devices": [mos()]}
    top = {
        "name": "top",
        "ports": ["a", "b"],
        "instances": [
            {"id": "X1", "cell": "leaf", "terminals": {"in": "a", "out": "mid"}},
            {"id": "X2", "cell": "leaf", "terminals": {"in": "mid", "out": "b"}},
        ],
    }
    circuit = circuit_from_json({"cells": [leaf, top], "top": ""})
    assert circuit.name == "top"
    assert [(d.id, d.terminals["g"], d.terminals["d"], d.terminals["s"]) for d in circuit.devices] == [
        ("X1.M1", "a", "mid", "X1.vss"),
        ("X2.M1", "mid", "b", "X2.vss"),
    ]


def test_names_of_types_and_terminals_have_aliases():
    terminals = {"Drain": "a", "gate": "b", "SOURCE": "c", "bulk": "d"}
    (device,) = circuit_from_json({"name": "a", "devices": [mos(type="NFET", terminals=terminals)]}).devices
    assert (device.type, device.terminals) == ("nmos", {"d": "a", "g": "b", "s": "c", "b": "d"})


@pytest.mark.parametrize(
    ("change", "field", "reason"),
    [
        ({"id": 5}, "devices[0].id", "must be a string, got number"),
        ({"id": "a b"}, "devices[0].id", "must be a word"),
        ({"id": ""}, "devices[0].id", "must be a word"),
        ({"type": None}, "devices[0].type", "must be a string, got null"),
        ({"params": [1]}, "devices[0].params", "must be an object, got array"),
        ({"params": {"w": "2u"}}, "devices[0].params.w", "must be a number in SI units, got string (write 2e-06)"),
        ({"params": {"w": True}}, "devices[0].params.w", "must be a number in SI units, got boolean"),
        ({"params": {"w": 2}}, "devices[0].params.w", "write 2e-6 for 2 um"),
        ({"params": {"l": -1e-6}}, "devices[0].params.l", "must be between 0 and 0.01 metres, got -1e-06"),
        ({"params": {"m": 1.5}}, "devices[0].params.m", "must be an integer"),
        ({"params": {"nf": 0}}, "devices[0].params.nf", "must be an integer"),
        ({"params": {"r": 10**400}}, "devices[0].params.r", "is out of range"),
        ({"terminals": {"d": "a", "g": "b", "s": "c"}}, "devices[0].terminals", "terminal 'b' is missing"),
        ({"terminals": {**mos()["terminals"], "x": "y"}}, "devices[0].terminals.x", "has no such terminal"),
        ({"terminals": {**mos()["terminals"], "d": ["n"]}}, "devices[0].terminals.d", "must be a string, got array"),
        ({"terminals": {**mos()["terminals"], "drain": "n"}}, "devices[0].terminals", "given twice"),
    ],
)
def test_a_schema_fault_names_its_field_and_reason(change, field, reason):
    with pytest.raises(NetlistError) as caught:
        circuit_from_json({"name": "a", "devices": [mos(**change)]})
    assert str(caught.value).startswith(f"Schema validation failed: {field} - ")
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ([], "Schema validation failed: (document) - must be an object"),
        ("text", "Schema validation failed: (document) - must be an object"),
        ({}, "Schema validation failed: cells - is missing"),
        ({"cells": {}}, "Schema validation failed: cells - must be an array, got object"),
        ({"cells": [3]}, "Schema validation failed: cells[0] - must be an object, got number"),
        ({"cells": [], "top": 3}, "Schema validation failed: top - must be a string"),
        ({"cells": [], "top": '"'}, "Schema validation failed: top - must be a word"),
        ({"cells": [{"devices": []}]}, "Schema validation failed: cells[0].name - is missing"),
        ({"cells": [], "top": "x", "name": "n"}, None),
        ({"name": "a", "devices": [mos(), mos()]}, "id 'M1' is used twice"),
        ({"cells": [{"name": "a"}, {"name": "a"}]}, "cell 'a' is defined twice"),
        ({"cells": [{"name": "a"}, {"name": "b"}], "top": "c"}, "Top cell 'c' not found; the netlist defines a, b"),
        ({"cells": [{"name": "a"}, {"name": "b"}]}, "Ambiguous top: choose one of a, b"),
        (
            {"cells": [{"name": "a", "instances": [{"id": "X", "cell": "b", "terminals": {}}]}]},
            "cells[0].instances[0].cell - no cell is named 'b'",
        ),
        (
            {"cells": [{"name": "a", "instances": [{"id": "X", "cell": "a", "terminals": {}}]}], "top": "a"},
            "cell contains itself: a > a",
        ),
    ],
)
def test_a_faulty_document_is_told(document, message):
    if message is None:
        assert circuit_from_json(document).devices == ()
        return
    with pytest.raises(NetlistError) as caught:
        circuit_from_json(document)
    assert message in str(caught.value)
    assert caught.value.code == "INVALID_PARAM"


def test_an_unknown_device_type_alone_has_its_own_message():
    with pytest.raises(NetlistError, match=r"^Unknown device type: memristor$") as caught:
        circuit_from_json({"name": "a", "devices": [mos(type="memristor")]})
    assert "nmos" in caught.value.details["known_types"]


def test_all_faults_are_told_at_once():
    devices = [mos(type="memristor"), mos("M2", params={"w": "x", "l": []}), mos("M3", terminals=None)]
    with pytest.raises(NetlistError) as caught:
        circuit_from_json({"cells": [{"name": "a", "devices": devices}]})
    assert [fault["field"] for fault in caught.value.details["faults"]] == [
        "cells[0].devices[0].type",
        "cells[0].devices[1].params.w",
        "cells[0].devices[1].params.l",
        "cells[0].devices[2].terminals",
    ]


@pytest.mark.parametrize(
    "text",
    ["", "not json", "{", '{"a": NaN}', '{"a": 1, "a": 2}', "[" * 100_000, '{"a": ' + "9" * 5000 + "}", "{'a': 1}"],
)
def test_what_is_not_json_is_told(text):
    with pytest.raises(NetlistError, match=r"^Invalid JSON format: "):
        parse_json(text)


def test_fields_beyond_the_format_are_ignored_and_told():
    circuit = circuit_from_json({"name": "a", "devices": [mos(comment="x")], "author": "y"})
    assert circuit.warnings == ("ignored field: author", "ignored field: devices[].comment")


VALID = {
    "cells": [
        {"name": "leaf", "ports": ["in", "out"], "devices": [mos()]},
        {"name": "top", "instances": [{"id": "X1", "cell": "leaf", "terminals": {"in": "a", "out": "b"}}]},
    ],
    "top": "top",
}
PLACES = [
    ("cells",),
    ("top",),
    ("cells", 0),
    ("cells", 0, "name"),
    ("cells", 0, "ports"),
    ("cells", 0, "ports", 0),
    ("cells", 0, "devices"),
    ("cells", 0, "devices", 0),
    ("cells", 0, "devices", 0, "id"),
    ("cells", 0, "devices", 0, "type"),
    ("cells", 0, "devices", 0, "model"),
    ("cells", 0, "devices", 0, "params"),
    ("cells", 0, "devices", 0, "params", "w"),
    ("cells", 0, "devices", 0, "params", "m"),
    ("cells", 0, "devices", 0, "terminals"),
    ("cells", 0, "devices", 0, "terminals", "g"),
    ("cells", 1, "instances"),
    ("cells", 1, "instances", 0),
    ("cells", 1, "instances", 0, "cell"),
    ("cells", 1, "instances", 0, "terminals"),
]
WRONG = st.sampled_from([None, True, 3.5, [], [1], {}, "a b", -1, {"x": None}])


@given(place=st.sampled_from(PLACES), value=WRONG)
def test_what_the_schema_refuses_the_reader_refuses(place, value):
    document = copy.deepcopy(VALID)
    part = document
    for step in place[:-1]:
        part = part[step]
    part[place[-1]] = value
    if not jsonschema.Draft202012Validator(SCHEMA.content).is_valid(document):
        with pytest.raises(NetlistError) as caught:
            circuit_from_json(document)
        assert caught.value.code == "INVALID_PARAM"


LEAVES = st.one_of(
    st.sampled_from([None, True, 0, -1, 1, 1.0, 1.5, 2, 1e-3, 999e-6, 1e-6, 10**6, 10**6 + 1, 10**400, 1e400, -1e400]),
    st.sampled_from(["", "a", "a b", "a=b", "x" * 4096, "x" * 4097, "nmos", "d", [], ["a"], {}, {"a": {"b": ["c"]}}]),
)
DEVICES = st.fixed_dictionaries(
    {},
    optional={
        "id": LEAVES,
        "type": st.one_of(st.sampled_from(list(KINDS)), LEAVES),
        "model": LEAVES,
        "params": st.one_of(LEAVES, st.dictionaries(st.sampled_from(["w", "l", "m", "nf", "r", "area", "x"]), LEAVES)),
        "terminals": st.one_of(
            LEAVES, st.dictionaries(st.sampled_from("dgsbpnce"), st.sampled_from(["a", "b", "a b", None]))
        ),
    },
)


@given(st.lists(DEVICES, max_size=4), st.lists(st.sampled_from(list(KINDS)), max_size=2))
def test_the_reader_accepts_what_the_schema_accepts_and_nothing_else(changes, kinds):
    """The reader checks each device without jsonschema where it can; the schema judges each, and both agree."""
    fine = [
        mos(f"K{i}", type=kind, params={}, terminals=dict.fromkeys(KINDS[kind].terminals, "n"))
        for i, kind in enumerate(kinds)
    ]
    devices = [*fine, *({**mos(), **change, "id": change.get("id", f"M{i}")} for i, change in enumerate(changes))]
    ids = [device["id"] for device in devices if isinstance(device["id"], str)]
    assume(len(set(ids)) == len(ids))
    document = {"name": "a", "devices": devices}
    if jsonschema.Draft202012Validator(SCHEMA.content).is_valid(document):
        assert [device.id for device in circuit_from_json(document).devices] == ids
    else:
        with pytest.raises(NetlistError):
            circuit_from_json(document)


def test_the_skill_shows_the_schema_that_the_engine_reads():
    shown = ROOT / "skills/netlist-parse/assets/netlist.schema.json"
    assert shown.read_text("utf-8") == json.dumps(SCHEMA.content, indent=2) + "\n", "make manifests writes it"


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.name)
def test_the_schema_knows_the_terminals_of_each_kind(kind):
    def accepted(names, **params):
        device = mos(type=kind.name, params=params, terminals=dict.fromkeys(names, "n"))
        return SCHEMA.accepts(device, "device")

    assert accepted(kind.terminals)
    assert accepted(kind.all_terminals)
    assert not accepted((*kind.all_terminals, "x"))
    for terminal in kind.terminals:
        assert not accepted(name for name in kind.terminals if name != terminal)
    assert accepted(kind.terminals, area=1e-5) is ("area" not in kind.compared or kind.area_counts)


def test_the_schema_knows_the_kinds_of_devices():
    properties = SCHEMA.content["$defs"]["device"]["properties"]
    assert set(properties["type"]["enum"]) == set(KINDS)
    counts = {name for name, rule in properties["params"]["properties"].items() if rule["$ref"].endswith("/count")}
    assert counts == INTEGER_PARAMS


def listed_kinds(node):
    """Yield each list of allowed values in a JSON schema that names more than the two kinds of MOS transistors."""
    if isinstance(node, dict):
        values = node.get("enum", [])
        if sum(value in KINDS for value in values if isinstance(value, str)) > 2:
            yield set(values)
        for each in node.values():
            yield from listed_kinds(each)
    elif isinstance(node, list):
        for each in node:
            yield from listed_kinds(each)


def test_each_answer_that_lists_kinds_of_devices_allows_all_of_them():
    schemas = sorted(ROOT.glob("skills/*/schemas/*.output.json"))
    listed = [(path.name, kinds) for path in schemas for kinds in listed_kinds(json.loads(path.read_text()))]
    assert {name: set(KINDS) - kinds for name, kinds in listed if set(KINDS) - kinds} == {}


@pytest.mark.parametrize("size", [10, 1000])
def test_jsonschema_sees_no_device_that_is_right(monkeypatch, size):
    calls = []
    accepts = JsonSchema.accepts

    def counted(self, data, part=""):
        calls.append(part)
        return accepts(self, data, part)

    monkeypatch.setattr(JsonSchema, "accepts", counted)
    devices = [mos(f"M{i}", params={"w": 2e-6 + i * 1e-9, "m": i % 100 + 2, "r": i + 1.5}) for i in range(size)]
    assert len(circuit_from_json({"name": "a", "devices": devices}).devices) == size
    assert calls == ["content"]


def test_the_explanation_of_very_many_faults_ends_after_a_thousand(monkeypatch):
    calls = []
    faults = JsonSchema.faults
    monkeypatch.setattr(JsonSchema, "faults", lambda *given: calls.append(given) or faults(*given))
    devices = [mos(f"M{i}", model=i) for i in range(3000)]
    with pytest.raises(
        NetlistError, match=r"devices\[9\]\.model - must be a string.*; and at least 990 more$"
    ) as caught:
        circuit_from_json({"name": "a", "devices": devices})
    assert len(calls) == len(caught.value.details["faults"]) == 1000


@pytest.mark.parametrize("item", ["[" * 500 + "]" * 500, '{"a":' * 500 + "0" + "}" * 500])
def test_entries_nested_deeply_are_refused(item):
    for key in ("ports", "devices", "instances", "modules"):
        with pytest.raises(NetlistError, match=rf"{key}\[1\]"):
            circuit_from_json({"name": "a", "devices": [], key: parse_json(f"[{item}, {item}]")})


def test_the_faults_of_a_device_are_reported_in_the_order_of_the_document():
    params = {f"p{i}": "x" for i in range(50)}
    with pytest.raises(NetlistError) as caught:
        circuit_from_json({"name": "a", "devices": [mos(params=params)]})
    fields = [fault["field"] for fault in caught.value.details["faults"]]
    assert fields == [f"devices[0].params.{name}" for name in params]


@pytest.mark.parametrize(
    ("change", "field", "reason"),
    [
        ({"type": None}, "devices[0].type", "must be a string, got null"),
        ({"type": "NMSO"}, "devices[0].type", "Unknown device type: NMSO (did you mean 'nmos'?)"),
        ({"params": {"W": 3}}, "devices[0].params.W", "must be between 0 and 0.01 metres, got 3; write 3e-6 for 3 um"),
        ({"params": {"W": 1e-6, "w": 1e-6}}, "devices[0].params", "parameter 'w' is given twice"),
        (
            {"terminals": {"Drain": 1, "g": "a", "s": "a", "b": "a"}},
            "devices[0].terminals.Drain",
            "must be a string, got number",
        ),
        ({"id": "a\u200bb"}, "devices[0].id", "must be a word of printable characters; got 'a\\u200bb'"),
    ],
)
def test_a_fault_is_reported_in_the_spelling_of_the_document(change, field, reason):
    with pytest.raises(NetlistError) as caught:
        circuit_from_json({"name": "a", "devices": [mos(**change)]})
    assert caught.value.details["faults"] == [{"field": field, "reason": reason}]


NAMES = st.text("abcXYZ019_.[]<>+-!", min_size=1, max_size=8)


@st.composite
def circuits(draw):
    """Return circuits of MOS transistors and resistors with any names."""
    ids = draw(st.lists(NAMES, unique=True, max_size=6))
    devices = []
    for device_id in ids:
        nets = [draw(NAMES) for _ in range(4)]
        if draw(st.booleans()):
            params = {
                "w": draw(st.integers(1, 10**6 - 1)) * 1e-9,
                "l": draw(st.integers(1, 10**6 - 1)) * 1e-9,
                "nf": draw(st.integers(1, 99)),
                "m": draw(st.integers(1, 99)),
            }
            kind = draw(st.sampled_from(["nmos", "pmos"]))
            devices.append(Device(device_id, kind, f"{kind}_1v8", params, dict(zip("dgsb", nets, strict=True))))
        else:
            terminals = dict(zip("pn", nets, strict=False))
            devices.append(Device(device_id, "resistor", "rpoly", {"r": 1e3, "m": 1}, terminals))
    return Circuit("any", tuple(devices), tuple(draw(st.lists(NAMES, unique=True, max_size=4))))


@given(circuits())
def test_a_circuit_survives_json(circuit):
    assert circuit_from_json(json.loads(json.dumps(circuit.to_json()))) == circuit
