"""The manifests by which plugin hosts find the skills and start the server."""

import json
import re
import subprocess
import sys

import pytest

from patience import WATCHDOG_S

MANIFEST_FIELDS = {"$schema", "name", "version", "description", "author", "homepage", "repository", "license"}
MANIFEST_FIELDS |= {"keywords", "extensions"}


@pytest.fixture
def read(tools_of_the_trade):
    return lambda name: json.loads((tools_of_the_trade.ROOT / name).read_text(encoding="utf-8"))


def test_the_portable_manifests_have_the_fields_of_agent_plugins_1_0_0_and_no_other(read):
    manifest, servers = read("plugin.json"), read("mcp.json")
    assert manifest["$schema"] == "https://agent-plugins.org/schemas/1.0.0/plugin.schema.json"
    assert servers["$schema"] == "https://agent-plugins.org/schemas/1.0.0/mcp.schema.json"
    assert set(manifest) <= MANIFEST_FIELDS
    assert set(servers) == {"$schema", "mcpServers"}
    assert re.fullmatch(r"[a-z0-9](?:[a-z0-9.-]{0,62}[a-z0-9])?", manifest["name"])
    for server in servers["mcpServers"].values():
        assert set(server) <= {"type", "command", "args", "env", "cwd"}
        assert server["type"] == "stdio"
        assert re.match(r"\./|\$\{PLUGIN_(ROOT|DATA)\}(/|$)", server["cwd"])


def test_the_command_in_the_manifests_starts_a_server(read, tools_of_the_trade):
    """What ``uvx --from PACK`` runs, run with the package of this checkout."""
    arguments = read("mcp.json")["mcpServers"]["analog-layout"]["args"]
    root = str(tools_of_the_trade.ROOT)
    assert arguments[:3] == ["--from", "${PLUGIN_ROOT}[mcp,models]", "skillpack"]
    pytest.importorskip("mcp", reason="skipped: needs the extra mcp")
    command = [argument.replace("${PLUGIN_ROOT}", root) for argument in arguments[3:]]
    hello = '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},'
    hello += '"clientInfo":{"name":"test","version":"1"}}}\n'
    process = subprocess.Popen(
        [sys.executable, "-m", "skillpack", *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    process.stdin.write(hello)
    process.stdin.flush()
    answer = json.loads(process.stdout.readline())
    process.communicate(timeout=WATCHDOG_S)
    assert answer["result"]["serverInfo"]["name"] == "skillpack"
    assert process.returncode == 0


def test_skills_lie_where_plugin_hosts_look(tools_of_the_trade):
    """Immediate children of ``skills/``."""
    found = list((tools_of_the_trade.ROOT / "skills").rglob("SKILL.md"))
    assert found
    assert all(path.parent.parent == tools_of_the_trade.ROOT / "skills" for path in found)


@pytest.mark.parametrize("manifest", [".claude-plugin/plugin.json", ".claude-plugin/marketplace.json"])
def test_claude_code_accepts_the_manifests(npm_program, tools_of_the_trade, tmp_path, manifest):
    program, environment = npm_program("claude")
    done = subprocess.run(
        [program, "plugin", "validate", str(tools_of_the_trade.ROOT / manifest)],
        capture_output=True,
        text=True,
        env={**environment, "HOME": str(tmp_path), "DISABLE_AUTOUPDATER": "1"},
        check=False,
        timeout=WATCHDOG_S,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    warnings = [
        line for line in done.stdout.splitlines() if line.strip().startswith("\u276f") and "CLAUDE.md" not in line
    ]
    assert warnings == []  # CLAUDE.md is for who works on the pack, not for who uses it
