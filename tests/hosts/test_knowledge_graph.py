"""The design knowledge graph over MCP, under the specification's names, arguments and answers (S2.1, S2.5)."""

import os

import pytest

from extras import extra

mcp = extra("mcp", reason="skipped: needs the extra mcp")

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(os.name != "posix", reason="skipped: needs POSIX pipes")]
SEED_TOOLS = {
    "kg_init": {"graphId", "nodes", "relations"},
    "kg_create_node": {"graphId", "id", "type", "properties"},
    "kg_create_relation": {"graphId", "fromId", "toId", "type"},
    "kg_delete_node": {"graphId", "id"},
    "kg_delete_relation": {"graphId", "fromId", "toId", "type"},
    "kg_update_node": {"graphId", "id", "properties"},
    "kg_query": {"graphId", "nodeId", "depth"},
    "kg_list": {"graphId", "type"},
}


@pytest.fixture
def served(tmp_path, monkeypatch, tools_of_the_trade):
    from skillpack.hosts.mcp.pack_server import PackServer
    from skillpack.hosts.mcp.sdk_server import sdk_server
    from skillpack.hosts.pack import Calls, Pack

    monkeypatch.setenv("CHIPFORGE_PROJECT", str(tmp_path))
    with Pack([tools_of_the_trade.ROOT / "skills" / "design-knowledge-graph"]) as pack:
        yield pack, sdk_server(PackServer(pack, Calls(pack.max_workers)))


async def test_a_design_is_remembered_under_the_specified_names_and_in_its_answer_form(served, tmp_path):
    pack, server = served
    async with mcp.Client(server) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        for name, arguments in SEED_TOOLS.items():
            assert arguments <= set(tools[name].input_schema["properties"])

        async def ask(name, **arguments):
            return (await client.call_tool(name, {"graphId": "uart", **arguments})).structured_content

        clock = {"id": "clk", "type": "Signal", "properties": {"description": "时钟信号", "width": "1"}}
        assert (await ask("kg_init", nodes=[clock], relations=[]))["success"] is True
        assert (await ask("kg_create_node", id="clk_example", type="SignalExample", properties={}))["success"] is True
        relation = {"fromId": "clk", "toId": "clk_example", "type": "EXAMPLES"}
        assert (await ask("kg_create_relation", **relation))["success"] is True
        near = await ask("kg_query", nodeId="clk", depth=1)
        assert {node["id"] for node in near["data"]["nodes"]} == {"clk", "clk_example"}
        listed = await ask("kg_list", type="Signal")
        assert [node["id"] for node in listed["data"]["nodes"]] == ["clk"]
        refusals = {
            "NODE_EXISTS": await ask("kg_create_node", id="clk", type="Signal", properties={}),
            "NODE_NOT_FOUND": await ask("kg_query", nodeId="nothing", depth=1),
            "RELATION_EXISTS": await ask("kg_create_relation", **relation),
            "RELATION_NOT_FOUND": await ask("kg_delete_relation", fromId="clk_example", toId="clk", type="EXAMPLES"),
            "HAS_RELATIONS": await ask("kg_delete_node", id="clk"),
            "INVALID_ID": await ask("kg_create_node", id="9clk", type="Signal", properties={}),
            "INVALID_TYPE": await ask("kg_create_node", id="a", type="Nonsense", properties={}),
        }
        for code, answer in refusals.items():
            assert set(answer) == {"success", "error", "code"}
            assert (answer["success"], answer["code"]) == (False, code)
    assert (tmp_path / ".chipforge" / "kg").is_dir()
    assert pack.pool.live == 1  # not one for each tool


async def test_another_server_sees_what_one_has_written(served, tools_of_the_trade):
    from skillpack.hosts.mcp.pack_server import PackServer
    from skillpack.hosts.mcp.sdk_server import sdk_server
    from skillpack.hosts.pack import Calls, Pack

    _, server = served
    with Pack([tools_of_the_trade.ROOT / "skills" / "design-knowledge-graph"]) as other:
        second = sdk_server(PackServer(other, Calls(2)))
        async with mcp.Client(server) as one, mcp.Client(second) as two:
            for number, client in enumerate((one, two, one, two)):
                arguments = {"graphId": "g", "id": f"n{number}", "type": "Signal", "properties": {}}
                assert not (await client.call_tool("kg_create_node", arguments)).is_error
            for client in (one, two):
                listed = (await client.call_tool("kg_list", {"graphId": "g"})).structured_content
                assert len(listed["data"]["nodes"]) == 4
