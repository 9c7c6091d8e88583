"""A pack of quick skills, servers over it in this process and in their own, and programs from npm."""

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from patience import WATCHDOG_S, eventually, is_alive

ROOT = Path(__file__).resolve().parents[2]
NPM_BIN = ROOT / "build" / "npm" / "node_modules" / ".bin"
PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c49444154789c63606060000000040001"
    "f61738550000000049454e44ae426082"
)
SCRIPT = """\
from skillscript import main

def execute(params, context):
{body}

if __name__ == "__main__":
    raise SystemExit(main(__file__, "{tool}", execute))
"""


def schema(required=(), **properties):
    """Return the schema of an object that takes these properties and no other."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "additionalProperties": False,
        "required": list(required),
        "properties": properties,
    }


TEXT = {"type": "string", "description": "A text."}
# id -> (body of execute, parameters, data, further lines of the declaration)
TOOLS = {
    "bench.echo_text": (
        "return {'text': params['text'], 'times': params['times'], 'context': context}",
        schema(["text"], text=TEXT, times={"type": "integer", "minimum": 1, "default": 1, "description": "How often."}),
        schema(["text"], text=TEXT, times={"$ref": "#/$defs/count"}, context={"type": "object"})
        | {"$defs": {"count": {"type": "integer", "minimum": 1}}},
        {"annotations": {"read_only": True, "open_world": False}, "display_name": {"en": "Echo", "zh": "回声"}},
    ),
    "bench.wait": (
        """
        import os, pathlib, subprocess, sys, time
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
        pathlib.Path(params["pids"]).write_text(f"{os.getpid()} {child.pid}")
        for step in range(params["steps"]):
            print(f"step {step}", file=sys.stderr, flush=True)
            time.sleep(0.3)
        while params["until"] and not pathlib.Path(params["until"]).exists():
            time.sleep(0.02)
        time.sleep(params["seconds"])
        child.kill()
        return {}
        """,
        schema(
            ["pids"],
            pids={"type": "string", "description": "File for the process ids."},
            seconds={"type": "number", "default": 0, "description": "How long. [s]"},
            steps={"type": "integer", "default": 0, "description": "Lines to say first."},
            until={"type": "string", "default": "", "description": "File to wait for, or none."},
        ),
        schema(),
        {},
    ),
    "bench.crash": ("import os; os._exit(9)", schema(), schema(), {}),
    "bench.fail": (
        """
        from skillscript import SkillError
        raise SkillError(params["code"], "cannot do it to /srv/secret/place/thing.gds", {"path": "/srv/secret/x"})
        """,
        schema(["code"], code=TEXT),
        schema(),
        {},
    ),
    "bench.lie": ("return {'answer': 'not a number'}", schema(), schema(answer={"type": "number"}), {}),
    "bench.draw": (
        f"""
        import pathlib
        path = pathlib.Path(params["output_path"])
        path.write_bytes(bytes.fromhex({PNG.hex()!r}))
        return {{"image_path": str(path.resolve())}}
        """,
        schema(["output_path"], output_path=TEXT),
        schema(["image_path"], image_path=TEXT),
        {"annotations": {"destructive": False}},
    ),
    "memory.count": (
        """
        from skillscript import SkillError
        if params["by"] == 0:
            raise SkillError("NOTHING_TO_COUNT", "nothing to count", own=("NOTHING_TO_COUNT",))
        SEEN.append(params["by"])
        return {"total": sum(SEEN)}
        """,
        schema(["by"], by={"type": "integer", "description": "How many."}),
        schema(["total"], total={"type": "integer"}) | {"x-error-codes": {"NOTHING_TO_COUNT": "A count of 0."}},
        {"answer": "success"},
    ),
}


def write_pack(root, tools=tuple(TOOLS)):
    """Write the skills ``bench`` and ``memory`` below ``root``, with some of their tools."""
    for skill in ("bench", "memory"):
        home = root / skill
        for folder in ("scripts", "schemas", "references"):
            (home / folder).mkdir(parents=True)
        fields = (
            f"name: {skill}\ndescription: Quick things to {skill} with.\nlicense: Apache-2.0\nmetadata:\n  tried: 2\n"
        )
        (home / "SKILL.md").write_text(f"---\n{fields}---\n\n# {skill}\n", encoding="utf-8")
        (home / "references" / "más.md").write_text("Größe\r\n", encoding="utf-8", newline="")
        (home / "references" / "dot.png").write_bytes(PNG)
        (home / "references" / ".hidden").write_text("no")
        own = [tool for tool in tools if tool.startswith(f"{skill}.")]
        (home / "skill.yaml").write_text(
            json.dumps({"skill": skill, "tools": [write_tool(home, tool) for tool in own]})
        )
    return root


def write_tool(home, tool):
    """Write one tool's files and return its declaration."""
    body, parameters, data, more = TOOLS[tool]
    script = f"scripts/{tool.partition('.')[2]}.py"
    source = SCRIPT.format(body=textwrap.indent(textwrap.dedent(body).strip("\n"), "    "), tool=tool)
    (home / script).write_text(source.replace("def execute", "SEEN = []\n\ndef execute"))
    (home / f"schemas/{tool}.input.json").write_text(json.dumps(parameters))
    (home / f"schemas/{tool}.output.json").write_text(json.dumps(data))
    return {
        "id": tool,
        "script": script,
        "version": "1.2.0",
        "description": f"Does {tool}.",
        "intent_tags": ["testing", tool.partition(".")[2]],
        "input_schema": f"schemas/{tool}.input.json",
        "output_schema": f"schemas/{tool}.output.json",
        **more,
    }


