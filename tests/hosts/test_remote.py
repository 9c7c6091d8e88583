"""Clients without a shared disk: over MCP and HTTP they paste a netlist, upload files and get every result as bytes.

One circuit is laid out, over MCP; all tests look at that.
"""

import base64
import hashlib
import json
import shutil
from pathlib import Path

import anyio
import klayout.db as kdb
import pytest
from jsonschema import Draft202012Validator

from extras import extra
from patience import WATCHDOG_S

mcp = extra("mcp", reason="skipped: needs the extra mcp")
httpx2 = extra("httpx2", reason="skipped: needs the extra mcp")
extra("fastapi", reason="skipped: needs the extra http")

pytestmark = pytest.mark.anyio
TOKEN = "a-token-of-some-length"  # noqa: S105
BEARER = {"Authorization": f"Bearer {TOKEN}"}
OTA = (Path(__file__).parents[2] / "skills/netlist-to-gds/assets/ota_5t.spice").read_text(encoding="utf-8")
TECHNOLOGY = Path(__file__).parents[2] / "scripts/layoutkit/technology/generic.yaml"
REQUEST = {"netlist_text": OTA, "technology": "sky130A", "workspace": "ota", "detail": "full"}
KINDS = ("gds", "png", "reference_netlist", "extracted_netlist", "drc_report", "lvs_report", "summary")


@pytest.fixture(scope="module")
def served(tmp_path_factory, tools_of_the_trade):
    """Give the addresses of both servers over one folder, which no test opens."""
    folder = tmp_path_factory.mktemp("server's folder")
    arguments = ("--directory", folder)
    running, environment = tools_of_the_trade.running, {"SKILLPACK_TOKEN": TOKEN}
    with (
        running("mcp", "--http", *arguments, "--max-body", "5000000", environment=environment) as (_, over_mcp),
        running("http", *arguments, "--max-body", "100000", environment=environment) as (_, over_http),
    ):
        yield over_mcp, over_http


@pytest.fixture
async def client(served):
    from mcp.client.streamable_http import streamable_http_client

    async with (
        httpx2.AsyncClient(headers=BEARER, timeout=WATCHDOG_S) as bearing,
        mcp.Client(streamable_http_client(served[0], http_client=bearing)) as client,
    ):
        yield client


_built = {}


@pytest.fixture
async def built(client):
    """Return the answer to the one call that lays the circuit out."""
    if not _built:
        _built["answer"] = await client.call_tool("flow_build_layout", REQUEST)
    return _built["answer"]


@pytest.fixture
def web(served):
    with httpx2.Client(base_url=served[1], headers=BEARER, timeout=WATCHDOG_S) as web:
        yield web


async def resource(client, uri):
    """Return the bytes of a resource and its media type."""
    (content,) = (await client.read_resource(uri)).contents
    text = getattr(content, "text", None)
    return base64.b64decode(content.blob) if text is None else text.encode(), content.mime_type


async def test_a_netlist_pasted_as_text_comes_back_as_layout_picture_netlists_and_reports(client, built):
    data = built.structured_content["data"]
    assert data["drc"]["passed"] is True
    assert data["lvs"]["matched"] is True
    links = {block.name: block for block in built.content if block.type == "resource_link"}
    assert {data["files"][kind] for kind in KINDS} <= set(links)
    (shown,) = (base64.b64decode(block.data) for block in built.content if block.type == "image")
    picture, kind = await resource(client, links["ota/layout.png"].uri)
    assert (picture, kind) == (shown, "image/png")
    assert picture.startswith(b"\x89PNG")
    gds, kind = await resource(client, links["ota/layout.gds"].uri)
    assert (hashlib.sha256(gds).hexdigest(), len(gds)) == (data["layout_sha256"], links["ota/layout.gds"].size)
    assert kind == "application/octet-stream"
    layout = kdb.Layout()
    layout.read_bytes(gds, kdb.LoadLayoutOptions())
    assert [cell.name for cell in layout.top_cells()] == ["ota_5t"]
    assert layout.top_cell().dbbox().area() > 100
    spice, kind = await resource(client, links["ota/reference.spice"].uri)
    assert kind == "text/plain"
    assert b".subckt ota_5t" in spice.lower()
    summary, kind = await resource(client, links["ota/summary.json"].uri)
    assert kind == "application/json"
    assert json.loads(summary)["lvs"]["matched"] is True
    for name in ("ota/drc.lyrdb", "ota/lvs.lvsdb"):
        assert len((await resource(client, links[name].uri))[0]) == links[name].size


