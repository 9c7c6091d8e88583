"""The tools of a pack as an MCP client sees and calls them (S0.14), in both eras of the protocol."""

import base64
import json
import os
import shutil

import anyio
import pytest
from jsonschema import Draft202012Validator

from extras import extra
from patience import WATCHDOG_S

mcp = extra("mcp", reason="skipped: needs the extra mcp")

pytestmark = pytest.mark.anyio
ERAS = ("legacy", "auto")


async def listed(client):
    return {tool.name: tool for tool in (await client.list_tools()).tools}


def checked(tool, result):
    """Return the structured answer, which must be what the served schema says and what the text says."""
    Draft202012Validator.check_schema(tool.output_schema)
    Draft202012Validator(tool.output_schema).validate(result.structured_content)
    assert json.loads(result.content[0].text) == result.structured_content
    return result.structured_content


@pytest.mark.parametrize("mode", ERAS)
async def test_every_tool_is_served_with_both_schemas_a_portable_name_and_its_dotted_id(mcp_server, mode):
    async with mcp.Client(mcp_server, mode=mode) as client:
        tools = await listed(client)
    assert set(tools) >= {"skill_request", "skill_read", "skill_search", "bench_echo_text", "memory_count"}
    for tool in tools.values():
        Draft202012Validator.check_schema(tool.input_schema)
        Draft202012Validator.check_schema(tool.output_schema)
        assert tool.input_schema["type"] == tool.output_schema["type"] == "object"
        assert tool.input_schema["additionalProperties"] is False
        assert tool.name.replace("_", "").isalnum()
    echo = tools["bench_echo_text"]
    assert echo.title == "Echo (bench.echo_text)"
    assert "skill_request(name='bench')" in echo.description


@pytest.mark.parametrize("mode", ERAS)
async def test_a_parameter_that_the_tool_does_not_have_is_refused_by_name(mcp_server, mode):
    async with mcp.Client(mcp_server, mode=mode) as client:
        result = await client.call_tool("bench_echo_text", {"text": "a", "txet": "b"})
    assert result.is_error
    assert result.structured_content["error"]["code"] == "INVALID_PARAM"
    assert "txet" in result.structured_content["error"]["message"]


async def test_a_tool_of_a_folder_without_a_skill_file_is_served_and_refers_to_no_instructions(pack_dir, tmp_path):
    """The folders of S1 and S4."""
    from skillpack.hosts.mcp.pack_server import PackServer
    from skillpack.hosts.mcp.sdk_server import sdk_server
    from skillpack.hosts.pack import Calls, Pack

    shutil.copytree(pack_dir, tmp_path / "pack")
    (tmp_path / "pack" / "bench" / "SKILL.md").unlink()
    with Pack([tmp_path / "pack"]) as pack:
        async with mcp.Client(sdk_server(PackServer(pack, Calls(pack.max_workers)))) as client:
            tools = await listed(client)
            answer = await client.call_tool("bench_echo_text", {"text": "a"})
    assert "Instructions" not in tools["bench_echo_text"].description
    assert answer.structured_content["ok"]


async def test_a_call_may_name_an_older_version_which_is_carried_over_and_reported(mcp_server):
    async with mcp.Client(mcp_server) as client:
        older = await client.call_tool("bench_echo_text@1.0.0", {"text": "a"})
        newer = await client.call_tool("bench.echo_text@1.3.0", {"text": "a"})
    assert older.content[1].text == "the parameters of bench.echo_text 1.0.0 were carried over to 1.2.0"
    assert older.structured_content["ok"]
    assert newer.is_error
    assert "no version 1.3.0" in newer.structured_content["error"]["message"]


async def test_hints_are_what_is_declared_and_the_worst_where_nothing_is(mcp_server):
    async with mcp.Client(mcp_server) as client:
        tools = await listed(client)

    def hints(name):
        said = tools[name].annotations
        return tuple(
            assumed if hint is None else hint  # what MCP assumes of a hint that is not there
            for hint, assumed in (
                (said.read_only_hint, False),
                (said.destructive_hint, not said.read_only_hint),
                (said.idempotent_hint, bool(said.read_only_hint)),
                (said.open_world_hint, True),
            )
        )

    assert hints("bench_echo_text") == (True, False, True, False)
    assert hints("bench_draw") == (False, False, False, True)
    assert hints("bench_crash") == (False, True, False, True)
    assert hints("skill_request") == (True, False, True, False)


