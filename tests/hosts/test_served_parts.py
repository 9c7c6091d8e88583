"""The parts the servers are made of: names, schemas, pictures, redacted texts, who may ask."""

import base64
import os
from dataclasses import replace
from types import SimpleNamespace
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from extras import Late
from pack_tools import pack_tools
from skillpack import Call, ToolDeclaration, Tools
from skillpack.hosts.http.api import without_paths
from skillpack.hosts.mcp.work_resources import MAX_IMAGE_BYTES, images
from skillpack.hosts.served_schemas import (
    MAX_NAME,
    answer_codes,
    envelope_schema,
    lean_input,
    served_names,
    structured_answer,
    travelling,
)
from skillpack.hosts.work_files import WorkFiles
from skillscript import SkillError, SkillResult
from sturdy.schema_acceptance import resolve_pointer

api, openapi = Late("skillpack.hosts.http.api"), Late("skillpack.hosts.http.openapi")


def tool(input_schema=None, output_schema=None, **entry):
    return ToolDeclaration("a.b", "s", "x.py", input_schema or {}, output_schema or {}, entry=entry)


IDS = st.lists(st.from_regex(r"[a-c]([a-c._-]{0,4}[a-c])?", fullmatch=True), unique=True, max_size=12)


@given(IDS, st.sampled_from(["underscored", "dotted"]))
def test_no_name_stands_for_two_tools_and_none_is_lost(ids, style):
    names = served_names(ids, style, taken=["a_b"])
    assert list(names.values()) == ids
    assert "a_b" not in names
    if style == "underscored":
        assert all("." not in name for name in names)


def test_the_first_of_two_colliding_tools_keeps_the_plain_name():
    names = served_names(["a.b_c", "a_b.c"], "underscored")
    first, second = names
    assert first == "a_b_c"
    assert second.startswith("a_b_c_")
    assert served_names(["a_b.c"], "underscored") == {"a_b_c": "a_b.c"}


def test_a_name_is_no_longer_than_hosts_take():
    long = [f"layout.{'x' * 80}{number}" for number in range(3)]
    assert {len(name) for name in served_names(long, "underscored")} == {MAX_NAME}


SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "$id": "https://example.org/box",
    "title": "Box",
    "type": "object",
    "additionalProperties": False,
    "required": ["box"],
    "properties": {
        "box": {"$ref": "#/$defs/box"},
        "x-env": {"type": ["integer", "null"], "x-env": "NAME"},
        "kind": {"enum": [{"$ref": "#/not/a/reference"}]},
        "inner": {"$ref": "#"},
    },
    "$defs": {"box": {"type": "array", "items": {"type": "number"}, "x-error": "no"}},
}


@pytest.mark.parametrize(
    ("value", "valid"),
    [
        ({"box": [1, 2]}, True),
        ({"box": ["1"]}, False),
        ({"box": [], "x-env": None}, True),
        ({"box": [], "x-env": 1.5}, False),
        ({"box": [], "inner": {"box": []}}, True),
        ({"box": [], "inner": {}}, False),
        ({"box": [], "kind": {"$ref": "#/not/a/reference"}}, True),
        ({"box": [], "other": 1}, False),
    ],
)
def test_a_schema_says_the_same_wherever_it_has_travelled(value, valid):
    home = {"properties": {"deep": {"anyOf": [travelling(SCHEMA, "#/properties/deep/anyOf/0")]}}}
    assert Draft202012Validator(SCHEMA).is_valid(value) is valid
    assert Draft202012Validator(home).is_valid({"deep": value}) is valid


def test_what_only_this_pack_reads_does_not_travel():
    text = str(travelling(SCHEMA, "#"))
    assert "x-error" not in text
    assert "NAME" not in text
    assert "'x-env': {" in text  # a property of that name stays