async def test_the_files_are_listed_and_found_by_a_template(client, built):  # noqa: ARG001
    listed, cursor = {}, None
    while cursor is not None or not listed:
        page = await client.list_resources(cursor=cursor)
        listed |= {entry.uri: entry for entry in page.resources}
        cursor = page.next_cursor
    assert "skill://netlist-to-gds/SKILL.md" in listed
    assert listed["workspace:///ota/layout.png"].mime_type == "image/png"
    assert not [uri for uri in listed if "/." in uri]
    templates = (await client.list_resource_templates()).resource_templates
    assert "workspace:///{+path}" in [template.uri_template for template in templates]


@pytest.mark.parametrize(
    "path",
    [
        *("../secret", "%2e%2e/secret", "..%2fsecret", "%2Fetc/passwd", "/etc/passwd", "ota/../../x", "ota/.lock"),
        *("ota%5c..%5cx", "a%00b", "%ff", "ota", "", "none", "~/x", "ota//layout.gds"),
    ],
)
async def test_no_resource_and_no_download_leads_out_of_the_folder(client, web, built, path):  # noqa: ARG001
    with pytest.raises(mcp.MCPError, match="workspace"):
        await client.read_resource(f"workspace:///{path}")
    answer = web.get(f"/files/{path}".replace("../", "%2e%2e%2f"))
    assert answer.status_code == 404
    assert answer.json()["ok"] is False


async def test_a_pasted_netlist_is_compared_with_a_layout_that_is_uploaded(client, built):  # noqa: ARG001
    gds, _ = await resource(client, "workspace:///ota/layout.gds")
    tool = next(tool for tool in (await client.list_tools()).tools if tool.name == "file_write")
    arguments = {"path": "given/top.gds", "base64": base64.b64encode(gds).decode()}
    handed = await client.call_tool("file_write", arguments)
    Draft202012Validator(tool.output_schema).validate(handed.structured_content)
    assert handed.structured_content["data"]["created"] is True
    assert [block.uri for block in handed.content if block.type == "resource_link"] == ["workspace:///given/top.gds"]
    again = await client.call_tool("file_write", arguments)
    assert again.is_error
    assert "exists already; give overwrite: true" in again.structured_content["error"]["message"]
    Draft202012Validator(tool.output_schema).validate(again.structured_content)
    large = await client.call_tool("file_write", {"path": "given/large", "text": "x" * 4_500_000})  # beyond the default
    assert large.structured_content["data"]["size"] == 4_500_000
    request = {"layout_path": "given/top.gds", "technology": "sky130A", "netlist_text": OTA, "map_devices": True}
    compared = (await client.call_tool("lvs_run_check", request)).structured_content["data"]
    assert (compared["matched"], compared["complete"]) == (True, True)
    report = {**request, "netlist_text": OTA.replace("M4 out  tmir", "M4 out  out"), "report_path": "given/x.lvsdb"}
    wrong = await client.call_tool("lvs_run_check", report)
    assert wrong.structured_content["data"]["matched"] is False
    assert "given/x.lvsdb" in [block.name for block in wrong.content if block.type == "resource_link"]


