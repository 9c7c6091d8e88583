"""Skills whose code is a handler.py: every legal form of ``execute``, and what ``skillpack new --handler`` makes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from skillpack import Runner, SkillLoader, find_tools, validate
from skillpack.authoring.validation import Plan, write_skill
from skillscript import load_handler

IN = {"type": "object", "properties": {"topic": {"type": "string"}}, "required": ["topic"]}
OUT = {"type": "object", "properties": {"questions": {"type": "array"}}, "required": ["questions"]}
BODY = "{indent}return {{'questions': [params['topic'], sorted(context)]}}\n"
FUNCTION = "def execute(params, context):\n" + BODY.format(indent="    ")
METHOD = "    def execute(self, params, context):\n" + BODY.format(indent="        ")
FORMS = {
    "function": FUNCTION,
    "async function": f"async {FUNCTION}",
    "class Skill": f"class Skill:\n{METHOD}",
    "static method": "class Skill:\n    @staticmethod\n    def execute(params, context):\n"
    + BODY.format(indent=" " * 8),
    "class of another name": f"class QuizSkill:\n{METHOD}",
    "derived from a class Skill": (
        "class Skill:\n    def execute(self, params, context): raise NotImplementedError\n"
        f"class QuizSkill(Skill):\n{METHOD}"
    ),
    "class Skill beside others": f"class Tester:\n    def execute(self): pass\nclass Skill:\n{METHOD}",
    "talks, and runs itself when it is the program": (
        f"print('noise')\n{FUNCTION}\nif __name__ == '__main__':\n    print(execute({{'topic': 'x'}}, {{}}))\n"
    ),
    "with a module of its own": f"from wording import word\n{FUNCTION}".replace(
        "params['topic']", "word(params['topic'])"
    ),
    "a skill script": (
        f"from skillscript import main\n{FUNCTION}\n"
        "if __name__ == '__main__':\n    raise SystemExit(main(__file__, 'quiz', execute))\n"
    ),
}
FILES = {f"{part}_schema": f"schemas/{part}.schema.json" for part in ("input", "output")}
DECLARED = {
    "yaml with files": ("skill.yaml", FILES),
    "json in place": ("skill.json", {"input_schema": IN, "output_schema": OUT}),
    "usual files": ("skill.yaml", {}),
    "script named": ("skill.json", {"script": "handler.py"}),
}


def quiz(folder, handler, declared="yaml with files"):
    """Write a skill in the registry's shape and return its tools."""
    home = folder / "quiz"
    (home / "schemas").mkdir(parents=True)
    (home / "schemas/input.schema.json").write_text(json.dumps(IN))
    (home / "schemas/output.schema.json").write_text(json.dumps(OUT))
    name, schemas = DECLARED[declared]
    (home / name).write_text(json.dumps({"id": "quiz", "display_name": "练习题生成", "version": "1.0.0", **schemas}))
    (home / "handler.py").write_text(handler, encoding="utf-8")
    (home / "wording.py").write_text("def word(text): return text\n")
    return find_tools(SkillLoader(folder).declaring)


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_execute_runs(tmp_path, form):
    expected = {"questions": ["极限", ["content_context", "memory_summary", "session_context", "user_profile"]]}
    with Runner(quiz(tmp_path, FORMS[form]), warm=form == "function") as runner:
        assert runner.run("quiz", {"topic": "极限"}).envelope["data"] == expected


@pytest.mark.parametrize("declared", DECLARED)
def test_every_declaration_of_a_handler_is_read(tmp_path, declared):
    tools = quiz(tmp_path, FUNCTION, declared)
    assert tools.faults == ()
    tool = tools.by_id["quiz"]
    assert (tool.is_handler, tool.input_schema, tool.output_schema) == (True, IN, OUT)


def test_schemas_are_checked_before_and_after(tmp_path):
    with Runner(quiz(tmp_path, "def execute(params, context): return {'questions': 1}\n", "usual files")) as runner:
        wrong = [runner.run("quiz", params).envelope["error"]["code"] for params in ({}, {"topic": 1}, {"topic": "a"})]
    assert wrong == ["INVALID_PARAM", "INVALID_PARAM", "INTERNAL_ERROR"]


def test_an_edited_handler_and_template_are_seen_by_a_warm_process(tmp_path):
    template = FUNCTION.replace("[params['topic'], sorted(context)]", "[Path(__file__).with_name('t').read_text()]")
    template = f"from pathlib import Path\n{template}"
    with Runner(quiz(tmp_path, template)) as runner:
        for text in ("one", "two"):
            (tmp_path / "quiz/t").write_text(text)
            assert runner.run("quiz", {"topic": ""}).envelope["data"] == {"questions": [text]}
        (tmp_path / "quiz/handler.py").write_text(FUNCTION)
        assert runner.run("quiz", {"topic": "a"}).envelope["data"]["questions"][0] == "a"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = 1\n", "neither a function execute"),
        ("class A:\n    def execute(self): ...\nclass B(int):\n    def execute(self): ...\n", "A, B; call one"),
    ],
)
def test_a_handler_without_one_execute_is_refused(tmp_path, text, said):
    (tmp_path / "handler.py").write_text(text)
    with pytest.raises(Exception, match=said):
        load_handler(tmp_path / "handler.py")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    parent = tmp_path_factory.mktemp("new") / "skills"
    return write_skill(Plan("my-quiz", parent, tool="my_quiz.run", handler=True))


def test_a_new_skill_with_a_handler_is_whole_and_runs(made):
    assert validate(made, ["all"]).findings == ()
    names = ["SKILL.md", "handler.py", "schemas", "skill.yaml", "templates", "tests"]
    assert sorted(path.name for path in made.iterdir()) == names
    with Runner(find_tools(SkillLoader(made.parent).declaring), warm=False) as runner:
        call = runner.run("my_quiz.run", {"text": "three short words"})
    assert call.envelope["data"] == {"words": 3, "summary": ""}


def test_the_tests_of_a_new_skill_pass(made):
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(made / "tests")],
        capture_output=True,
        text=True,
        check=False,
        cwd=made,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    )
    assert done.returncode == 0, done.stdout
    assert "12 passed" in done.stdout
    assert Path(made / "templates/prompt.jinja").is_file()
