"""Headings of a body, for layer 2 by section."""

import pytest

from skillpack.skills.loader import headings, section


@pytest.mark.parametrize(
    ("body", "titles"),
    [
        ("# One\n## Two ##\n###### Six\n####### seven", ["One", "Two", "Six"]),
        ("#no\n# \n#\n   # three blanks\n    # four blanks", ["three blanks"]),
        ("```\n# code\n```\n# Text", ["Text"]),
        ("~~~~ bash\n# code\n~~~\n# code\n~~~~\n# Text", ["Text"]),
        ("````\n```\n# code\n````\n# Text", ["Text"]),
        ("```unclosed\n# code", []),
        ("``` not a fence ```\n# Text", ["Text"]),
        ("# C#", ["C#"]),
        ("# 错误 与 处理", ["错误 与 处理"]),
        ("", []),
    ],
)
def test_headings_are_those_that_markdown_sees(body, titles):
    assert [heading.title for heading in headings(body)] == titles


def test_a_section_ends_at_the_next_heading_of_its_level_or_above():
    body = "# A\na\n## B\nb\n### C\nc\n## D\nd\n# E\n"
    assert section(body, "b") == "## B\nb\n### C\nc"
    assert section(body, "## D") == "## D\nd"
    assert section(body, "E") == "# E"
    assert section(body, "A") == "# A\na\n## B\nb\n### C\nc\n## D\nd"
    assert section(body, "F") is None


def test_of_equal_headings_the_first_is_meant():
    assert section("## X\n1\n## X\n2", "x") == "## X\n1"


def test_a_paragraph_that_is_underlined_is_a_heading():
    body = "One\n===\na\n\nTwo\nlines\n---\nb\n\n- item\n  more\n---\n\n| a |\n---\n\n---\n"
    body += "```\nNo\n---\n```\n    code\n---\nc\n"
    assert [(heading.level, heading.title, heading.line) for heading in headings(body)] == [
        (1, "One", 0),
        (2, "Two lines", 4),
    ]
    assert section(body, "one") == body.rstrip()
    assert section("A\n-\na\n\nB\n-\nb", "a") == "A\n-\na"