async def test_an_example_of_a_skill_runs_with_its_assets_handed_over(client):
    """They lie outside of the server's folder: file_write says that skill_read gives them."""
    (tool,) = (tool for tool in (await client.list_tools()).tools if tool.name == "file_write")
    assert "an asset of a skill as skill_read gives it" in tool.description
    asset = {"name": "drc-check", "path": "assets/example.gds"}
    given = (await client.call_tool("skill_read", asset)).structured_content["data"]
    handed = {"path": given["path"], given["encoding"]: given["content"]}
    assert (await client.call_tool("file_write", handed)).structured_content["ok"]
    checked = (await client.call_tool("drc_run_check", {"layout_path": given["path"]})).structured_content["data"]
    assert {violation["rule_id"] for violation in checked["violations"]}


async def test_a_netlist_with_includes_and_a_technology_are_uploaded(client):
    async def write(path, **content):
        return (await client.call_tool("file_write", {"path": path, **content})).structured_content

    assert (await write("cells/inner.sp", text=".subckt half a b\nR1 a b 1k\n.ends\n"))["ok"]
    top = '.include "inner.sp"\n.subckt top a b\nX1 a m half\nX2 m b half\n.ends\n'
    assert (await write("cells/top.sp", text=top))["ok"]
    parsed = (await client.call_tool("netlist_parse", {"netlist_path": "cells/top.sp"})).structured_content
    assert parsed["data"]["parse_info"]["device_count"] == 2
    pasted = await client.call_tool("netlist_parse", {"netlist_text": top})
    assert "line 1: netlist_text cannot include 'inner.sp'" in pasted.structured_content["error"]["message"]
    text = TECHNOLOGY.read_text(encoding="utf-8").replace("technology: generic", "technology: mine")
    assert (await write("mine.yaml", text=text))["ok"]
    known = (await client.call_tool("technology_validate", {"technology": "mine.yaml"})).structured_content
    assert (known["data"]["valid"], known["data"]["technology"]) == (True, "mine")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"path": "../x", "text": ""}, "without '.' and '..'"),
        ({"path": "/etc/x", "text": ""}, "relative to the server's folder"),
        ({"path": ".hidden/x", "text": ""}, "hidden"),
        ({"path": "CON", "text": ""}, "device"),
        ({"path": "rules.DRC", "text": ""}, "--allow-decks"),
        ({"path": "yaml.py", "text": ""}, "--allow-decks"),
        ({"path": "x"}, "exactly one of text and base64"),
        ({"path": "x", "text": "", "base64": ""}, "exactly one of text and base64"),
        ({"path": "x", "base64": "a=b"}, "base64 cannot be decoded"),
        ({"path": "x", "text": "", "mode": 1}, "mode"),
        ({"text": ""}, "path"),
    ],
)
async def test_what_may_not_be_uploaded_is_refused_with_the_reason(client, arguments, message):
    answer = await client.call_tool("file_write", arguments)
    assert answer.is_error
    assert message in answer.structured_content["error"]["message"]


async def test_a_server_without_a_folder_of_its_own_takes_no_files(mcp_server):
    async with mcp.Client(mcp_server) as client:
        assert "file_write" not in [tool.name for tool in (await client.list_tools()).tools]
        answer = await client.call_tool("file_write", {"path": "x", "text": ""})
    assert answer.is_error
    assert "--directory" in answer.structured_content["error"]["message"]


async def test_a_revision_of_mcp_without_links_gets_none(client, mcp_server, tmp_path, monkeypatch):  # noqa: ARG001
    from skillpack.hosts.mcp import work_resources

    monkeypatch.setattr(work_resources, "LINKS_SINCE", "9999-01-01")
    async with mcp.Client(mcp_server) as old:
        answer = await old.call_tool("bench_draw", {"output_path": str(tmp_path / "a.png")})
    assert [block.type for block in answer.content] == ["text", "image"]


