"""skill.yaml: tools are found without their code, and a faulty one is told without hiding the next."""

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

import skillpack
from skillpack import SkillLoader, SkillRegistry, find_tools, scan
from skillpack.hosts.pack import Pack
from skillpack.registry.schema_check import never_ends, schema_problems
from skillpack.untrusted.strict_yaml import load_typed_mapping

ENTRY = {
    "id": "a.run",
    "script": "scripts/run.py",
    "version": "1.0.0",
    "input_schema": {"type": "object"},
    "output_schema": "schemas/out.json",
}
FILES = {"scripts/run.py": "raise SystemExit('imported')", "schemas/out.json": '{"type": "object"}'}


LONG_CHAIN = {
    "$ref": "#/$defs/d0",
    "$defs": {f"d{index}": {"$ref": f"#/$defs/d{index + 1}"} for index in range(3000)} | {"d3000": {}},
}

DOUBLING = {
    "$ref": "#/$defs/d0",
    "$defs": {f"d{index}": {"allOf": 2 * [{"$ref": f"#/$defs/d{index + 1}"}]} for index in range(20)} | {"d20": {}},
}


@pytest.fixture
def tools_of(write_skill, tmp_path):
    """Return the tools of a skill ``a`` whose skill.yaml has the given entries (JSON is YAML)."""

    def declare(*entries, files=FILES, **top):
        text = json.dumps({"skill": "a", "version": "2.0.0", "tools": list(entries), **top})
        write_skill("a", files={**FILES, **files, "skill.yaml": text})
        return find_tools(scan([tmp_path / "skills"]).skills.values())

    return declare


def test_a_declared_tool_is_found_without_importing_it(tools_of, tmp_path):
    tools = tools_of({**ENTRY, "intent_tags": ["x"], "composable": True})
    tool = tools.by_id["a.run"]
    assert tools.faults == ()
    assert (tool.skill, tool.version, tool.script) == ("a", "1.0.0", str(tmp_path / "skills/a/scripts/run.py"))
    assert (tool.input_schema, tool.output_schema) == ({"type": "object"}, {"type": "object"})
    assert tool.entry["intent_tags"] == ["x"]
    assert tools.of_skill("a") == [tool]


def test_a_tool_without_a_version_has_its_skills(tools_of):
    entry = {key: value for key, value in ENTRY.items() if key != "version"}
    assert tools_of(entry).by_id["a.run"].version == "2.0.0"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"id": 3}, "'id' must be a string, got 3"),
        ({"id": "A.Run"}, "is not lower-case words joined by dots"),
        ({"script": "scripts/none.py"}, "script 'scripts/none.py' does not exist"),
        ({"script": "../outside.py"}, "lies outside the skill"),
        ({"script": "/bin/sh"}, "lies outside the skill"),
        ({"script": "scripts"}, "does not exist"),
        ({"script": "a\0b"}, "script holds a NUL character"),
        ({"version": 1.1}, "'version' must be a quoted version such as \"1.2.0\", got 1.1"),
        ({"input_schema": []}, "'input_schema' must be the name of a file of the skill or a JSON Schema, got array []"),
        ({"output_schema": "scripts/run.py"}, "Invalid JSON format"),
        ({"intent_tag": []}, "unknown field 'intent_tag'; did you mean 'intent_tags'?"),
        ({"composable": "yes"}, "'composable' must be true or false"),
    ],
)
def test_a_faulty_tool_is_reported_and_does_not_hide_the_next(tools_of, change, reason):
    tools = tools_of({**ENTRY, **change}, {**ENTRY, "id": "a.other"})
    assert list(tools.by_id) == ["a.other"]
    assert [reason in fault.reason for fault in tools.faults] == [True]


def test_all_faults_of_a_tool_are_reported_at_once(tools_of):
    (fault,) = tools_of({"id": "a.run", "script": "x.py", "cost": 3}).faults
    assert fault.tool == "a.run"
    assert fault.reason == (
        "'cost' must be an object, got 3; has no input_schema; has no output_schema; script 'x.py' does not exist"
    )


