"""Prompt templates: variables of the call, nothing undefined, nothing unsafe (S1.5)."""

import pytest

from skillscript import SkillError, prompt_variables, render_file
from skillscript.model_call import render


def test_a_template_sees_parameters_and_context():
    context = {"memory_summary": "knows limits", "content_context": [{"id": 1}], "user_profile": {}}
    variables = prompt_variables({"topic": "<limits> & 极限", "n": 2}, context)
    template = "{{ topic }}|{{ params.n }}|{{ memory_summary }}|{{ content_context | tojson }}"
    template += "|{% if user_profile %}x{% endif %}"
    assert render(template, variables) == '<limits> & 极限|2|knows limits|[{"id": 1}]|'


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        ("{{ topc }}", "'topc' is undefined"),
        ("{{ params.topc }}", "has no attribute 'topc'"),
        ("a\n{% if %}", "template, line 2: Expected an expression"),
        ("{% include 'x' %}", "no loader"),
        ("{{ ''.__class__.__mro__ }}", "unsafe"),
        ("{{ params.clear() }}", "unsafe"),
        ("{{ 1 / 0 }}", "division by zero"),
        ("{{ range(10 ** 9) | list }}", "Range too big"),
        ("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "recursion depth"),
        ("{{ [1] * 10 ** 17 }}", "MemoryError"),
    ],
)
def test_a_template_that_is_wrong_or_unsafe_is_an_internal_error(template, reason):
    with pytest.raises(SkillError) as caught:
        render(template, prompt_variables({"topic": "x"}, {}))
    assert caught.value.code == "INTERNAL_ERROR"
    assert reason in caught.value.message


def test_more_than_a_model_can_read_is_the_callers_fault():
    with pytest.raises(SkillError, match="longer than the 1048576 characters allowed") as caught:
        render("{% for line in lines %}{{ line }}{% endfor %}", {"lines": ["x" * 100] * 20_000})
    assert caught.value.code == "INVALID_PARAM"


def test_what_a_parameter_holds_is_never_a_template():
    assert render("{{ topic }}", {"topic": "{{ 7 * 7 }}{% include 'x' %}"}) == "{{ 7 * 7 }}{% include 'x' %}"


def test_a_template_is_a_file_of_the_skill(tmp_path):
    (tmp_path / "assets").mkdir()
    (tmp_path / "assets/p.jinja").write_text("Topic: {{ topic }}\n{% if more %}\nmore\n{% endif %}\nend")
    script = str(tmp_path / "scripts/x.py")
    assert render_file(script, "assets/p.jinja", {"topic": "a", "more": False}) == "Topic: a\nend"
    (tmp_path / "skill.yaml").write_text("id: quiz")
    assert render_file(str(tmp_path / "handler.py"), "assets/p.jinja", {"topic": "a", "more": True}).endswith(
        "more\nend"
    )
    (tmp_path / "assets/bad.jinja").write_bytes(b"\xff")
    for name, reason in (("assets/none.jinja", "cannot be read"), ("assets/bad.jinja", "is not UTF-8")):
        with pytest.raises(SkillError, match=reason):
            render_file(script, name, {})
