"""The JSON Schemas of all tools: self-contained where served, strict, described, and without repeated parts."""

import json
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from referencing import Registry

from pack_tools import pack_tools
from patience import WATCHDOG_S
from skillpack import find_tools, scan
from skillscript import find_faults
from skillscript.schema_references import child_schemas, described

SKILLS = Path(__file__).resolve().parents[2] / "skills"
SHARED = SKILLS / "analog-layout.schema.json"
FILES = sorted(SKILLS.glob("*/schemas/*.json"))
TOOLS = pack_tools()
SERVED = [
    pytest.param(schema, id=f"{tool.id}.{part}")
    for tool in TOOLS.by_id.values()
    for part, schema in (("input", tool.input_schema), ("output", tool.output_schema))
]
LONGEST_REPEATED = 120  # characters: about what fits on one line


def schemas_in(schema):
    """Return ``schema`` and every schema in it."""
    if not isinstance(schema, dict):
        return []
    return [schema, *(inner for _, child in child_schemas(schema) for inner in schemas_in(child))]


def written():
    """Return every schema of the pack as it is written, with the file's name and the top of the file left out."""
    for path in [SHARED, *FILES]:
        content = json.loads(path.read_text(encoding="utf-8"))
        yield from ((path.name, schema) for schema in schemas_in(content)[1:])


def test_every_file_belongs_to_a_tool():
    assert TOOLS.faults == ()
    assert {path.name for path in FILES} == {
        f"{tool}.{part}.json" for tool in TOOLS.by_id for part in ("input", "output")
    }


def test_every_tool_is_in_a_toolset_of_the_pack():
    members = Counter(name for tool in TOOLS.by_id.values() for name in tool.toolsets)
    assert set(members) == {"check", "graph", "layout", "netlist", "technology"}
    assert {tool.id for tool in TOOLS.by_id.values() if tool.toolsets == ("graph",)} == {
        tool for tool in TOOLS.by_id if tool.startswith("kg.")
    }
    assert {"flow.build_layout", "layout.create_nmos_pcell", "export.gds"} <= {
        tool.id for tool in TOOLS.by_id.values() if "layout" in tool.toolsets
    }
    assert {"drc.run_check", "lvs.run_check"} <= {tool.id for tool in TOOLS.by_id.values() if "check" in tool.toolsets}


@pytest.mark.parametrize("schema", SERVED)
def test_a_served_schema_is_complete_in_itself_and_strict(schema):
    Draft202012Validator.check_schema(schema)
    references = [inner["$ref"] for inner in schemas_in(schema) if "$ref" in inner]
    assert [reference for reference in references if not reference.startswith("#/$defs/")] == []
    assert schema["type"] == "object"
    assert schema["additionalProperties"] is False
    judge = Draft202012Validator(schema, registry=Registry())  # raises for a reference that leads elsewhere
    assert not judge.is_valid(dict.fromkeys([*schema["properties"], "unknown"]))
    for example in schema.get("examples", ()):
        assert find_faults(example, schema) == list(judge.iter_errors(example)) == []


@pytest.mark.parametrize("schema", SERVED)
def test_every_field_of_a_served_schema_is_described(schema):
    nameless = [
        name
        for inner in schemas_in(schema)
        for name, field in inner.get("properties", {}).items()
        if not described(field, schema).get("description")
    ]
    assert nameless == []


@pytest.mark.parametrize("tool", TOOLS.by_id.values(), ids=lambda tool: tool.id)
def test_every_quantity_of_a_request_may_be_written_with_a_prefix(tool):
    """A number, or a list of numbers, whose description states a unit, takes a text such as "4u"."""
    without = []
    for inner in schemas_in(tool.input_schema):
        for name, field in inner.get("properties", {}).items():
            whole = described(field, tool.input_schema)
            unit = re.search(r"\[(um|m|m2|F|ohm|A)\](?!.*\[)", whole.get("description", "").partition("\n")[0])
            number = described(whole["items"], tool.input_schema) if whole.get("type") == "array" else whole
            if unit and number.get("type") == "number" and number.get("x-si") != unit[1]:
                without.append(name)
    assert without == []


def test_no_part_is_written_twice():
    """Names and descriptions aside, for a reference may carry its own."""
    counted = Counter()
    for _, schema in written():
        part = {key: rule for key, rule in schema.items() if key not in ("title", "description", "default")}
        text = re.sub(r'"[^"]*#/\$defs/', '"', json.dumps(part, sort_keys=True))
        counted[text] += len(text) > LONGEST_REPEATED
    assert [text for text, count in counted.items() if count > 1] == []


def test_every_shared_definition_is_used_more_than_once():
    used = Counter(schema["$ref"].rpartition("/")[2] for _, schema in written() if "$ref" in schema)
    used.update(json.loads(path.read_text()).get("$ref", "").rpartition("/")[2] for path in FILES)
    assert [name for name in json.loads(SHARED.read_text())["$defs"] if used[name] < 2] == []


@pytest.mark.parametrize("part", ["input_schema", "output_schema"])
def test_the_two_transistor_tools_differ_in_the_name_of_the_device_and_in_what_isolates_nmos(part):
    """A deep well gives NMOS a body of its own. PMOS has one in its n well."""
    nmos, pmos = (dict(getattr(TOOLS.by_id[f"layout.create_{kind}_pcell"], part)) for kind in ("nmos", "pmos"))
    isolation = {"isolated", "deep_well_net", "substrate_net"} if part == "input_schema" else set()
    assert set(nmos["properties"]) - set(pmos["properties"]) == isolation
    nmos["properties"] = {name: field for name, field in nmos["properties"].items() if name not in isolation}
    assert nmos != pmos
    assert json.dumps(nmos).replace("nmos", "pmos") == json.dumps(pmos).replace("nmos", "pmos")


def test_a_copy_of_a_skill_without_the_shared_file_has_the_same_schemas(tmp_path):
    """By the script, and by a registry of the folder it was copied to."""
    shutil.copytree(SKILLS / "mos-pcell", tmp_path / "skills/mos-pcell")
    tool = find_tools(scan([tmp_path / "skills"]).skills.values()).by_id["layout.create_nmos_pcell"]
    assert tool.input_schema == TOOLS.by_id[tool.id].input_schema
    done = subprocess.run(
        [sys.executable, tool.script, "--schema"], capture_output=True, timeout=WATCHDOG_S, check=True
    )
    assert json.loads(done.stdout)["output"] == tool.output_schema == TOOLS.by_id[tool.id].output_schema


def test_a_copy_with_a_shared_file_beside_it_uses_that(tmp_path):
    shutil.copytree(SKILLS / "mos-pcell", tmp_path / "skills/mos-pcell")
    shared = SHARED.read_text().replace("Channel length.", "Length of the channel.")
    (tmp_path / "skills" / SHARED.name).write_text(shared)
    tool = find_tools(scan([tmp_path / "skills"]).skills.values()).by_id["layout.create_nmos_pcell"]
    assert tool.input_schema["properties"]["l"]["description"] == "[m]\n\nLength of the channel."