def test_skills_of_a_folder_share_definitions(tools_of, tmp_path):
    shared = tmp_path / "skills/shapes.json"
    shared.parent.mkdir()
    shared.write_text('{"$defs": {"size": {"type": "integer", "minimum": 1}}}')
    reference = {"$ref": "../../shapes.json#/$defs/size"}
    files = {"schemas/out.json": json.dumps({"type": "object", "properties": {"n": reference}})}
    in_place = {"type": "object", "properties": {"n": {"$ref": "../shapes.json#/$defs/size", "default": 2}}}
    tools = tools_of({**ENTRY, "input_schema": in_place}, files=files)
    assert tools.faults == ()
    tool = tools.by_id["a.run"]
    size = {"type": "integer", "minimum": 1}
    assert tool.input_schema["properties"] == {"n": {**size, "default": 2}}
    assert tool.output_schema["properties"] == {"n": size}
    assert tool.shared_files == (str(shared),)


def test_references_that_leave_the_folder_of_the_skills_are_refused_with_all_other_faults(tools_of, tmp_path):
    (tmp_path / "private.json").write_text('{"$defs": {"key": {"const": "hunter2"}}}')
    references = ["../../private.json#/$defs/key", "https://example.org/x.json#/$defs/x"]
    in_place = {"prefixItems": [{"$ref": reference} for reference in references], "pattern": "("}
    (fault,) = tools_of({**ENTRY, "input_schema": in_place}).faults
    assert "leads out of the folder of the skills" in fault.reason
    assert "'https://example.org/x.json#/$defs/x' is not followed" in fault.reason
    assert "pattern '(' is not a regular expression" in fault.reason
    assert "hunter2" not in fault.reason


def test_a_tool_that_is_no_mapping_is_reported_by_its_place(tools_of):
    assert [fault.tool for fault in tools_of("x", ENTRY).faults] == ["tools[0]"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("tools: [", "not valid YAML"),
        ("tools: 3", "needs a list 'tools'"),
        ("", "needs a list 'tools'"),
        ("skill: b\ntools: []", "says skill 'b', but the skill is called 'a'"),
        ("tools: []\ntools: []", "the key 'tools' twice"),
        ("a: &x 1\ntools: [*x]", "alias"),
        ("tools: [!!python/name:os.system x]", "not valid YAML"),
        ("a: 2026-99-99\ntools: []", "not valid YAML"),
        (b"\xff", "not UTF-8"),
    ],
)
def test_an_unreadable_declaration_is_one_fault_of_its_skill(write_skill, tmp_path, text, reason):
    write_skill("a", files={"skill.yaml": text})
    tools = find_tools(scan([tmp_path / "skills"]).skills.values())
    assert (dict(tools.by_id), [fault.tool for fault in tools.faults]) == ({}, [""])
    assert reason in tools.faults[0].reason


def test_of_equal_ids_the_first_skills_tool_is_used(write_skill, tmp_path):
    for name in ("a", "b"):
        write_skill(name, files={**FILES, "skill.yaml": json.dumps({"tools": [ENTRY]})})
    tools = find_tools(scan([tmp_path / "skills"]).skills.values())
    assert tools.by_id["a.run"].skill == "a"
    assert [(fault.skill, fault.reason) for fault in tools.faults] == [("b", "skill 'a' has a tool of the same id")]