async def test_the_same_files_are_downloads_with_digest_ranges_and_types(client, built, web):
    data = built.structured_content["data"]
    expected, _ = await resource(client, "workspace:///ota/layout.gds")
    answer = web.get("/files/ota/layout.gds")
    assert (answer.status_code, answer.content) == (200, expected)
    tag = f'"{data["layout_sha256"]}"'
    assert answer.headers["etag"] == tag
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cross-origin-resource-policy"] == "same-origin"
    head = web.head("/files/ota/layout.gds")
    same = ("etag", "content-length", "content-type", "accept-ranges")
    assert (head.status_code, head.content) == (200, b"")
    assert [head.headers[name] for name in same] == [answer.headers[name] for name in same]
    assert web.get("/files/ota/layout.gds", headers={"If-None-Match": f'"x", {tag}'}).status_code == 304
    for wanted, part in (("bytes=0-5", expected[:6]), ("bytes=100-", expected[100:]), ("bytes=-7", expected[-7:])):
        ranged = web.get("/files/ota/layout.gds", headers={"Range": wanted})
        assert (ranged.status_code, ranged.content) == (206, part)
        assert ranged.headers["content-range"].endswith(f"/{len(expected)}")
    changed = web.get("/files/ota/layout.gds", headers={"Range": "bytes=0-5", "If-Range": '"other"'})
    assert (changed.status_code, changed.content) == (200, expected)
    assert web.head("/files/ota/layout.gds", headers={"Range": "bytes=0-5"}).status_code == 200  # ranges are of GET
    for wanted in ("bytes=5-2", "bytes=-"):
        assert web.get("/files/ota/layout.gds", headers={"Range": wanted}).status_code == 200
    for wanted in (f"bytes={len(expected)}-", "bytes=-0", f"bytes={'9' * 5000}-"):
        assert web.get("/files/ota/layout.gds", headers={"Range": wanted}).status_code == 416
    assert web.get("/files/ota/layout.gds", headers={"Range": "bytes=5-1,7-8"}).status_code == 200
    assert web.get("/files/ota/layout.png").headers["content-type"] == "image/png"
    assert web.get("/files/ota/reference.spice").headers["content-type"] == "text/plain; charset=utf-8"
    listed = web.get("/files", params={"under": "ota"}).json()
    assert {"path": "ota/layout.gds", "size": len(expected), "media_type": "application/octet-stream"} in listed[
        "files"
    ]
    assert listed["is_cut"] is False


def test_over_http_a_netlist_is_pasted_and_the_answer_names_the_files(web):
    body = {"params": {"netlist_text": OTA, "workspace": "pasted one"}}
    answer = web.post("/skills/netlist.parse/execute", json=body)
    assert (answer.status_code, answer.json()["data"]["circuit_path"]) == (200, "pasted one/circuit.json")
    link = '</files/pasted%20one/circuit.json>; rel="item"; type="application/json"'
    assert answer.headers["link"] == link
    assert web.get("/files/pasted%20one/circuit.json").json() == answer.json()["data"]["circuit"]
    refused = web.post("/skills/netlist.parse/execute", json={"params": {"netlist_text": "x", "netlist_path": "y"}})
    assert refused.status_code == 422
    assert "exactly one of netlist_path, netlist_text" in refused.json()["error"]["message"]


def test_over_http_files_are_uploaded(web):
    first = web.put("/files/up/netlist.sp", content=b"R1 a b 1k\n")
    assert (first.status_code, first.headers["location"]) == (201, "/files/up/netlist.sp")
    second = web.put("/files/up/netlist.sp", content=b"R1 a b 2k\n")
    assert (second.status_code, second.json()["created"]) == (200, False)
    kept = web.put("/files/up/netlist.sp", content=b"", headers={"If-None-Match": "*"})
    assert (kept.status_code, web.get("/files/up/netlist.sp").content) == (412, b"R1 a b 2k\n")
    parsed = web.post("/skills/netlist.parse/execute", json={"params": {"netlist_path": "up/netlist.sp"}})
    assert parsed.json()["data"]["parse_info"]["device_count"] == 1
    assert web.put("/files/up/large", content=bytes(100_001)).status_code == 413
    for path in ("..%2fx", ".x", "up/a%00b", "up/deck.drc", "nul", "up/", "up%5cx"):
        assert web.put(f"/files/{path}", content=b"").status_code == 422
    assert web.put("/files/up", content=b"").status_code == 422
    assert set(web.delete("/files/up/netlist.sp").headers["allow"].split(", ")) == {"GET", "HEAD", "PUT"}


