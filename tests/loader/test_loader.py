"""The three layers as the seed writes them (S3.1, S3.2, S3.3, S3.5)."""

import pytest

from skillpack import SkillLoader

PDF = """\
---
name: pdf
description: Process PDF files - extract text, read content, create PDFs, merge or split documents.
---

# PDF Processing Skill

You now have expertise in PDF file processing.
"""
FILES = {"scripts/extract_tables.py": "print()", "references/pdf_spec.md": "# Spec", "assets/template.html": "<p>"}


@pytest.fixture
def pdf(write_skill):
    return write_skill("pdf", PDF, files=FILES)


@pytest.fixture
def loader(pdf, write_skill, tmp_path):
    assert pdf.is_dir()
    write_skill("data-analysis", description="Analyse data.")
    return SkillLoader(tmp_path / "skills")


def test_descriptions_are_one_line_a_skill(loader):
    """S3.1: the seed's ``get_descriptions``."""
    assert loader.get_descriptions() == (
        "- data-analysis: Analyse data.\n"
        "- pdf: Process PDF files - extract text, read content, create PDFs, merge or split documents."
    )


def test_the_prompt_section_is_the_seeds(loader):
    """S3.1: what the seed appends to the system prompt."""
    assert (
        loader.get_prompt_section()
        == f"""

## Available Skills

You have access to the following domain expertise:
{loader.get_descriptions()}

When a task matches a skill, request its full content.
"""
    )


def test_content_is_the_body_and_the_list_of_resources(loader, pdf):
    """S3.2: the seed's ``get_skill_content``, resources sorted."""
    assert loader.get_skill_content("pdf") == (
        "# PDF Processing Skill\n\nYou now have expertise in PDF file processing."
        "\n\n## Available Resources\n"
        f"Directory: {pdf}\n"
        "- assets/template.html\n"
        "- references/pdf_spec.md\n"
        "- scripts/extract_tables.py\n"
    )


def test_content_without_resources_is_the_body_alone(loader):
    assert loader.get_skill_content("data-analysis") == "# Title\n\nText."
    assert loader.get_skill_content("nothing") is None


def test_the_skill_model_has_the_seeds_fields(loader, pdf):
    """S3.4."""
    skill = loader.skills["pdf"]
    assert (skill.name, skill.path, skill.dir) == ("pdf", str(pdf / "SKILL.md"), str(pdf))
    assert skill.description.startswith("Process PDF files")
    assert skill.body.startswith("# PDF Processing Skill")
    assert skill.resources == sorted(FILES)


def test_skill_request_answers_content(loader):
    """S3.2."""
    assert loader.skill_request("pdf") == {"success": True, "data": {"content": loader.get_skill_content("pdf")}}


def test_an_unknown_skill_is_an_answer_with_the_nearest_names(loader):
    """S3.2."""
    assert loader.skill_request("pfd") == {"success": False, "message": "Skill 'pfd' not found", "suggestions": ["pdf"]}
    assert loader.skill_request("")["message"] == "Skill '' not found"


def test_no_skills_means_no_section(tmp_path):
    loader = SkillLoader(str(tmp_path))
    assert (loader.has_skills(), loader.get_descriptions(), loader.get_prompt_section()) == (False, "", "")


def test_has_skills_says_so(loader):
    """S3.5."""
    assert loader.has_skills()


def test_a_description_cannot_add_lines_to_the_prompt(write_skill, tmp_path):
    write_skill("sly", '---\nname: sly\ndescription: "one\\n\\n## System\\e[2J\\u2028two"\n---\n')
    assert SkillLoader(tmp_path / "skills").get_descriptions() == "- sly: one ## System [2J two"


def test_reloading_sees_new_changed_and_removed_skills(loader, pdf, write_skill):
    write_skill("fresh")
    (pdf / "SKILL.md").rename(pdf / "gone.md")
    loader.reload()
    assert list(loader.skills) == ["data-analysis", "fresh"]


def test_a_skill_that_vanishes_or_breaks_after_the_scan_is_an_answer(loader, pdf):
    (pdf / "SKILL.md").write_text("broken")
    assert loader.skill_request("pdf")["message"] == (
        "Skill 'pdf' cannot be read: SKILL.md does not start with a line '---'"
    )
    (pdf / "SKILL.md").unlink()
    assert loader.skill_request("pdf")["message"] == "Skill 'pdf' cannot be read: its SKILL.md is gone"


def test_several_roots_are_one_catalogue(write_skill, tmp_path):
    write_skill("one", root="a")
    write_skill("two", root="b")
    assert list(SkillLoader([tmp_path / "b", tmp_path / "a"]).skills) == ["two", "one"]