def test_a_skill_without_declaration_has_no_tools(write_skill, tmp_path):
    write_skill("a")
    tools = find_tools(scan([tmp_path / "skills"]).skills.values())
    assert (dict(tools.by_id), tools.faults) == ({}, ())


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"version": "1.x"}, '\'version\' must be a version such as "1.2.0", got "1.x"'),
        ({"version": "1.0.0-01"}, "must be a version"),
        ({"version": "1.0.0-a..b"}, "must be a version"),
        ({"version": "1.0.0+"}, "must be a version"),
        ({"version": "1.0.0\n"}, "must be a version"),
        ({"id": "a.run\n"}, "is not lower-case words joined by dots"),
        ({"cost": {"model_class": "smal"}}, "'cost.model_class' must be one of small, medium, large"),
        ({"cost": {"rounds": 1}}, "cost has an unknown field 'rounds'"),
        ({"models": {"primry": ""}}, "models has an unknown field 'primry'; did you mean 'primary'?"),
        ({"context": {"retrieve_top_k": -1}}, "'context.retrieve_top_k' must be at least 0, got -1"),
        ({"context": {"retrieve_top_k": 10**7}}, "'context.retrieve_top_k' must be at most 1000000, got 10000000"),
        ({"cost": {"expected_rounds": 10**7}}, "'cost.expected_rounds' must be at most 1000000, got 10000000"),
        ({"dependencies": ["b.c@latest"]}, "dependency 'b.c@latest': 'latest' is not a version"),
        ({"environment": ["A B"]}, "'A B' is not the name of a variable"),
        ({"input_schema": {"type": "nmber"}}, "input_schema is not a valid JSON Schema: $.type"),
        ({"input_schema": {"pattern": "("}}, "is not a regular expression"),
        ({"input_schema": {"pattern": "^(a+)+$"}}, "repeats a repetition, which may take for ever"),
        ({"input_schema": {"$ref": "#/$defs/x"}}, "leads to nothing in the schema"),
        ({"input_schema": {"allOf": [{"$ref": "#"}]}}, "a $ref leads back to itself"),
        ({"input_schema": LONG_CHAIN}, "or through more than 50 others"),
        ({"input_schema": DOUBLING}, "one value would be checked by 4194302 schemas, more than the 5000 allowed"),
        ({"input_schema": {"$ref": "https://example.org/x"}}, "$ref 'https://example.org/x' is not followed"),
        ({"input_schema": {"$ref": "#/$defs/x", "$defs": {"x": 3}}}, "input_schema is not a valid JSON Schema"),
        ({"input_schema": {"$ref": "#/odd", "odd": {"type": "nmber"}}}, "input_schema is not a valid JSON Schema"),
        ({"input_schema": {"$dynamicRef": "#x"}}, "$dynamicRef is not followed; write $ref"),
        (
            {"input_schema": {"not": {"$id": "x:y", "$ref": "#/$defs/z"}, "$defs": {"z": {}}}},
            "$id is allowed at the top",
        ),
        ({"migrations": [{"version": "1.1.0", "changes": [{"rename": "a"}]}]}, "the change 'rename' needs to"),
        ({"migrations": [{"version": "1.1.0", "changes": [{"renam": "a"}]}]}, "did you mean 'rename'?"),
    ],
)
def test_a_declaration_that_cannot_work_is_reported_when_it_is_read(tools_of, change, reason):
    """S4.1: each field is checked before anything is called."""
    tools = tools_of({**ENTRY, **change})
    assert dict(tools.by_id) == {}
    assert reason in tools.faults[0].reason


@pytest.mark.parametrize(
    ("pattern", "endless"),
    [
        ("^(a+)+$", True),
        ("^(?:a*)*$", True),
        (r"^(\w+\s?)*$", True),
        ("^((a|b+)c?){2,}$", True),
        ('^(?:[^"]+|x)*$', True),
        (r"^[a-z]+(\.[a-z]+)*$", False),
        ("^(a+){2,5}$", False),
        ("^(ab|c)+$", False),
        (r"^\(+\)+$", False),
        (r"^(\d+(,\d+)*)?$", False),
    ],
)
def test_patterns_that_take_for_ever_are_known(pattern, endless):
    assert never_ends(pattern) is endless


def test_an_unknown_field_of_the_file_is_reported_and_costs_no_tool(tools_of):
    tools = tools_of(ENTRY, verison="1")
    assert list(tools.by_id) == ["a.run"]
    assert [fault.reason for fault in tools.faults] == ["has an unknown field 'verison'; did you mean 'version'?"]


QUIZ = {
    "id": "quiz",
    "display_name": "练习题生成",
    "version": "1.0.0",
    "intent_tags": ["quiz"],
    "input_schema": {
        "type": "object",
        "properties": {
            "topic": {"type": "string"},
            "difficulty": {"type": "string"},
            "num_questions": {"type": "number"},
        },
        "required": ["topic"],
    },
    "output_schema": {"type": "object", "properties": {"questions": {"type": "array"}}},
    "models": {"primary": "small-model", "fallback": "large-model"},
    "context": {"need_user_memory": True, "need_content_store": True, "retrieve_top_k": 5},
    "cost": {"model_class": "small", "context_size": "small", "expected_rounds": 1},
    "composable": True,
    "dependencies": [],
}


def test_the_registry_entry_of_the_specification_is_read_from_skill_json(write_skill, tmp_path):
    """S4.1: JSON or YAML, one entry a file."""
    write_skill("quiz", files={"skill.json": json.dumps(QUIZ)})
    tools = find_tools(scan([tmp_path / "skills"]).skills.values())
    assert tools.faults == ()
    assert tools.by_id["quiz"].script == ""
    assert tools.by_id["quiz"].to_json() == {**QUIZ, "skill": "quiz", "description": ""}