@pytest.mark.parametrize("mode", ERAS)
@pytest.mark.parametrize("name", ["bench_echo_text", "bench.echo_text"])
async def test_a_tool_answers_its_envelope_under_either_name(mcp_server, mode, name):
    async with mcp.Client(mcp_server, mode=mode) as client:
        tool = (await listed(client))["bench_echo_text"]
        result = await client.call_tool(name, {"text": "ä", "times": 2})
    answer = checked(tool, result)
    assert not result.is_error
    assert (answer["ok"], answer["data"]["text"], answer["data"]["times"]) == (True, "ä", 2)


@pytest.mark.parametrize("mode", ERAS)
@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        ({}, "text"),
        ({"text": "a", "txet": 1}, "txet"),  # mcp's own server would drop it
        ({"text": "a", "times": True}, "times"),  # ... and take this for 1.0
        ({"text": "a", "times": "2"}, "times"),
        ({"text": 5}, "text"),
        ({"text": "a", "times": 0}, "times"),
        ({"text": "a\0b"}, "NUL"),
    ],
)
async def test_wrong_arguments_are_an_error_the_model_can_read_never_dropped_or_coerced(
    mcp_server, mode, arguments, fault
):
    async with mcp.Client(mcp_server, mode=mode) as client:
        tool = (await listed(client))["bench_echo_text"]
        result = await client.call_tool("bench_echo_text", arguments)
    answer = checked(tool, result)
    assert result.is_error
    assert answer["error"]["code"] == "INVALID_PARAM"
    assert fault in answer["error"]["message"]


@pytest.mark.parametrize(
    ("name", "arguments", "code"),
    [
        ("bench_crash", {}, "INTERNAL_ERROR"),
        ("bench_lie", {}, "INTERNAL_ERROR"),
        ("bench_fail", {"code": "LAYOUT_CONFLICT"}, "LAYOUT_CONFLICT"),
        ("bench_fail", {"code": "NO_SUCH_CODE"}, "INTERNAL_ERROR"),
    ],
)
async def test_what_goes_wrong_in_a_tool_conforms_to_the_served_schema_too(mcp_server, name, arguments, code):
    async with mcp.Client(mcp_server) as client:
        tool = (await listed(client))[name]
        result = await client.call_tool(name, arguments)
    assert result.is_error
    assert checked(tool, result)["error"]["code"] == code


async def test_a_tool_may_declare_the_answer_form_of_the_knowledge_graph(mcp_server):
    """S2.5: ``{"success", "data"}`` or ``{"success", "error", "code"}``, with a code of its own."""
    async with mcp.Client(mcp_server) as client:
        tool = (await listed(client))["memory_count"]
        good = await client.call_tool("memory_count", {"by": 2})
        bad = await client.call_tool("memory_count", {"by": 0})
        wrong = await client.call_tool("memory_count", {})
    assert checked(tool, good) == {"success": True, "data": {"total": 2}}
    assert checked(tool, bad) == {"success": False, "error": "nothing to count", "code": "NOTHING_TO_COUNT"}
    assert checked(tool, wrong)["code"] == "INVALID_PARAM"
    assert (good.is_error, bad.is_error, wrong.is_error) == (False, True, True)


@pytest.mark.skipif(os.name != "posix", reason="skipped: needs POSIX pipes")
async def test_what_a_tool_holds_stays_warm_between_calls(mcp_server):
    async with mcp.Client(mcp_server) as client:
        totals = [
            (await client.call_tool("memory_count", {"by": step})).structured_content["data"]["total"]
            for step in (1, 2, 3)
        ]
    assert totals == [1, 3, 6]


async def test_an_unknown_tool_is_reported_with_the_name_that_was_meant(mcp_server):
    async with mcp.Client(mcp_server) as client:
        with pytest.raises(mcp.MCPError, match="bench_echo_text") as raised:
            await client.call_tool("bench_echo_txt", {})
    assert raised.value.code == -32602


