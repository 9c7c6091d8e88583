"""A tiny skill in a temporary folder, called through its real command line."""

from __future__ import annotations

import json
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from forked import run_script

INPUT_SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "description": "Draw a transistor.",
    "additionalProperties": False,
    "required": ["w"],
    "properties": {
        "w": {"type": "number", "exclusiveMinimum": 0, "description": "Gate width, 100% drawn. [m]"},
        "nf": {
            "type": "integer",
            "minimum": 1,
            "default": 1,
            "description": "Number of fingers. [1]",
            "x-error": {
                "minimum": "Number of fingers must be positive integer",
                "type": "Number of fingers must be positive integer",
            },
        },
        "orientation": {
            "enum": ["R0", "R90", "MX"],
            "default": "R0",
            "description": "Orientation.",
            "x-error": {"enum": "Invalid orientation: {value}"},
        },
        "position": {
            "type": "array",
            "items": {"type": "number"},
            "minItems": 2,
            "maxItems": 2,
            "default": [0, 0],
            "description": "Position [x, y]. [um]",
        },
        "flatten": {"type": "boolean", "default": False, "description": "Flatten the hierarchy."},
        "label": {"type": "string", "minLength": 1, "default": "M1", "description": "Name."},
        "workspace": {"type": "string", "default": "./ws", "x-env": "TINY_WORKSPACE", "description": "Folder."},
        "nets": {
            "type": "array",
            "default": [],
            "description": "Nets to route.",
            "items": {
                "type": "object",
                "additionalProperties": False,
                "required": ["endpoints"],
                "properties": {
                    "width": {"type": "number", "default": 0.2},
                    "endpoints": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "required": ["x"],
                            "properties": {"x": {"type": "number"}, "layer": {"type": "string", "default": "metal1"}},
                        },
                    },
                },
            },
        },
    },
    "examples": [{"w": 2e-6, "nf": 2, "position": [1, -2], "flatten": True}],
}

OUTPUT_SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["params", "context", "passed"],
    "properties": {"params": {"type": "object"}, "context": {"type": "object"}, "passed": {"type": "boolean"}},
}

ECHO = 'return {"params": params, "context": context, "passed": params["label"] != "dirty"}'


@dataclass(frozen=True)
class Run:
    """A finished command line."""

    code: int
    stdout: str
    stderr: str

    @property
    def envelope(self) -> dict[str, Any]:
        lines = self.stdout.splitlines()
        assert len(lines) == 1, f"stdout must be one envelope line, got {self.stdout!r}; stderr: {self.stderr}"
        envelope = json.loads(lines[0], parse_constant=lambda name: pytest.fail(f"{name} in the envelope"))
        assert set(envelope) == {"ok", "error", "data", "duration_ms"}
        return envelope

    @property
    def error(self) -> dict[str, Any]:
        assert self.envelope["ok"] is False
        assert set(self.envelope["error"]) == {"code", "message", "details"}
        return self.envelope["error"]


@dataclass(frozen=True)
class TinySkill:
    """A skill folder with one script."""

    folder: Path

    @property
    def script(self) -> str:
        return str(self.folder / "scripts" / "draw.py")

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, self.script, *arguments]

    def run(self, *arguments: str, stdin: bytes = b"", env: dict[str, str] | None = None) -> Run:
        command = [self.script, *arguments]
        done = run_script(command, cwd=self.folder, environment=env or {}, stdin=stdin, kind="scripts")
        return Run(done.returncode, done.stdout.decode(), done.stderr.decode())


@pytest.fixture
def make_skill(tmp_path):
    """Return a function that writes the tiny skill with a given handler body."""

    def make(body: str = ECHO, output_schema: dict[str, Any] | None = None) -> TinySkill:
        folder = tmp_path / "tiny"
        for name in ("scripts", "schemas"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        schemas = {"input": INPUT_SCHEMA, "output": output_schema or OUTPUT_SCHEMA}
        for kind, schema in schemas.items():
            (folder / "schemas" / f"tiny.draw.{kind}.json").write_text(json.dumps(schema), encoding="utf-8")
        (folder / "skill.yaml").write_text('version: "1.2.3"\ntools: [{id: tiny.draw}]\n', encoding="utf-8")
        skill = TinySkill(folder)
        Path(skill.script).write_text(
            '"""Draw."""\nimport os, sys\nfrom skillscript import SkillError, main\n'
            f"def execute(params, context):\n{textwrap.indent(textwrap.dedent(body), '    ')}\n"
            'if __name__ == "__main__":\n'
            '    raise SystemExit(main(__file__, "tiny.draw", execute, violates=lambda data: not data["passed"]))\n',
            encoding="utf-8",
        )
        return skill

    return make


@pytest.fixture
def skill(make_skill):
    """The tiny skill whose handler answers what it was given."""
    return make_skill()
