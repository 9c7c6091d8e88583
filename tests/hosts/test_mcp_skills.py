"""Skills over MCP: the three tools a model reads them with, resources, and the Skills extension (SEP-2640)."""

import base64
import hashlib
import json
import os

import pytest
import yaml
from jsonschema import Draft202012Validator

from extras import extra

mcp = extra("mcp", reason="skipped: needs the extra mcp")

pytestmark = pytest.mark.anyio


async def ask(client, method, **params):
    """Return the raw result of a method that the SDK does not know."""
    from mcp_types import Request
    from pydantic import TypeAdapter

    request = Request[dict, str](method=method, params=params)
    return await client.session.send_request(request, TypeAdapter(dict))


async def skill_tool(client, tool_name, **arguments):
    """Return the result of one of the three tools, which must be what its schema says."""
    tool = next(tool for tool in (await client.list_tools()).tools if tool.name == tool_name)
    result = await client.call_tool(tool_name, arguments)
    Draft202012Validator(tool.output_schema).validate(result.structured_content)
    return result


async def test_skill_request_serves_the_body_and_lists_the_resources(mcp_server):
    """S3.2."""
    async with mcp.Client(mcp_server) as client:
        result = await skill_tool(client, "skill_request", name="bench")
    assert not result.is_error
    assert "# bench" in result.content[0].text
    assert "references/dot.png" in result.content[0].text
    assert result.structured_content["data"]["content"] == result.content[0].text


async def test_an_unknown_skill_is_an_answer_with_suggestions_not_a_crash(mcp_server):
    """S3.2."""
    async with mcp.Client(mcp_server) as client:
        result = await skill_tool(client, "skill_request", name="bensh")
        wrong = await skill_tool(client, "skill_request", nam="bench")
    assert result.is_error
    assert result.structured_content["suggestions"] == ["bench"]
    assert wrong.is_error
    assert "nam" in wrong.structured_content["message"]


async def test_the_names_of_all_skills_are_an_enum_and_their_descriptions_are_shown(mcp_server):
    async with mcp.Client(mcp_server) as client:
        tool = next(tool for tool in (await client.list_tools()).tools if tool.name == "skill_request")
    assert tool.input_schema["properties"]["name"]["enum"] == ["bench", "memory"]
    assert "- memory: Quick things to memory with." in tool.description
    assert len(tool.description) < 2000


async def test_skill_read_serves_a_text_as_text_and_a_picture_as_a_picture(mcp_server, tools_of_the_trade):
    """S3.3."""
    async with mcp.Client(mcp_server) as client:
        text = await skill_tool(client, "skill_read", name="bench", path="references/más.md")
        picture = await skill_tool(client, "skill_read", name="bench", path="references/dot.png")
        outside = await skill_tool(client, "skill_read", name="bench", path="../memory/SKILL.md")
    assert text.content[0].text == "Größe\r\n"
    assert base64.b64decode(picture.content[0].data) == tools_of_the_trade.PNG
    assert outside.is_error
    assert ".." in outside.structured_content["message"]


async def test_skill_search_finds_the_skill_that_helps(mcp_server):
    async with mcp.Client(mcp_server) as client:
        result = await skill_tool(client, "skill_search", query="something with memory")
    assert result.structured_content["data"]["skills"][0]["name"] == "memory"