@pytest.mark.parametrize("mode", ERAS)
async def test_progress_tells_what_the_tool_says(mcp_server, mode, tmp_path):
    told = []

    async def on_progress(progress, _, message):
        told.append((progress, message))

    async with mcp.Client(mcp_server, mode=mode) as client:
        arguments = {"pids": str(tmp_path / "pids"), "steps": 3}
        result = await client.call_tool("bench_wait", arguments, progress_callback=on_progress)
    assert not result.is_error
    assert "\n".join(message for _, message in told).split("\n") == ["step 0", "step 1", "step 2"]
    assert [progress for progress, _ in told] == sorted({progress for progress, _ in told})
    assert len(told) >= 2  # as it happens, not at the end


@pytest.mark.parametrize("mode", ERAS)
@pytest.mark.skipif(not os.path.isdir("/proc"), reason="skipped: needs /proc")  # noqa: PTH112
async def test_cancelling_a_call_kills_the_tool_and_what_it_started(mcp_server, mode, tmp_path, tools_of_the_trade):
    pids = tmp_path / "pids"
    async with mcp.Client(mcp_server, mode=mode) as client:
        with anyio.move_on_after(WATCHDOG_S) as scope:
            async with anyio.create_task_group() as group:
                group.start_soon(client.call_tool, "bench_wait", {"pids": str(pids), "seconds": 600})
                await tools_of_the_trade.written(pids)
                group.cancel_scope.cancel()
        assert not scope.cancelled_caught
        alive = [int(pid) for pid in pids.read_text().split()]
        killed = await anyio.to_thread.run_sync(
            tools_of_the_trade.eventually, lambda: not any(map(tools_of_the_trade.is_alive, alive))
        )
        assert killed
        assert not (await client.call_tool("bench_echo_text", {"text": "still there"})).is_error


async def test_a_long_call_does_not_hold_up_others(mcp_server, tmp_path, tools_of_the_trade):
    done, pids, enough = [], tmp_path / "pids", tmp_path / "enough"

    async with mcp.Client(mcp_server) as client, anyio.create_task_group() as group:

        async def wait():
            await client.call_tool("bench_wait", {"pids": str(pids), "until": str(enough)})
            done.append("long")

        group.start_soon(wait)
        await tools_of_the_trade.written(pids)
        for number in range(3):
            await client.call_tool("bench_echo_text", {"text": str(number)})
            await client.list_tools()
            done.append("short")
        enough.touch()
    assert done == ["short", "short", "short", "long"]


async def test_more_calls_than_places_wait_and_far_more_are_refused(pack, tmp_path):
    from skillpack.hosts.pack import Calls, Order

    calls = Calls(1, max_waiting=2)
    codes = []

    async def make(number):
        order = Order("bench.wait", {"pids": str(tmp_path / str(number)), "seconds": 0.2})
        call = await calls.make(pack.view().runner, order)
        codes.append(call.result.error.code if call.result.error else "done")

    async with anyio.create_task_group() as group:
        for number in range(5):
            group.start_soon(make, number)
    assert sorted(codes) == ["SERVICE_UNAVAILABLE", "SERVICE_UNAVAILABLE", "done", "done", "done"]
    assert (calls.running, calls.waiting) == (0, 0)


async def test_a_call_that_waits_too_long_for_a_place_times_out(pack, tmp_path, tools_of_the_trade):
    from skillpack.hosts.pack import Calls, Order

    calls = Calls(1)
    outcomes = []

    pids, enough = tmp_path / "pids", tmp_path / "enough"

    async def make(limit):
        order = Order("bench.wait", {"pids": str(pids), "until": str(enough)}, timeout=limit)
        outcomes.append((await calls.make(pack.view().runner, order)).result)

    async with anyio.create_task_group() as group:
        group.start_soon(make, 300)
        await tools_of_the_trade.written(pids)
        await make(0.3)
        enough.touch()
    assert [result.error and result.error.code for result in outcomes] == ["TIMEOUT", None]


async def test_a_picture_that_a_call_made_is_shown(mcp_server, tmp_path, tools_of_the_trade):
    async with mcp.Client(mcp_server) as client:
        result = await client.call_tool("bench_draw", {"output_path": str(tmp_path / "a.png")})
    assert [block.type for block in result.content] == ["text", "resource_link", "image"]
    assert base64.b64decode(result.content[2].data) == tools_of_the_trade.PNG
    assert result.content[2].mime_type == "image/png"
    assert result.content[1].size == len(tools_of_the_trade.PNG)


