"""Layer 1 (S3.1): three styles, a budget filled fairly, and what is missing told to the model."""

import json
import re
import shlex
import subprocess
import xml.etree.ElementTree as ET  # the text is ours
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forked import skillpack
from operations import lines_run
from skillpack import Budget, Skill, SkillLoader
from skillpack.skills.layer1 import BY_TOOL, estimate_tokens, layer1


def skill(name, description):
    return Skill(name, description, f"/skills/{name}/SKILL.md", f"/skills/{name}")


THREE = [skill("a", "short"), skill("b", "word " * 40), skill("c", "other " * 40)]


def test_compact_text_is_one_line_a_skill():
    assert layer1(THREE[:1], "compact") == ("- a: short", 1, 1, 0)


def test_the_markdown_section_is_the_seeds_to_the_letter_and_says_how_to_get_a_body():
    expected = (
        "\n\n## Available Skills\n\nYou have access to the following domain expertise:\n- a: short\n\n"
        "When a task matches a skill, request its full content.\n"
    )
    assert layer1(THREE[:1], how="").text == expected
    assert layer1(THREE[:1], how="Call `x`.").text == f"{expected}Call `x`.\n"
    assert "`skill_request`" in layer1(THREE[:1]).text.removeprefix(expected)


def test_xml_is_escaped_and_can_be_read_back():
    sly = skill("x", 'a <b> & "c" \x07 </description> \ud7ff')
    root = ET.fromstring(layer1([sly, THREE[0]], "xml").text)  # noqa: S314
    assert root.tag == "available_skills"
    assert [[(part.tag, part.text) for part in entry] for entry in root] == [
        [
            ("name", "x"),
            ("description", 'a <b> & "c" </description> \ud7ff'),
            ("location", "/skills/x/SKILL.md"),
        ],
        [("name", "a"), ("description", "short"), ("location", "/skills/a/SKILL.md")],
    ]
    assert root.attrib == {}


def test_in_xml_a_sentence_replaces_the_locations():
    element, _, sentence = layer1(THREE, "xml", how="Call `x`.").text.rpartition("\n")
    assert sentence == "Call `x`."
    assert [part.tag for part in ET.fromstring(element)[0]] == ["name", "description"]  # noqa: S314
    assert layer1(THREE, "xml", how="").text == element


def test_a_location_that_is_no_xml_text_does_not_break_the_element():
    odd = Skill("x", "d", "/a\x01<\udcff/SKILL.md", "/a")
    assert ET.fromstring(layer1([odd], "xml").text)[0][2].text == "/a\ufffd<?/SKILL.md"  # noqa: S314


@pytest.mark.parametrize("style", ["compact", "markdown", "xml"])
def test_no_skills_are_no_text(style):
    assert layer1([], style) == ("", 0, 0, 0)


def test_an_unknown_style_is_refused():
    with pytest.raises(ValueError, match="must be one of compact, markdown, xml"):
        layer1(THREE, "html")


def test_a_budget_shortens_long_descriptions_alike_and_leaves_short_ones_whole():
    told = layer1(THREE, "compact", Budget(160))
    lines = told.text.split("\n")
    assert (told.shown, told.total, told.shortened) == (3, 3, 2)
    assert lines[0] == "- a: short"
    assert lines[1].endswith("word...")
    assert lines[2].endswith("other...")
    assert abs(len(lines[1]) - len(lines[2])) <= len("other ")
    assert lines[3] == "(3 of 3 skills shown, 2 of them shortened. Search the skills for what is not here.)"


def test_what_one_skill_does_not_use_goes_to_the_others():
    *lines, notice = layer1(THREE, "compact", Budget(300)).text.split("\n")
    assert min(map(len, lines[1:])) > (300 - len(notice)) / 3


def test_a_budget_too_small_for_all_names_shows_the_first_and_tells_how_many_there_are():
    many = [skill(f"skill-{number:03}", "text " * 20) for number in range(100)]
    told = layer1(many, "compact", Budget(300))
    assert told.total == 100
    assert told.text.split("\n")[:2] == ["- skill-000", "- skill-001"]
    assert f"({told.shown} of 100 skills shown" in told.text
    assert 5 < told.shown < 30


def test_a_budget_without_room_for_anything_is_reported_by_the_numbers():
    assert layer1(THREE, "markdown", Budget(20)) == ("", 0, 3, 0)


def test_xml_tells_what_is_missing_in_its_attributes():
    root = ET.fromstring(layer1(THREE, "xml", Budget(420)).text)  # noqa: S314
    assert (root.attrib["shown"], root.attrib["total"]) == ("3", "3")
    assert int(root.attrib["shortened"]) == 2


def test_tokens_are_a_quarter_of_letters_three_of_marks_and_each_other_character():
    assert [estimate_tokens(text) for text in ("", "abcd", "abcde", "画一个", "a画")] == [0, 1, 2, 3, 2]
    assert [estimate_tokens(text) for text in ("a b\n", "1,2;", "é\udc80")] == [1, 3, 2]