async def test_skills_are_resources(mcp_server):
    async with mcp.Client(mcp_server) as client:
        listed = {resource.uri: resource for resource in (await client.list_resources()).resources}
        templates = (await client.list_resource_templates()).resource_templates
        binary = await client.read_resource("skill://bench/references/dot.png")
    assert set(listed) == {"skill://bench/SKILL.md", "skill://memory/SKILL.md"}
    assert listed["skill://bench/SKILL.md"].name == "bench"
    assert listed["skill://bench/SKILL.md"].mime_type == "text/markdown"
    assert templates[0].uri_template == "skill://{skill}/{+path}"
    assert binary.contents[0].mime_type == "image/png"


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_every_entry_is_a_complete_manifest_whose_digests_are_true(mcp_server, pack_dir, mode):
    """SEP-2640: verbatim frontmatter, every file exactly once, sha256 and size of the raw bytes."""
    async with mcp.Client(mcp_server, mode=mode) as client:
        result = await ask(client, "skills/list")
        for entry in result["skills"]:
            home = pack_dir / entry["frontmatter"]["name"]
            header = (home / "SKILL.md").read_text().split("---\n")[1]
            assert entry["frontmatter"] == yaml.safe_load(header)
            assert entry["uri"] == f"skill://{home.name}/SKILL.md"
            on_disk = {
                path.relative_to(home).as_posix()
                for path in home.rglob("*")
                if path.is_file() and not path.name.startswith(".") and "__pycache__" not in path.parts
            }
            assert len(entry["resources"]) == len(on_disk)
            for resource in entry["resources"]:
                contents = (await client.read_resource(resource["uri"])).contents[0]
                data = contents.text.encode() if hasattr(contents, "text") else base64.b64decode(contents.blob)
                assert resource["digest"] == "sha256:" + hashlib.sha256(data).hexdigest()
                assert resource["size"] == len(data)
        assert await ask(client, "skills/get", uri="skill://bench/SKILL.md") | {"skills": []} == {
            **{key: value for key, value in result.items() if key != "skills"},
            "skill": result["skills"][0],
            "skills": [],
        }
    assert (result["resultType"], result["cacheScope"]) == ("complete", "private")
    assert result["ttlMs"] >= 0


async def test_a_folder_lists_its_direct_children(mcp_server):
    async with mcp.Client(mcp_server) as client:
        root = await ask(client, "resources/directory/read", uri="skill://bench")
        below = await ask(client, "resources/directory/read", uri="skill://bench/references")
    kinds = {child["name"]: child["mimeType"] for child in root["resources"]}
    assert kinds["references"] == "inode/directory"
    assert kinds["SKILL.md"] == "text/markdown"
    assert [child["uri"] for child in below["resources"]] == [
        "skill://bench/references/dot.png",
        "skill://bench/references/m%C3%A1s.md",
    ]


@pytest.mark.parametrize(
    ("method", "uri"),
    [
        ("skills/get", "skill://nothing/SKILL.md"),
        ("skills/get", "skill://bench/references/dot.png"),
        ("skills/get", "file:///etc/passwd"),
        ("resources/directory/read", "skill://bench/SKILL.md"),
        ("resources/directory/read", "skill://bench/nothing"),
        ("resources/directory/read", "skill://bench/references/"),
        ("resources/read", "skill://bench"),
        ("resources/read", "skill://bench/nothing.md"),
        ("resources/read", "skill://bench/references/.hidden"),
        ("resources/read", "skill://bench/../memory/SKILL.md"),
        ("resources/read", "skill://bench/%2e%2e/memory/SKILL.md"),
        ("resources/read", "skill://bench/references%2F..%2F..%2Fmemory%2FSKILL.md"),
        ("resources/read", "skill://bench/%00"),
        ("resources/read", "skill://bench/%FF"),
        ("resources/read", "file:///etc/passwd"),
    ],
)
async def test_what_is_not_served_is_invalid_params(mcp_server, method, uri):
    async with mcp.Client(mcp_server) as client:
        with pytest.raises(mcp.MCPError) as raised:
            await (client.read_resource(uri) if method == "resources/read" else ask(client, method, uri=uri))
    assert raised.value.code == -32602


async def test_large_catalogues_come_in_pages_and_a_bad_skill_hides_no_other(tmp_path):
    from skillpack.hosts.mcp.pack_server import PackServer
    from skillpack.hosts.mcp.sdk_server import sdk_server
    from skillpack.hosts.pack import Calls, Pack

    for number in range(230):
        home = tmp_path / f"skill-{number:03}"
        home.mkdir()
        (home / "SKILL.md").write_text(f"---\nname: skill-{number:03}\ndescription: Number {number}.\n---\nBody\n")
    (tmp_path / "skill-007" / "assets").mkdir()
    for number in range(600):
        (tmp_path / "skill-007" / "assets" / f"{number}.txt").write_text("x")
    (tmp_path / "Bad Name").mkdir()
    (tmp_path / "Bad Name" / "SKILL.md").write_text("---\nname: Bad Name\ndescription: Not to be served so.\n---\n")
    with Pack([tmp_path]) as pack:
        async with mcp.Client(sdk_server(PackServer(pack, Calls(2)))) as client:
            names, cursor = [], None
            for _ in range(3):
                page = await ask(client, "skills/list", **({"cursor": cursor} if cursor else {}))
                names += [entry["frontmatter"]["name"] for entry in page["skills"]]
                cursor = page.get("nextCursor")
            assert cursor is None
            assert names == [f"skill-{number:03}" for number in range(230) if number != 7]
            with pytest.raises(mcp.MCPError, match="512"):
                await ask(client, "skills/get", uri="skill://skill-007/SKILL.md")
            for cursor in ("nonsense", base64.b64encode(b"100000").decode(), base64.b64encode(b"-5").decode()):
                with pytest.raises(mcp.MCPError, match="cursor"):
                    await ask(client, "skills/list", cursor=cursor)
            assert not (await client.call_tool("skill_request", {"name": "Bad Name"})).is_error