@pytest.mark.parametrize("form", ["envelope", "success"])
@pytest.mark.parametrize(
    "result",
    [
        SkillResult.success({"box": [1]}, 5),
        SkillResult.failure(SkillError("TIMEOUT", "too slow", {"timeout_s": 1}), 5),
        SkillResult.failure(SkillError("OWN_CODE", "mine", own=("OWN_CODE",)), 5),
        SkillResult.failure(SkillError("DRC_VIOLATION", "bad", None, {"violations": []}), 5),
    ],
)
def test_every_result_is_answered_in_the_declared_form(form, result):
    declared = tool(None, {**SCHEMA, "x-error-codes": {"OWN_CODE": "Mine."}}, answer=form)
    answer = structured_answer(declared, Call(result, tool=declared))
    assert answer[{"envelope": "ok", "success": "success"}[form]] is (result.error is None)
    envelope = envelope_schema(travelling(declared.output_schema, "#/oneOf/0/properties/data"), answer_codes(declared))
    Draft202012Validator(envelope).validate(result.to_dict())


@pytest.mark.parametrize(
    "answer",
    [
        {"ok": True, "error": None, "data": {}, "duration_ms": 1},
        {"ok": True, "error": None, "data": None, "duration_ms": 1},
        {"ok": False, "error": None, "data": None, "duration_ms": 1},
        {"ok": False, "error": {"code": "NO_SUCH", "message": "", "details": None}, "data": None, "duration_ms": 1},
        {"ok": True, "error": None, "data": {"box": []}},
    ],
)
def test_the_envelope_that_http_describes_refuses_what_no_tool_answers(answer):
    data = travelling(SCHEMA, "#/oneOf/0/properties/data")
    assert not Draft202012Validator(envelope_schema(data, ["TIMEOUT"])).is_valid(answer)


class TestPictures:
    @pytest.fixture(autouse=True)
    def in_folder(self, tmp_path, monkeypatch):
        (tmp_path / "work").mkdir()
        (tmp_path / "out").mkdir()
        monkeypatch.chdir(tmp_path / "work")

    def found(self, path, params=None, since=0.0, schema=None):
        return self.shown(schema, params or {}, {"image_path": str(path)}, since)

    def shown(self, schema, params, data, since=0.0):
        files = WorkFiles()
        blocks = images(files, files.made(tool(schema), params, data, since))
        return [base64.b64decode(block["data"]) for block in blocks]

    def test_one_in_the_working_folder_is_found(self, tmp_path, tools_of_the_trade):
        path = tmp_path / "work" / "a.png"
        path.write_bytes(tools_of_the_trade.PNG)
        assert self.found(path) == [tools_of_the_trade.PNG]
        assert self.shown(None, {}, {"files": {"png": str(path), "gds": "a.gds"}}) == [tools_of_the_trade.PNG]

    def test_one_elsewhere_is_found_only_where_the_call_names_the_folder(
        self, tmp_path, tools_of_the_trade, monkeypatch
    ):
        path = tmp_path / "out" / "a.png"
        path.write_bytes(tools_of_the_trade.PNG)
        assert self.found(path) == []
        assert self.found(path, {"workspace": str(tmp_path / "out")}) == [tools_of_the_trade.PNG]
        assert self.found(path, {"output_path": str(path)}) == [tools_of_the_trade.PNG]
        assert self.found(path, {"output_path": "/x.png"}) == []
        monkeypatch.setenv("BENCH_OUT", str(tmp_path / "out"))
        schema = {"properties": {"workspace": {"type": "string", "x-env": "BENCH_OUT"}}}
        assert self.found(path, schema=schema) == [tools_of_the_trade.PNG]

    def test_one_that_the_call_did_not_make_is_left_out(self, tmp_path, tools_of_the_trade):
        path = tmp_path / "work" / "old.png"
        path.write_bytes(tools_of_the_trade.PNG)
        os.utime(path, (1e9, 1e9))
        assert self.found(path, since=2e9) == []

    @pytest.mark.parametrize("content", [b"", b"not a picture", b"\x89PNG"])
    def test_what_is_no_png_is_left_out(self, tmp_path, content):
        (tmp_path / "work" / "a.png").write_bytes(content)
        assert self.found(tmp_path / "work" / "a.png") == []

    def test_one_that_is_too_large_a_link_or_not_there_is_left_out(self, tmp_path, tools_of_the_trade):
        large = tmp_path / "work" / "large.png"
        large.write_bytes(tools_of_the_trade.PNG + bytes(MAX_IMAGE_BYTES))
        (tmp_path / "out" / "secret.png").write_bytes(tools_of_the_trade.PNG)
        (tmp_path / "work" / "link.png").symlink_to(tmp_path / "out" / "secret.png")
        assert self.found(large) == []
        assert self.found(tmp_path / "work" / "link.png") == []
        assert self.found(tmp_path / "work" / "nothing.png") == []
        assert self.found("a\0.png") == []
        assert self.found(tmp_path / "work") == []


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("cannot read /home/user/x/y.gds: No such file", "cannot read y.gds: No such file"),
        ("(/opt/x/y.py:12)", "(y.py:12)"),
        ("path=/var/lib/z/q.json", "path=q.json"),
        ("file:///srv/www/x", "file://x"),
        (r"C:\Users\me\x.txt is bad", "x.txt is bad"),
        ("ratio 1/2, text/plain, http://a.b/c/d, a/b/c.txt", "ratio 1/2, text/plain, http://a.b/c/d, a/b/c.txt"),
        ("[pS] 3/4 [um/um2]", "[pS] 3/4 [um/um2]"),
    ],
)
def test_folders_are_taken_out_of_a_text(text, left):
    assert without_paths({"message": text, "more": [text]}, {}) == {"message": left, "more": [left]}