def test_a_file_is_replaced_only_as_the_conditions_of_the_request_say(web):
    assert web.put("/files/c/x", content=b"one").status_code == 201
    tag = web.head("/files/c/x").headers["etag"]
    for path, condition in (("c/x", '"other"'), ("c/x", f"W/{tag}"), ("c/none", "*"), ("c/x", "")):
        assert web.put(f"/files/{path}", content=b"two", headers={"If-Match": condition}).status_code == 412
    for header, value, status in (("Content-Range", "bytes 0-1/9", 400), ("Content-Encoding", "gzip", 415)):
        assert web.put("/files/c/x", content=b"two", headers={header: value}).status_code == status
    assert web.get("/files/c/x", headers={"If-Match": f'"other", {tag}'}).content == b"one"
    assert web.get("/files/c/x", headers={"If-Match": '"other"'}).status_code == 412
    assert web.get("/files/c/x", headers={"If-None-Match": "*"}).status_code == 304
    assert web.get("/files/c/x", headers={"If-None-Match": f"W/{tag}"}).status_code == 304
    assert web.put("/files/c/x", content=b"two", headers={"If-Match": f'"a", {tag}'}).status_code == 200
    assert web.put("/files/c/x", content=b"three", headers={"If-Match": tag}).status_code == 412
    assert web.put("/files/c/x", content=b"three", headers={"If-Match": "*"}).status_code == 200
    assert web.get("/files/c/x").content == b"three"
    assert web.get("/files", params={"under": "c/"}).json()["files"][0]["path"] == "c/x"


def test_the_header_with_links_stays_within_what_proxies_take():
    from skillpack.hosts.http.file_routes import link_header
    from skillpack.hosts.work_files import WorkFile

    assert link_header([]) == {}
    header = link_header([WorkFile(f"{number}{'ü' * 90}", 1) for number in range(32)])["link"]
    assert 3000 < len(header) <= 4000
    assert header.count('rel="item"') == header.count("</files/") == header.count(", ") + 1


async def test_everything_needs_the_token(served, built):  # noqa: ARG001
    with httpx2.Client(base_url=served[1], timeout=WATCHDOG_S) as stranger:
        for method, path in (("GET", "/files"), ("GET", "/files/ota/layout.gds"), ("PUT", "/files/x")):
            assert stranger.request(method, path).status_code == 401


async def test_curl_downloads_the_layout(served, built, tmp_path):
    program = shutil.which("curl")
    if program is None:
        pytest.skip("skipped: needs curl")
    command = [
        program,
        "-sf",
        "-H",
        f"Authorization: Bearer {TOKEN}",
        "-o",
        "a.gds",
        f"{served[1]}/files/ota/layout.gds",
    ]
    await anyio.run_process(command, cwd=tmp_path)
    digest = hashlib.sha256((tmp_path / "a.gds").read_bytes()).hexdigest()
    assert digest == built.structured_content["data"]["layout_sha256"]


async def test_the_inspector_reads_the_picture(served, built, npm_program):  # noqa: ARG001
    program, environment = npm_program("mcp-inspector")
    command = [program, "--cli", "--method", "resources/read", "--uri", "workspace:///ota/layout.png"]
    command += ["--format", "json", "--header", f"Authorization: Bearer {TOKEN}", "-q", "--server-url", served[0]]
    done = await anyio.run_process(command, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    (content,) = json.loads(done.stdout)["result"]["contents"]
    assert content["mimeType"] == "image/png"
    assert base64.b64decode(content["blob"]).startswith(b"\x89PNG")