@pytest.fixture(scope="session")
def anyio_backend():
    return "asyncio"


@pytest.fixture(scope="session")
def pack_dir(tmp_path_factory):
    return write_pack(tmp_path_factory.mktemp("pack"))


@pytest.fixture
def pack(pack_dir):
    pytest.importorskip("anyio", reason="skipped: needs the extra mcp")
    from skillpack.hosts.pack import Pack

    with Pack([pack_dir], timeout=WATCHDOG_S) as opened:
        yield opened


@pytest.fixture
def mcp_server(pack):
    pytest.importorskip("mcp", reason="skipped: needs the extra mcp")
    from skillpack.hosts.mcp.pack_server import PackServer
    from skillpack.hosts.mcp.sdk_server import sdk_server
    from skillpack.hosts.pack import Calls

    return sdk_server(PackServer(pack, Calls(pack.max_workers)))


@contextlib.contextmanager
def running(*arguments, environment=None, cwd=None):
    """Run ``skillpack ARGUMENTS``, without a token unless one is given; give the process and the address it serves."""
    surroundings = {**os.environ, "SKILLPACK_TOKEN": "", **(environment or {})}
    given = [*map(str, arguments)]
    if not surroundings["SKILLPACK_TOKEN"] and not {"--token-file", "--write-token"} & {*given}:
        given.append("--no-token")
    process = subprocess.Popen(
        [sys.executable, "-m", "skillpack", *given, "--port", "0"],
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=surroundings,
        cwd=cwd,
    )
    try:
        for line in process.stderr:
            found = re.search(r"serving (http\S+)", line)
            if found:
                yield process, found[1]
                break
        else:
            pytest.fail("the server did not start")
    finally:
        process.terminate()
        process.wait(WATCHDOG_S)
        process.stderr.close()


async def written(pids):
    """Wait until ``bench.wait`` has told its process ids."""
    import anyio

    with anyio.fail_after(WATCHDOG_S):
        while not (pids.exists() and len(pids.read_text().split()) == 2):  # noqa: ASYNC110 - another process writes
            await anyio.sleep(0.02)


@pytest.fixture(scope="session")
def tools_of_the_trade():
    """Give the tests what they share: starting servers, watching processes."""

    class Shared:
        ROOT = ROOT
        PNG = PNG
        running = staticmethod(running)
        is_alive = staticmethod(is_alive)
        eventually = staticmethod(eventually)
        written = staticmethod(written)
        write_pack = staticmethod(write_pack)
        TOOLS = TOOLS

    return Shared


@pytest.fixture(scope="session")
def npm_program():
    """Return a program of ``make host-tools`` by name, with the environment it needs; skip where there is none."""

    def find(name):
        path = NPM_BIN / name
        found = str(path) if path.exists() else shutil.which(name)
        if found is None:
            pytest.skip(f"skipped: needs {name} from npm (make host-tools)")
        environment = {**os.environ, "PATH": f"{NPM_BIN}{os.pathsep}{os.environ['PATH']}"}
        return found, environment

    return find