def test_a_path_that_was_requested_is_no_secret():
    asked = {"params": {"layout_path": "/data/designs/a.gds"}}
    assert without_paths("no file /data/designs/a.gds in /data/other/b", asked) == "no file /data/designs/a.gds in b"


def test_every_call_has_a_name_of_its_own_in_the_openapi_document():
    """A client that is generated has one function by that name."""
    by_id = {name: replace(tool(), id=name, script="x.py") for name in ("a.b_c", "a_b.c")}
    told = openapi.document(api.PackApi(None, None).app(), SimpleNamespace(tools=Tools(by_id)), 1, needs_token=False)
    names = [operation["operationId"] for path in told["paths"].values() for operation in path.values()]
    assert len(set(names)) == len(names)
    assert "execute_a_b_c" in names


def references(schema):
    """Yield every ``$ref`` of a document."""
    for key, rule in schema.items() if isinstance(schema, dict) else enumerate(schema):
        if key == "$ref" and isinstance(rule, str):
            yield rule
        elif isinstance(rule, (dict, list)):
            yield from references(rule)


def test_every_schema_of_this_pack_is_served_self_contained(tools_of_the_trade):
    """Over MCP, in the OpenAPI document and as the registry answers it, although files share definitions."""
    tools = pack_tools()
    assert any(".json#" in path.read_text() for path in tools_of_the_trade.ROOT.glob("skills/*/schemas/*.json"))
    served = [openapi.document(api.PackApi(None, None).app(), SimpleNamespace(tools=tools), 1, needs_token=False)]
    for declared in tools.by_id.values():
        served += [lean_input(declared.input_schema), lean_input(declared.input_schema, rare=False)]
        served += [declared.to_json()["input_schema"], declared.to_json()["output_schema"]]
    for schema in served:
        lost = [place for place in set(references(schema)) if resolve_pointer(schema, unquote(place)) is None]
        assert lost == []


def test_a_long_request_full_of_paths_is_looked_through_once():
    """To look for each path of the answer in the whole request would take minutes for four megabytes."""
    asked = [f"/a/{number}" for number in range(200_000)]
    assert without_paths(["/a/77 /a /b/77", *asked], asked) == ["/a/77 /a 77", *asked]


def test_folders_of_this_machine_are_known_with_blanks_and_all(tmp_path, monkeypatch):
    folder = tmp_path / "a folder with blanks"
    folder.mkdir()
    monkeypatch.chdir(folder)
    assert without_paths(f"cannot read {folder}/b.gds", {}) == "cannot read b.gds"


