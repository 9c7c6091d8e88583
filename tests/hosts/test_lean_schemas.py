"""The short schemas that MCP lists: small, without what hosts refuse, and true for every call."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from pack_tools import pack_tools as declared_tools
from skillpack import Call
from skillpack.execution import short_answers
from skillpack.execution.short_answers import in_detail
from skillpack.hosts.served_schemas import MAX_REFERENCES, MAX_SCHEMAS, lean_input, rare_fields
from skillscript import SkillResult
from skillscript.schema_references import child_schemas, described

MAX_BYTES = 40_000  # of tools/list, as the server sends it by default
UNPORTABLE = ("$ref", "$defs", "$dynamicRef", "oneOf", "allOf", "not", "if", "prefixItems", "patternProperties")


def sent(schema):
    return json.dumps(schema, ensure_ascii=False, separators=(",", ":")).encode()


def accepts(schema, value):
    return Draft202012Validator(schema).is_valid(value)


def schemas_in(schema):
    """Yield every schema in ``schema``; a schema may be a boolean."""
    yield schema
    if isinstance(schema, dict):
        for _, inner in child_schemas(schema):
            yield from schemas_in(inner)


def is_portable(schema):
    """Return whether hosts take a schema of parameters: plain properties at the top, no reference, no list of types."""
    inner = list(schemas_in({key: rule for key, rule in schema.items() if key != "additionalProperties"}))
    return (
        schema["type"] == "object"
        and not {"anyOf", "oneOf", "allOf", "enum", "not"} & set(schema)
        and all(isinstance(part, dict) for part in inner)
        and not any(keyword in part for part in inner for keyword in UNPORTABLE)
        and not any(isinstance(part.get("type"), list) for part in inner)
        and all("items" in part for part in inner if part.get("type") == "array")
    )


def test_the_tools_of_this_pack_are_listed_in_forty_kilobytes(tools_of_the_trade):
    pytest.importorskip("mcp", reason="skipped: needs the extra mcp")
    from skillpack.hosts.mcp import pack_server, work_resources
    from skillpack.hosts.mcp.pack_server import Toolbox
    from skillpack.hosts.pack import Pack

    with Pack([tools_of_the_trade.ROOT / "skills"]) as pack:
        listed = [*pack_server.skill_tools(pack.view()), *work_resources.upload_tool(pack)]
        listed += Toolbox(pack.view(), "underscored").described
    texts = {tool["name"]: tool["description"] for tool in listed}
    assert {"skill_request", "kg_init", "drc_run_check"} <= set(texts)
    assert " Give only one of netlist_path, netlist_text. Instructions:" in texts["flow_build_layout"]
    assert " Give only one of netlist_path, netlist_text." in texts["lvs_run_check"]
    assert " Also takes" in texts["lvs_run_check"]
    sizes = {tool["name"]: len(sent(tool)) for tool in listed}
    print(
        *(f"{size:6} bytes {name}" for name, size in sizes.items()), f"{sum(sizes.values()):6} bytes in all", sep="\n"
    )
    assert len(sent({"tools": listed})) <= MAX_BYTES
    for tool in listed:
        Draft202012Validator.check_schema(tool["inputSchema"])
        Draft202012Validator.check_schema(tool["outputSchema"])
        assert is_portable(tool["inputSchema"]), tool["name"]


def test_a_rare_parameter_is_not_listed_but_taken():
    rare = {"x-short": False, "type": "string"}
    schema = {
        "type": "object",
        "additionalProperties": False,
        "properties": {"a": {"type": "string"}, "b": {"$ref": "#/$defs/rare"}, "c": rare},
        "$defs": {"rare": rare},
    }
    shown = lean_input(schema, rare=False)
    assert rare_fields(schema) == ["b", "c"]
    assert list(shown["properties"]) == ["a"]
    assert accepts(shown, {"a": "x", "b": "y", "c": "z"})
    assert not accepts(lean_input({**schema, "properties": {"a": {"type": "string"}}}, rare=False), {"c": "z"})


@pytest.fixture(scope="module")
def pack_tools():
    return declared_tools().by_id


def test_a_model_reads_the_names_types_bounds_and_units_of_all_parameters(pack_tools):
    for tool in pack_tools.values():
        short = lean_input(tool.input_schema)
        assert list(short["properties"]) == list(tool.input_schema["properties"])
        assert short.get("required", []) == tool.input_schema.get("required", [])
        assert short["additionalProperties"] is False
        for example in tool.input_schema.get("examples", ()):
            assert accepts(short, example)
    frame = lean_input(pack_tools["layout.route_signal_nets_basic"].input_schema)["properties"]["frame"]
    assert frame == {"type": "object", "description": "Of layout.place_modules"}  # which a caller passes on
    width = lean_input(pack_tools["layout.create_nmos_pcell"].input_schema)["properties"]["w"]
    assert (width["type"], width["description"][-3:]) == ("number", "[m]")


def samples(schema, root, *, full):
    """Return a value that ``schema`` accepts: all properties and one item of lists, or as little as can be."""
    schema = described(schema, root)
    branch = next((schema[group][0 if full else -1] for group in ("oneOf", "anyOf") if group in schema), None)
    if branch is not None and "type" not in schema:
        return samples(branch, root, full=full)
    if "enum" in schema or "const" in schema:
        return schema.get("enum", [schema.get("const")])[0 if full else -1]
    types = schema.get("type", "string")
    kind = types if isinstance(types, str) else types[0 if full else -1]
    if kind == "object":
        fields, more = schema.get("properties", {}), schema.get("additionalProperties", {})
        names = [*(fields if full else ()), *schema.get("required", ()), *(["k"] if full and more else [])]
        return {name: samples(fields.get(name, more), root, full=full) for name in names}
    if kind == "array":
        count = max(schema.get("minItems", 0), int(full))
        items = [samples(schema.get("items", {}), root, full=full)] * count
        return (
            [f"{item}{number}" for number, item in enumerate(items)]
            if schema.get("uniqueItems") and count > 1
            else items
        )
    least = schema.get("minimum", int("exclusiveMinimum" in schema))
    text = schema.get("default", "x" * schema.get("minLength", 0))
    return {"string": text, "boolean": full, "null": None}.get(kind, least)


@pytest.mark.parametrize("full", [True, False])
def test_short_answers_of_this_pack_satisfy_the_schemas_of_the_full_ones(pack_tools, full, monkeypatch):
    monkeypatch.setattr(short_answers, "SHORT_BYTES", 0)
    shortened = 0
    for tool in pack_tools.values():
        data = samples(tool.output_schema, tool.output_schema, full=full)
        short = in_detail(Call(SkillResult.success(data, 3), tool=tool), "short")
        assert accepts(dict(tool.output_schema), data), tool.id
        assert accepts(dict(tool.output_schema), short.result.data), tool.id
        shortened += short.left_out is not None
    assert (shortened >= 5) is full


def test_a_model_can_read_the_whole_schema_of_a_tool(tools_of_the_trade, pack_tools):
    """The file refers to definitions outside of the skill, which a model cannot read."""
    pytest.importorskip("mcp", reason="skipped: needs the extra mcp")
    from skillpack.hosts.mcp import pack_server
    from skillpack.hosts.pack import Pack

    with Pack([tools_of_the_trade.ROOT / "skills"]) as pack:
        for part, schema in (("input", "input_schema"), ("output", "output_schema")):
            asked = {"name": "drc-check", "path": f"schemas/drc.run_check.{part}.json"}
            answer = pack_server.call_skill_tool("skill_read", pack.view(), asked)
            assert json.loads(answer["content"][0]["text"]) == getattr(pack_tools["drc.run_check"], schema)
            assert answer["structuredContent"]["data"]["size"] == len(answer["content"][0]["text"].encode())


RECURSIVE = {
    "$ref": "#/$defs/node",
    "$defs": {
        "node": {
            "type": "object",
            "additionalProperties": False,
            "properties": {"name": {"type": "string"}, "next": {"$ref": "#/$defs/node"}, "same": {"$ref": "#"}},
        }
    },
}
CHAIN = {
    "$ref": "#/$defs/d0",
    "$defs": {f"d{step}": {"properties": {"next": {"$ref": f"#/$defs/d{step + 1}"}}} for step in range(900)},
}
WIDE = {
    "$ref": "#/$defs/d0",
    "$defs": {
        f"d{step}": {"properties": {name: {"$ref": f"#/$defs/d{step + 1}"} for name in ("a", "b", "c", "d")}}
        for step in range(30)
    },
}
ODD = {
    "recursive": (RECURSIVE, [{"next": {"next": {"next": {"name": "a"}}}}, {"same": {"same": {}}}]),
    "boolean": ({"properties": {"a": True, "b": False}}, [{"a": [None]}, {"c": 1}]),
    "true": (True, [{"a": 1}]),
    "alternatives": (
        {
            "type": "object",
            "oneOf": [
                {"required": ["a"], "properties": {"a": {"type": "string"}}},
                {"required": ["b"], "properties": {"b": {"type": "integer"}}},
                {"required": ["c"], "not": {"required": ["a"]}},
            ],
        },
        [{"a": "x"}, {"b": 3}, {"b": 1, "a": 2}, {"c": [], "b": "text"}],
    ),
    "closed alternatives": (
        {
            "oneOf": [
                {"properties": {"a": {"type": "string"}}, "additionalProperties": False, "required": ["a"]},
                {"properties": {"a": {"type": "integer"}, "b": {}}, "additionalProperties": False},
            ]
        },
        [{"a": "x"}, {"a": 1, "b": None}, {}],
    ),
    "unevaluated": (
        {
            "allOf": [{"properties": {"a": {"type": "string"}}}],
            "if": {"required": ["b"]},
            "then": {"properties": {"b": {"type": "integer"}}},
            "unevaluatedProperties": False,
        },
        [{"a": "x", "b": 2}, {"a": "x"}],
    ),
    "dynamic": (
        {"properties": {"a": {"$dynamicRef": "#n"}}, "$defs": {"n": {"$dynamicAnchor": "n", "type": "object"}}},
        [{"a": {}}, {"a": {"a": []}}],
    ),
    "patterns": (
        {"patternProperties": {"^x": {"type": "integer"}}, "additionalProperties": {"type": "string"}},
        [{"x1": 1, "y": "text"}],
    ),
    "closed patterns": (
        {"properties": {"a": {}}, "patternProperties": {"^x": {}}, "additionalProperties": False},
        [{"x1": 1}, {"a": 1}],
    ),
    "tuples": (
        {"properties": {"a": {"prefixItems": [{"type": "string"}, {"type": "integer"}], "items": False}}},
        [{"a": ["x", 1]}, {"a": []}],
    ),
    "many values": ({"properties": {"a": {"enum": [*range(5000), "x", None]}}}, [{"a": 77}, {"a": "x"}, {"a": None}]),
    "numbers": ({"properties": {"a": {"type": "integer"}, "b": {"const": 1}}}, [{"a": 1.0, "b": 1.0}]),
    "said twice": (
        {"properties": {"a": {"type": ["number", "null"]}}, "allOf": [{"properties": {"a": {"enum": [1, None]}}}]},
        [{"a": 1}, {"a": None}],
    ),
    "chain": (CHAIN, [{"next": {"next": {"next": {}}}}]),
    "wide": (WIDE, [{"a": {"b": {"c": {"d": 5}}}}]),
    "lost reference": ({"properties": {"a": {"$ref": "#/$defs/none"}}}, []),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_schemas_become_short_portable_and_stay_true(name):
    schema, values = ODD[name]
    shown = lean_input(schema)
    Draft202012Validator.check_schema(shown)
    assert is_portable(shown)
    assert len(json.dumps(shown)) < 30 * MAX_SCHEMAS + 40_000
    for value in values:
        assert accepts(schema, value)
        assert accepts(shown, value)


def test_a_reference_that_leads_in_a_circle_or_too_far_ends_in_the_type():
    shown = lean_input(RECURSIVE)["properties"]
    assert shown["next"] == {"type": "object"}
    assert shown["name"] == {"type": "string"}
    assert json.dumps(lean_input(CHAIN)).count("next") <= MAX_REFERENCES + 2


def test_a_circle_through_the_alternatives_of_a_property_ends_in_the_type():
    inner = {"anyOf": [{"properties": {"a": {"$ref": "#"}}}]}
    shown = lean_input({"type": "object", "additionalProperties": False, "properties": {"a": inner}})
    Draft202012Validator.check_schema(shown)
    assert accepts(shown, {"a": {"a": {"a": {}}}})


def test_alternatives_at_the_top_are_listed_as_plain_properties():
    shown = lean_input(ODD["closed alternatives"][0])
    assert shown["properties"]["a"] == {"anyOf": [{"type": "string"}, {"type": "integer"}]}
    assert "required" not in shown


NAMES = ("a", "b", "c")
VALUES = st.recursive(
    st.sampled_from([None, True, 0, 1, 1.0, 2.5, "", "a", "bb"]),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(st.sampled_from(NAMES), inner, max_size=3)),
    max_leaves=5,
)
TYPES = st.sampled_from(["array", "boolean", "integer", "null", "number", "object", "string", ["object", "null"]])


def _combined(inner):
    """Return a strategy for schemas with keywords that hold schemas."""
    maps = st.dictionaries(st.sampled_from(NAMES), inner, min_size=1, max_size=2)
    groups = st.lists(inner, min_size=1, max_size=2)
    keywords = {
        "properties": maps,
        "additionalProperties": inner,
        "unevaluatedProperties": st.just(value=False),
        "patternProperties": st.dictionaries(st.sampled_from(["^a", "b"]), inner, max_size=1),
        "required": st.lists(st.sampled_from(NAMES), unique=True, max_size=1),
        **dict.fromkeys(("allOf", "anyOf", "oneOf", "prefixItems"), groups),
        **dict.fromkeys(("items", "not", "if", "then", "else", "contains", "propertyNames"), inner),
        "dependentSchemas": maps,
    }
    chosen = st.sets(st.sampled_from(sorted(keywords)), min_size=1, max_size=3)
    return chosen.flatmap(lambda names: st.fixed_dictionaries({name: keywords[name] for name in sorted(names)}))


def _schemas(*references):
    """Return a strategy for schemas that may refer to these places, and to the whole below a property."""
    leaves = [{}, {"enum": [1, "a", None]}, {"const": {"a": 1}}, {"minimum": 1}, {"minLength": 2}, {"minItems": 1}]
    leaves += [{"$ref": place, **more} for place in references for more in ({}, {"type": "object"})]
    leaves += [{"properties": {"a": {"$ref": "#"}}}] if references else []
    typed = st.builds(lambda kind: {"type": kind}, TYPES)
    return st.recursive(st.one_of(st.booleans(), typed, st.sampled_from(leaves)), _combined, max_leaves=6)


@settings(max_examples=120)
@given(_combined(_schemas("#/$defs/d", "#/$defs/e")), _schemas(), _schemas("#/$defs/d"), st.lists(VALUES, max_size=4))
def test_what_the_full_schema_accepts_the_short_one_accepts(schema, first, second, values):
    whole = {**schema, "type": "object", "$defs": {"d": first, "e": second}}
    shown = lean_input(whole)
    Draft202012Validator.check_schema(shown)
    assert is_portable(shown)
    for value in ({}, {"a": 1}, {"a": "bb", "b": None}, {"a": {"a": 1}, "c": []}, *values):
        if accepts(whole, value):
            assert accepts(shown, value)


def test_a_tuple_of_limited_length_takes_no_other_items():
    pair = {"type": "array", "maxItems": 2, "prefixItems": [{"type": "string"}, {"type": "number"}]}
    shown = lean_input({"type": "object", "properties": {"pair": pair}})["properties"]["pair"]
    assert shown["items"] == {"anyOf": [{"type": "string"}, {"type": "number"}]}


def test_only_the_first_paragraph_of_a_description_is_listed_and_a_repeated_name_is_not():
    properties = {
        "gate_width": {"type": "number", "description": "Gate width [m]\n\nOver all fingers."},
        "top": {"type": "string", "description": "Subcircuit to lay out.\n\nDefault: the only one."},
        "note": {"type": "string", "description": "Free text. It may have\nseveral lines."},
        "outer_net": {"type": "string", "description": "Net of the outer ring"},
        "well_nets": {"type": "array", "items": {"type": "string"}, "description": "The nets of a well\n\nMore."},
    }
    shown = lean_input({"type": "object", "properties": properties})["properties"]
    assert [shown[name].get("description") for name in properties] == [
        "[m]",
        "Subcircuit to lay out.",
        "Free text. It may have several lines.",
        "Net of the outer ring",
        None,
    ]


def test_the_fields_of_a_repeated_object_are_listed_once():
    point = {"type": "object", "properties": {name: {"type": "number", "description": "Place [um]"} for name in "xyz"}}
    other = {**point, "required": ["x"]}
    fields = {"a": point, "b": {**point, "description": "Top"}, "c": {"type": "array", "items": point}, "d": other}
    shown = lean_input({"type": "object", "properties": fields})["properties"]
    assert shown["a"]["properties"] == {**point["properties"]}
    assert shown["b"] == {"type": "object", "description": "Top. Like a"}
    assert shown["c"] == {"type": "array", "items": {"type": "object", "description": "Like a"}}
    assert shown["d"]["properties"] == shown["a"]["properties"]


def test_the_values_of_a_repeated_long_choice_are_listed_once():
    stages = {"type": "string", "enum": [f"stage_{number:02}_of_the_flow" for number in range(5)]}
    short = {"enum": ["a", "b"]}
    fields = {"from": stages, "until": {**stages, "description": "Last"}, "kind": short, "other": short}
    assert lean_input({"type": "object", "properties": fields})["properties"] == {
        "from": stages,
        "until": {"type": "string", "description": "Last. Like from"},
        "kind": {"type": "string", **short},
        "other": {"type": "string", **short},
    }


def test_a_value_that_another_tool_returns_is_listed_without_its_fields():
    mark = {"type": "object", "required": ["x"], "properties": {"x": {"type": "number"}}}
    fields = {"marks": {"type": "array", "x-from": "a.b", "items": mark}, "mark": {**mark, "x-from": "a.b"}}
    assert lean_input({"type": "object", "properties": fields})["properties"] == {
        "marks": {"type": "array", "items": {"type": "object"}},
        "mark": {"type": "object"},
    }
    point = {"type": "object", "properties": {"x": {"type": "number"}, "box": {"type": "object", "x-from": "a.b"}}}
    assert lean_input({"properties": {"point": point}})["properties"]["point"] == {
        "type": "object",
        "properties": {"x": {"type": "number"}},
    }
    either = {**point, "anyOf": [{"required": ["x"]}, {"required": ["box"]}]}  # who reads of x only needs no choice
    assert lean_input({"properties": {"point": either}}) == lean_input({"properties": {"point": point}})
    open_choice = {**either, "anyOf": [{"required": ["x"]}, {"required": ["y"]}]}
    assert "anyOf" in lean_input({"properties": {"point": open_choice}})["properties"]["point"]
    named = {"point": {**point, "additionalProperties": {"type": "string"}}}
    assert "box" in lean_input({"properties": named})["properties"]["point"]["properties"]


POINT = {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2}


def test_rules_that_say_nothing_to_a_model_are_not_listed():
    fields = {
        "name": {"type": "string", "pattern": "^[!-~]+$"},
        "kind": {"type": "string", "pattern": "^[A-D]+$"},
        "row": {"type": "string", "pattern": f"^({'|'.join('abcdefghijklmnopqrstuvwxyz')})$"},
        "count": {"type": "integer", "minimum": 1},
        "place": {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2, "default": [0, 0]},
        "pair": {"type": "array", "items": {"type": "string"}, "minItems": 2, "maxItems": 2},
        "corner": {**POINT, "description": "[x, y] of the corner [um]"},
        "size": {**POINT, "description": "[um]"},
        "only": {"enum": ["nmos"], "default": "nmos"},
        "same": {"type": "string", "pattern": "^auto$", "default": "auto"},
        "prefix": {"type": "string", "default": ""},
        "folder": {"type": "string", "default": "./here", "x-env": "FOLDER"},
        "width": {"type": "number", "exclusiveMinimum": 0, "maximum": 1000},
        "names": {"type": "array", "items": {"type": "string"}, "maxItems": 10_000},
    }
    assert lean_input({"type": "object", "properties": fields})["properties"] == {
        "name": {"type": "string"},
        "kind": {"type": "string", "pattern": "^[A-D]+$"},
        "row": {"type": "string"},
        "count": {"type": "integer"},
        "place": {"type": "array", "items": {"type": "number"}, "default": [0, 0]},
        "pair": fields["pair"],
        "corner": {"type": "array", "items": {"type": "number"}, "description": "[x, y] of the corner [um]"},
        "size": {**POINT, "description": "[um]"},
        "only": {"type": "string", "default": "nmos"},
        "same": {"type": "string", "default": "auto"},
        "prefix": {"type": "string"},
        "folder": {"type": "string"},
        "width": {"type": "number"},
        "names": {"type": "array", "items": {"type": "string"}},
    }
