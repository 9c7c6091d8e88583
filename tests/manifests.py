"""Write the manifests by which the hosts of agents find the skills and start the MCP server: ``make manifests``.

All of them come from ``[project]`` in pyproject.toml and from ``server_at`` below. Each lies where its host looks for
it; ``references/hosts.md`` describes what a host does with it.

Claude Code copies the folder that its marketplace names, whatever lies in it. ``PACK`` holds links to the parts of the
checkout that a plugin needs, which Claude Code copies as files and folders, and so a plugin contains neither an
environment nor a build. Codex copies no links; its marketplace names the repository, of which Codex makes a clone.
"""

import json
import sys
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent
SERVER = "analog-layout"
PACK = ".claude-plugin/pack"
PARTS = ("LICENSE", "README.md", "loader", "pyproject.toml", "scripts", "skills")
AGENT_PLUGINS = "https://agent-plugins.org/schemas/1.0.0"


def server_at(root):
    """Return the command that starts the server; ``root`` is the host's variable for the folder of the plugin."""
    package = f"{root}[http,mcp,models]"
    return {"command": "uvx", "args": ["--from", package, "skillpack", "mcp", "--skills-dir", f"{root}/skills"]}


def manifests(project):
    """Return the manifests as a map from path to content; ``project`` is the table of pyproject.toml."""
    (author,) = project["authors"]
    named = {"name": project["name"], "version": project["version"], "description": project["description"]}
    about = {
        **named,
        "author": author,
        "homepage": project["urls"]["Homepage"],
        "repository": project["urls"]["Source"],
        "license": project["license"],
        "keywords": project["keywords"],
    }
    claude = {SERVER: server_at("${CLAUDE_PLUGIN_ROOT}")}
    claude_plugin = {**about, "mcpServers": claude}
    # Relative paths in calls would start in the plugin's own folder, which an update replaces.
    portable = {"type": "stdio", **server_at("${PLUGIN_ROOT}"), "cwd": "${PLUGIN_DATA}"}
    listed = {"name": project["name"], "description": project["description"]}
    return {
        ".claude-plugin/marketplace.json": {
            "name": SERVER,
            "description": project["description"],
            "owner": author,
            # `claude plugin details` reads the servers here, and the session those of plugin.json.
            "plugins": [{**listed, "source": f"./{PACK}", "mcpServers": claude}],
        },
        ".claude-plugin/plugin.json": claude_plugin,
        f"{PACK}/.claude-plugin/plugin.json": claude_plugin,
        ".agents/plugins/marketplace.json": {
            "name": SERVER,
            "plugins": [{**listed, "source": {"source": "url", "url": "./"}}],
        },
        "plugin.json": {"$schema": f"{AGENT_PLUGINS}/plugin.schema.json", **about},
        "mcp.json": {"$schema": f"{AGENT_PLUGINS}/mcp.schema.json", "mcpServers": {SERVER: portable}},
        ".cursor-plugin/plugin.json": {
            **about,
            "skills": "./skills/",
            "mcpServers": {SERVER: server_at("${CURSOR_PLUGIN_ROOT}")},
        },
        ".vscode/mcp.json": {"servers": {SERVER: {"type": "stdio", **server_at("${workspaceFolder}")}}},
        # `gemini mcp list` waits for 5 s unless there is a limit here: that of a session. [ms]
        "gemini-extension.json": {
            **named,
            "mcpServers": {SERVER: {**server_at("${extensionPath}"), "timeout": 600_000}},
        },
    }


def links():
    """Return the links of ``PACK`` as a map from path to target."""
    return {f"{PACK}/{part}": f"../../{part}" for part in PARTS}


def write(folder, project):
    """Write the manifests and links below ``folder``."""
    for path, content in manifests(project).items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    for path, target in links().items():
        (folder / path).unlink(missing_ok=True)
        (folder / path).symlink_to(target, target_is_directory=(ROOT / Path(target).name).is_dir())


def read_project():
    """Return the table ``[project]`` of pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def write_netlist_schema(folder):
    """Write the JSON Schema of netlists, completed with the kinds of devices, where a skill shows it."""
    from layoutkit.circuit.readers.json_cells import SCHEMA

    shown = folder / "skills/netlist-parse/assets/netlist.schema.json"
    shown.write_text(json.dumps(SCHEMA.content, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write(ROOT, read_project())
    write_netlist_schema(ROOT)