def access(**more):
    from skillpack.hosts.listening import Access

    return Access(**more)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.com", ""])  # noqa: S104
def test_others_may_reach_a_server_only_with_a_token(host):
    pytest.importorskip("anyio")
    assert "token" in access(host=host).problem()
    assert access(host=host, token="a-token-of-some-length").problem() is None  # noqa: S106


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.53", "::1", "localhost", "LOCALHOST"])
def test_a_server_for_this_machine_needs_none(host):
    pytest.importorskip("anyio")
    assert access(host=host).problem() is None


@pytest.mark.parametrize(
    ("header", "accepted"),
    [
        ("127.0.0.1:80", True),
        ("LocalHost", True),
        ("[::1]:80", True),
        ("proxy.example:443", True),
        ("evil.example", False),
        ("127.0.0.1@evil.example", False),
        ("127.0.0.1.evil.example", False),
        ("[::1].evil.example", False),
        ("localhost:80:80", False),
        ("", False),
    ],
)
def test_a_host_header_must_name_this_server(header, accepted):
    pytest.importorskip("anyio")
    assert access(names=frozenset({"proxy.example"})).accepts_host(header) is accepted


def test_the_bounds_of_a_tool_that_writes_much():
    pytest.importorskip("anyio")
    from skillpack.hosts.pack import MAX_LINE, MAX_LINES, StderrLines

    output = StderrLines()
    output.feed(b"beg")
    assert output.take() == []
    output.feed("inning\nwith ä".encode() + b"\xff\n\n")
    assert output.take() == ["beginning", "with ä\ufffd"]
    output.feed(b"x" * 1_000_000)
    output.feed(b"\n" * 1000 + b"".join(b"%d\n" % number for number in range(1000)))
    lines = output.take()
    assert len(lines) <= MAX_LINES
    assert max(map(len, lines)) <= MAX_LINE
    assert lines[-1] == "999"


def test_a_tool_is_found_by_its_names_in_both_styles_and_by_its_id():
    pytest.importorskip("mcp")
    from skillpack.hosts.mcp.pack_server import Toolbox

    known = {name: ToolDeclaration(name, "s", "x.py", {}, {}) for name in ("a.b_c", "a_b.c", "skill.request")}
    known["a.none"] = ToolDeclaration("a.none", "s", "", {}, {})
    view = SimpleNamespace(tools=SimpleNamespace(by_id=known), toolsets=())
    for style in ("underscored", "dotted"):
        box = Toolbox(view, style)
        assert [box.find(name).id for name in box.names] == ["a.b_c", "a_b.c", "skill.request"]
        assert box.find("a_b.c").id == "a_b.c"
        assert box.find("a_b_c").id == "a.b_c"
        assert box.find("a.none") is None  # declared without a script
        assert box.find("nothing") is None
        assert "skill_request" not in box.names


def test_a_skill_without_a_name_is_served_under_its_folders(tmp_path):
    from skillpack import load_skill
    from skillpack.hosts.mcp.skill_files import entry

    home = tmp_path / "unnamed"
    home.mkdir()
    (home / "SKILL.md").write_text("---\ndescription: d\n---\nbody\n")
    assert entry(load_skill(home / "SKILL.md"))["frontmatter"] == {"name": "unnamed", "description": "d"}


def test_nothing_is_called_for_a_client_that_leaves_before_its_body_has_come():
    anyio = pytest.importorskip("anyio")
    from skillpack.hosts.listening import Access, Guard

    asked, answered = [], []

    async def app(*given):
        asked.append(given)

    async def receive():
        return {"type": "http.disconnect"}

    async def send(message):
        answered.append(message)

    scope = {"type": "http", "path": "/skills", "headers": [(b"host", b"localhost")]}
    anyio.run(Guard(app, Access()), scope, receive, send)
    assert (asked, answered) == ([], [])
