"""The manifests by which plugin hosts find the skills and start the server, and Claude Code's installed plugin."""

import json
import re
import shlex
import shutil
import subprocess

import pytest

from installed_wheel import uv_environment
from patience import WATCHDOG_S

PLUGIN = "analog-layout-skills@analog-layout"
CONTENT = {".claude-plugin", "LICENSE", "README.md", "loader", "pyproject.toml", "scripts", "skills"}
STRAY = (".venv/bin/python", "build/demo/layout.gds", "dist/x.whl", ".git/config", ".mypy_cache/x", "workspace/x.json")

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


def test_skills_lie_where_plugin_hosts_look(tools_of_the_trade):
    """Immediate children of ``skills/``."""
    found = list((tools_of_the_trade.ROOT / "skills").rglob("SKILL.md"))
    assert found
    assert all(path.parent.parent == tools_of_the_trade.ROOT / "skills" for path in found)


class Host:
    """Claude Code with an empty home, and the plugin that it installed from the folder ``checkout``."""

    def __init__(self, program, environment, folder, checkout):
        self.program, self.home, self.checkout = program, folder / "empty home", checkout
        self.home.mkdir()
        quiet = {"DISABLE_AUTOUPDATER": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
        self.environment = {**environment, **quiet, "HOME": str(self.home), "NO_COLOR": "1"}
        self.claude("marketplace", "add", checkout)
        self.claude("install", PLUGIN)
        self.installed = set(self.root().iterdir())

    def claude(self, *arguments):
        """Return what ``claude plugin ARGUMENTS`` prints."""
        done = subprocess.run(
            [self.program, "plugin", *map(str, arguments)],
            capture_output=True,
            text=True,
            env=self.environment,
            cwd=self.home,
            check=False,
            timeout=WATCHDOG_S,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def root(self):
        """Return the folder of the plugin that Claude Code's record names."""
        record = json.loads((self.home / ".claude/plugins/installed_plugins.json").read_text(encoding="utf-8"))
        return self.home / record["plugins"][PLUGIN][0]["installPath"]


@pytest.fixture(scope="module")
def host(npm_program, tools_of_the_trade, tmp_path_factory):
    """Install the plugin from a checkout in which somebody works: an environment, a build and caches lie in it."""
    program, environment = npm_program("claude")
    folder = tmp_path_factory.mktemp("claude")
    checkout = folder / "the checkout"
    manifests = pytest.importorskip("manifests", reason="skipped: needs Python 3.11 or tomli")
    for part in manifests.PARTS:
        source = tools_of_the_trade.ROOT / part
        if source.is_dir():
            shutil.copytree(source, checkout / part, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            checkout.mkdir(exist_ok=True)
            shutil.copy(source, checkout)
    manifests.write(checkout, manifests.read_project())
    for stray in STRAY:
        (checkout / stray).parent.mkdir(parents=True, exist_ok=True)
        (checkout / stray).write_text("stray")
    return Host(program, environment, folder, checkout)


def test_claude_code_accepts_the_marketplace_and_the_plugin(host):
    printed = host.claude("validate", host.checkout)
    assert "Validation passed" in printed
    assert [line for line in printed.splitlines() if line.strip().startswith("\u276f")] == []


def test_claude_code_lists_the_server_and_every_skill(host, tools_of_the_trade):
    listed = dict(re.findall(r"^ +(\w[\w ]+) \(\d+\)  (.*)$", host.claude("details", PLUGIN), re.MULTILINE))
    assert listed["MCP servers"].split()[0] == "analog-layout"
    skills = {path.parent.name for path in tools_of_the_trade.ROOT.glob("skills/*/SKILL.md")}
    assert set(listed["Skills"].split(", ")) == skills


def test_an_installed_plugin_holds_no_environment_build_or_cache_also_after_an_update(host):
    first = host.root()
    assert {path.name for path in host.installed} == CONTENT
    assert [path for path in first.rglob("*") if path.is_symlink()] == []
    for manifest in host.checkout.glob(".claude-plugin/**/plugin.json"):
        manifest.write_text(re.sub(r'"version": ".*"', '"version": "99.0.0"', manifest.read_text()))
    host.claude("update", PLUGIN)
    assert host.root() == first.with_name("99.0.0")
    assert {path.name for path in host.root().iterdir()} == CONTENT


@pytest.mark.parametrize("wheel", ["without a wheel", "with a wheel in reach"])
def test_the_command_printed_in_a_body_runs_in_the_installed_plugin(host, uv, built_wheel, tmp_path, wheel):
    """Both ways that the body names, with the user's project as working folder."""
    skill = host.root() / "skills/mos-pcell"
    body = (skill / "SKILL.md").read_text(encoding="utf-8")
    script, *arguments = shlex.split(re.search(r"^uv run (scripts/.*)$", body, re.MULTILINE)[1])
    if wheel == "without a wheel":
        done = uv("run", "--project", skill, "python", skill / script, *arguments, cwd=tmp_path)
    else:
        done = uv("run", skill / script, *arguments, cwd=tmp_path, UV_FIND_LINKS=str(built_wheel))
    assert done.returncode == 0, done.stderr + done.stdout
    assert json.loads(done.stdout)["ok"]
    assert (tmp_path / "build/mos/layout.gds").stat().st_size > 0


@pytest.mark.anyio
async def test_the_server_of_the_installed_plugin_turns_a_netlist_into_a_layout(host, uv, tmp_path, tools_of_the_trade):
    """Started by the manifest's command in the user's project, as Claude Code does; relative paths start there."""
    mcp = pytest.importorskip("mcp", reason="skipped: needs the extra mcp")
    root = str(host.root())
    manifest = json.loads((host.root() / ".claude-plugin/plugin.json").read_text(encoding="utf-8"))
    server = manifest["mcpServers"]["analog-layout"]
    arguments = [argument.replace("${CLAUDE_PLUGIN_ROOT}", root) for argument in server["args"]]
    prepared = uv("tool", "run", *arguments[:3], "--version", cwd=tmp_path)
    assert prepared.returncode == 0, prepared.stderr
    shutil.copy(tools_of_the_trade.ROOT / "skills/netlist-to-gds/assets/ota_5t.spice", tmp_path)
    environment = uv_environment(*uv.args)
    program = shutil.which(server["command"], path=environment["PATH"])
    started = mcp.StdioServerParameters(command=program, args=arguments, env=environment, cwd=tmp_path)
    async with mcp.Client(started) as client:
        body = await client.call_tool("skill_request", {"name": "netlist-to-gds"})
        call = {"netlist_path": "ota_5t.spice", "technology": "sky130A"}
        answer = (await client.call_tool("flow_build_layout", call)).structured_content
    assert f"{root}/skills/netlist-to-gds" in body.content[0].text
    assert answer["ok"], answer
    assert answer["data"]["drc"]["passed"]
    assert answer["data"]["lvs"]["matched"]
    assert (tmp_path / "workspace/layout.gds").stat().st_size > 0