def test_defaults_of_a_registry_entry_are_reported(tools_of):
    told = tools_of(ENTRY).by_id["a.run"].to_json()
    assert "script" not in told
    assert (told["display_name"], told["composable"], told["dependencies"]) == ("a.run", True, [])
    assert told["cost"] == {"model_class": "small", "context_size": "small", "expected_rounds": 1}


@pytest.mark.parametrize(("top", "first"), [({}, ("a",)), ({"toolsets": ["z"]}, ("z",))])
def test_toolsets_come_from_the_tool_else_the_file_else_the_id(tools_of, top, first):
    tools = tools_of(ENTRY, {**ENTRY, "id": "b.run", "toolsets": ["x", "y"]}, **top)
    assert {tool.id: tool.toolsets for tool in tools.by_id.values()} == {"a.run": first, "b.run": ("x", "y")}


@pytest.mark.parametrize("wrong", ["layout", [], ["Layout"], ["a b"], ["a", "a"], [3]])
@pytest.mark.parametrize("at_top", [True, False])
def test_toolsets_that_are_no_list_of_words_are_reported(tools_of, wrong, at_top):
    tools = tools_of(ENTRY, toolsets=wrong) if at_top else tools_of({**ENTRY, "toolsets": wrong})
    assert tools.by_id == {}
    assert any("toolsets" in fault.reason for fault in tools.faults)


def test_of_two_declarations_the_yaml_is_read_and_the_other_reported(write_skill, tmp_path):
    write_skill("a", files={**FILES, "skill.yaml": json.dumps({"tools": [ENTRY]}), "skill.json": "{"})
    tools = find_tools(scan([tmp_path / "skills"]).skills.values())
    assert list(tools.by_id) == ["a.run"]
    assert ["skill.json beside it is not read" in fault.reason for fault in tools.faults] == [True]


def test_several_versions_of_one_tool_are_kept_latest_first(tools_of):
    """S0.11."""
    versions = ["1.9.0", "1.10.0", "2.0.0-rc.1", "1.10.0-rc.1"]
    tools = tools_of(*({**ENTRY, "version": version} for version in versions))
    assert [tool.version for tool in tools.versions("a.run")] == ["2.0.0-rc.1", "1.10.0", "1.10.0-rc.1", "1.9.0"]
    assert tools.by_id["a.run"].version == "2.0.0-rc.1"
    assert tools.versions("a.none") == ()


def test_the_same_version_twice_is_reported(tools_of):
    assert ["declared twice" in fault.reason for fault in tools_of(ENTRY, ENTRY).faults] == [True]


def test_the_schema_of_a_declaration_is_valid_and_accepts_what_is_shipped():
    """S4.1: the JSON Schema says the whole shape on its own, for a list of tools and for one registry entry."""
    schema = json.loads((Path(skillpack.__file__).parent / "schemas" / "skill.schema.json").read_text())
    assert schema_problems(schema) == []
    judge = Draft202012Validator(schema)
    shipped = sorted((Path(__file__).parents[2] / "skills").glob("*/skill.yaml"))
    assert len(shipped) >= 15
    for path in shipped:
        assert [error.message for error in judge.iter_errors(load_typed_mapping(path.read_text()))] == [], path
    assert judge.is_valid(QUIZ)
    assert judge.is_valid({"tools": [ENTRY]})
    refused = (
        {},
        {"tools": [{**ENTRY, "cost": 3}]},
        {**QUIZ, "verison": "1"},
        {"tools": [QUIZ]},
        {"tools": [], "x": 1},
    )
    assert [judge.is_valid(document) for document in refused] == [False] * 5


@pytest.mark.parametrize("name", ["skill.json", "skill.yaml"])
def test_a_folder_with_a_declaration_alone_is_in_the_registry_and_in_no_prompt(tmp_path, name):
    """The storage of S4: ``skills/quiz/skill.json`` and nothing else."""
    home = tmp_path / "quiz"
    home.mkdir()
    entry = {"id": "quiz", "intent_tags": ["quiz"], "input_schema": {"type": "object"}, "output_schema": {}}
    (home / name).write_text(json.dumps(entry), encoding="utf-8")
    loader = SkillLoader(tmp_path)
    assert (loader.has_skills(), loader.get_prompt_section()) == (False, "")
    registry = SkillRegistry.from_tools(find_tools(loader.declaring))
    assert [match.name for match in registry.get_skills_by_intent("quiz")] == ["quiz"]
    with Pack([tmp_path]) as pack:
        assert list(pack.view().tools.by_id) == ["quiz"]