@pytest.mark.skipif(os.name != "posix", reason="skipped: needs symbolic links")
async def test_links_that_lead_out_of_a_skill_and_output_in_it_are_not_served(tmp_path):
    from skillpack.hosts.mcp.pack_server import PackServer
    from skillpack.hosts.mcp.sdk_server import sdk_server
    from skillpack.hosts.pack import Calls, Pack

    home = tmp_path / "skills" / "linked"
    (home / "references").mkdir(parents=True)
    (home / "SKILL.md").write_text("---\nname: linked\ndescription: Has links.\n---\nBody\n")
    (tmp_path / "secret.txt").write_text("secret")
    (home / "references" / "out.txt").symlink_to(tmp_path / "secret.txt")
    (home / "references" / "in.txt").symlink_to(home / "SKILL.md")
    for folder in ("build", "workspace"):
        (home / folder).mkdir()
        (home / folder / "layout.gds").write_text("x")
    with Pack([tmp_path / "skills"]) as pack:
        async with mcp.Client(sdk_server(PackServer(pack, Calls(2)))) as client:
            entry = (await ask(client, "skills/list"))["skills"][0]
            assert [resource["uri"].rpartition("/")[2] for resource in entry["resources"]] == ["SKILL.md", "in.txt"]
            with pytest.raises(mcp.MCPError):
                await client.read_resource("skill://linked/references/out.txt")
            with pytest.raises(mcp.MCPError):
                await client.read_resource("skill://linked/build/layout.gds")


async def test_all_skills_of_this_pack_can_be_served(tools_of_the_trade):
    from skillpack.hosts.mcp.pack_server import PackServer
    from skillpack.hosts.mcp.sdk_server import sdk_server
    from skillpack.hosts.pack import Calls, Pack

    with Pack([tools_of_the_trade.ROOT / "skills"]) as pack:
        async with mcp.Client(sdk_server(PackServer(pack, Calls(2)))) as client:
            entries = (await ask(client, "skills/list"))["skills"]
            names = {tool.name for tool in (await client.list_tools()).tools}
    shipped = sorted(path.parent.name for path in tools_of_the_trade.ROOT.glob("skills/*/SKILL.md"))
    assert [entry["frontmatter"]["name"] for entry in entries] == shipped
    ids = [tool["id"] for path in tools_of_the_trade.ROOT.glob("skills/*/SKILL.md") for tool in declared(path.parent)]
    assert {tool_id.replace(".", "_") for tool_id in ids} <= names


def declared(skill):
    return yaml.safe_load((skill / "skill.yaml").read_text(encoding="utf-8"))["tools"]


async def test_a_frontmatter_is_sent_as_json_whatever_yaml_makes_of_it(tmp_path):
    from skillpack import load_skill
    from skillpack.hosts.mcp.skill_files import frontmatter

    home = tmp_path / "dated"
    home.mkdir()
    fields = "name: dated\ndescription: >-\n  Folded\n  text.\nmetadata: {since: 2026-01-02, version: 1.10, on: true}\n"
    (home / "SKILL.md").write_text(f"---\n{fields}---\n")
    found = frontmatter(load_skill(home / "SKILL.md"))
    assert json.loads(json.dumps(found)) == found
    assert found["description"] == "Folded text."
    assert found["metadata"]["since"] == "2026-01-02"
    assert found["metadata"]["version"] == 1.1  # what the reader of the host will make of it, too