async def test_what_a_call_made_is_served_without_a_folder_of_the_server_and_nothing_beside_it(
    mcp_server, tmp_path, tools_of_the_trade
):
    (tmp_path / "beside.png").write_bytes(tools_of_the_trade.PNG)
    async with mcp.Client(mcp_server) as client:
        result = await client.call_tool("bench_draw", {"output_path": str(tmp_path / "größe 1.png")})
        link = result.content[1].uri
        (content,) = (await client.read_resource(link)).contents
        assert base64.b64decode(content.blob) == tools_of_the_trade.PNG
        assert link in [entry.uri for entry in (await client.list_resources()).resources]
        with pytest.raises(mcp.MCPError, match="has no file"):
            await client.read_resource(link.replace("gr%C3%B6%C3%9Fe%201", "beside"))


async def test_new_changed_and_removed_tools_are_seen_without_a_restart(tmp_path, tools_of_the_trade, monkeypatch):
    from skillpack.hosts import pack as pack_module
    from skillpack.hosts.mcp.pack_server import PackServer
    from skillpack.hosts.mcp.sdk_server import sdk_server
    from skillpack.hosts.pack import Calls

    monkeypatch.setattr(pack_module, "FRESH_SECONDS", 0.0)
    tools_of_the_trade.write_pack(tmp_path)
    with pack_module.Pack([tmp_path]) as pack:
        async with mcp.Client(sdk_server(PackServer(pack, Calls(2))), cache=None) as client:
            assert "memory_count" in await listed(client)
            declared = json.loads((tmp_path / "memory" / "skill.yaml").read_text())
            declared["tools"][0]["id"] = "memory.recount"
            (tmp_path / "memory" / "skill.yaml").write_text(json.dumps(declared))
            names = await listed(client)
            assert "memory_recount" in names
            assert "memory_count" not in names
            shutil.rmtree(tmp_path / "memory")
            assert "memory_recount" not in await listed(client)


async def test_dotted_names_are_served_to_hosts_that_take_them(pack):
    from skillpack.hosts.mcp.pack_server import PackServer
    from skillpack.hosts.mcp.sdk_server import sdk_server
    from skillpack.hosts.pack import Calls

    async with mcp.Client(sdk_server(PackServer(pack, Calls(2), "dotted"))) as client:
        assert "bench.echo_text" in await listed(client)
        assert not (await client.call_tool("bench_echo_text", {"text": "a"})).is_error


async def test_toolsets_narrow_what_is_listed_and_called_but_not_the_skills(pack_dir):
    from skillpack.hosts.mcp.pack_server import PackServer
    from skillpack.hosts.mcp.sdk_server import sdk_server
    from skillpack.hosts.pack import Calls, Pack

    with Pack([pack_dir], toolsets=["memory"]) as pack:
        async with mcp.Client(sdk_server(PackServer(pack, Calls(2)))) as client:
            tools = await listed(client)
            assert set(tools) == {"skill_request", "skill_read", "skill_search", "memory_count"}
            assert "Only tools of memory are served here" in tools["skill_request"].description
            assert not (await client.call_tool("memory.count", {"by": 1})).is_error
            assert not (await client.call_tool("skill_request", {"name": "bench"})).is_error
            for name in ("bench_crash", "bench.crash", "bench_crash@1.0.0"):
                with pytest.raises(mcp.MCPError, match=r"in the toolset bench; .*--toolsets memory") as raised:
                    await client.call_tool(name, {})
                assert raised.value.code == -32602
            with pytest.raises(mcp.MCPError, match="memory_count"):
                await client.call_tool("memory_cout", {})


async def test_an_unexpected_error_tells_the_client_nothing_of_this_machine(mcp_server, pack, monkeypatch):
    def broken():
        raise RuntimeError("/home/somebody/secret")

    monkeypatch.setattr(pack, "view", broken)
    async with mcp.Client(mcp_server) as client:
        with pytest.raises(mcp.MCPError) as raised:
            await client.list_tools()
    assert raised.value.code == -32603
    assert "secret" not in str(raised.value)