def test_the_packs_own_descriptions_and_their_section_are_short():
    """80 tokens a description, 2,000 for 20 skills. The estimate is 1.0 to 1.45 times what three tokenizers count."""
    folder = Path(__file__).parents[2] / "skills"
    loader = SkillLoader(folder)
    assert set(loader.skills) == {path.parent.name for path in folder.glob("*/SKILL.md")}
    assert {name: size for name, item in loader.skills.items() if (size := estimate_tokens(item.summary)) > 80} == {}
    count = len(loader.skills)
    assert estimate_tokens(loader.get_prompt_section()) <= min(82 * count, 1750)  # 250 to spare
    assert estimate_tokens(loader.get_prompt_section("xml", how=BY_TOOL)) <= min(100 * count, 2000)
    whole = loader.layer1("markdown", Budget(2000, "tokens"))
    assert (whole.shown, whole.shortened) == (count, 0)


NAMES = st.lists(st.from_regex(r"[a-z0-9]{1,12}", fullmatch=True), min_size=1, max_size=30, unique=True)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=80)


@given(
    NAMES.flatmap(lambda names: st.tuples(st.just(names), st.lists(TEXT, min_size=len(names), max_size=len(names)))),
    st.integers(1, 2000),
    st.sampled_from(["compact", "markdown", "xml"]),
    st.sampled_from(["characters", "tokens"]),
)
def test_whatever_the_skills_the_budget_holds_and_nothing_is_lost_untold(named, limit, style, unit):
    names, texts = named
    skills = [skill(name, text) for name, text in zip(names, texts, strict=True)]
    told = layer1(skills, style, Budget(limit, unit))
    length = len(told.text) if unit == "characters" else estimate_tokens(told.text)
    assert length <= limit
    assert told.total == len(skills)
    if style == "xml" and told.text:
        root = ET.fromstring(told.text)  # noqa: S314
        assert [entry[0].text for entry in root] == names[: told.shown]
        short = [
            entry
            for entry, item in zip(root, skills, strict=False)
            if (entry.findtext("description") or "") != item.summary
        ]
        assert len(short) == told.shortened
    elif told.text:
        lines = [line for line in told.text.split("\n") if line.startswith("- ")]
        assert [re.split(r":? ", line)[1] for line in lines] == names[: told.shown]
    if told.text and (told.shown < told.total or told.shortened):
        assert str(told.total) in told.text


@given(st.lists(st.integers(20, 300), min_size=1, max_size=20), st.integers(100, 3000))
def test_no_skill_is_cut_shorter_than_another_got(lengths, limit):
    """The descriptions that are cut are equally long, none that is whole is longer, and one more letter for each of the
    cut ones does not fit; the notice was counted with the longest numbers, six digits at most.
    """
    told = layer1([skill(f"s{number}", "x" * size) for number, size in enumerate(lengths)], "compact", Budget(limit))
    texts = re.findall(r"^- s\d+: (x+(?:\.\.\.)?)$", told.text, re.MULTILINE)
    cut = [len(text) for text in texts if text.endswith("...")]
    if cut:
        assert set(cut) == {max(map(len, texts))}
        shorter = 2 * len(str(told.total)) - len(str(told.shown)) - len(str(told.shortened))
        assert len(told.text) + shorter + len(cut) > limit


def test_the_time_grows_with_the_number_of_skills_and_no_faster():
    def cost(number):
        skills = [skill(f"skill-{index}", "some words " * 20) for index in range(number)]
        return lines_run(lambda: layer1(skills, "compact", Budget(60 * number)))

    assert cost(4_000) < 5 * cost(1_000)  # 4 when linear, 16 when quadratic


def test_the_command_that_the_prompt_names_prints_the_body(write_skill, tmp_path):
    write_skill("one", "---\nname: one\ndescription: d\n---\nThe body.\n", root="my skills")
    printed = run("--skills-dir", str(tmp_path / "my skills")).stdout
    command = shlex.split(re.search(r"Run `skillpack (.*)`", printed)[1].replace("NAME", "one"))
    assert subprocess.check_output([*skillpack(), *command], text=True) == "The body.\n"
    assert "Run `skillpack show NAME`." in run().stdout


def run(*arguments):
    return subprocess.run([*skillpack(), "prompt", *arguments], capture_output=True, text=True, check=False)


def test_the_command_prints_every_style_within_a_budget(write_skill, tmp_path):
    write_skill("one", description="word " * 100)
    write_skill("two")
    root = ("--skills-dir", str(tmp_path / "skills"))
    loader = SkillLoader(tmp_path / "skills")
    assert run("--style", "xml", *root).stdout == loader.get_prompt_section("xml") + "\n"
    assert run("--style", "compact", *root).stdout == loader.get_descriptions() + "\n"
    told = json.loads(run("--style", "compact", "--max-tokens", "60", "--json", *root).stdout)
    assert told == loader.layer1("compact", Budget(60, "tokens"))._asdict()
    assert told["shortened"] == 1
    assert len(run("--max-characters", "300", *root).stdout) <= 300
    assert run("--style", "xml", "--how", "file", *root).stdout == loader.get_prompt_section("xml") + "\n"
    assert run("--style", "xml", "--how", "tool", *root).stdout == loader.get_prompt_section("xml", how=BY_TOOL) + "\n"
    assert "needs --style xml" in run("--how", "file", *root).stderr
    assert run("--how", "tool", *root).stdout.strip() == loader.get_prompt_section().strip()
    both = run("--max-characters", "300", "--max-tokens", "3", *root)
    assert (both.returncode, "cannot be combined" in both.stderr) == (2, True)
