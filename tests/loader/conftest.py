"""Skills written into a temporary folder, good and bad."""

import json
import textwrap
from pathlib import Path

import pytest

BODY = "# Title\n\nText."


ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def exported(tmp_path_factory):
    """Return the copies of all skills of this pack, written into a folder with a space in its name, by skill."""
    from skillpack import SkillLoader
    from skillpack.copies.writing import export_skills

    folder = tmp_path_factory.mktemp("exported") / "the skills"
    written = export_skills(SkillLoader(str(ROOT / "skills")).skills.values(), folder)
    return {copy.name: (copy, path) for copy, path in written}


@pytest.fixture
def write_skill(tmp_path):
    """Write ``<root>/<folder>/SKILL.md`` and further files; return the skill's folder."""

    def write(folder, text=None, *, files=None, root="skills", description="Does a thing."):
        home = tmp_path / root / folder
        home.mkdir(parents=True)
        if text is None:
            text = f"---\nname: {home.name}\ndescription: {description}\n---\n\n{BODY}\n"
        (home / "SKILL.md").write_bytes(text if isinstance(text, bytes) else text.encode())
        for name, content in (files or {}).items():
            path = home / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return home

    return write


INPUT_SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "properties": {"mode": {"type": "string"}, "count": {"type": "integer", "default": 1}},
    "required": ["mode"],
}
OUTPUT_SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "properties": {"total": {"type": "integer"}},
    "required": ["total"],
}


@pytest.fixture
def write_tool(write_skill):
    """Write the skill ``bench`` with the tool ``bench.run_mode`` whose script is ``source``."""

    def write(source, *, extra=""):
        declaration = textwrap.dedent(
            """\
            skill: bench
            version: "1.0.0"
            tools:
              - id: bench.run_mode
                script: scripts/run_mode.py
                version: "1.2.0"
                description: Runs one mode.
                input_schema: schemas/bench.run_mode.input.json
                output_schema: schemas/bench.run_mode.output.json
            """
        )
        files = {
            "skill.yaml": declaration + extra,
            "scripts/run_mode.py": textwrap.dedent(source),
            "schemas/bench.run_mode.input.json": json.dumps(INPUT_SCHEMA),
            "schemas/bench.run_mode.output.json": json.dumps(OUTPUT_SCHEMA),
        }
        return write_skill("bench", files=files)

    return write
