"""``skillpack search``: BM25 over names, descriptions and bodies, Chinese too."""

import json
import math
import re
import subprocess
from pathlib import Path

import pytest

from forked import skillpack
from skillpack import SkillLoader
from skillpack.skill_search import MAX_TERMS, folded, search, terms_of

PACKS = SkillLoader(Path(__file__).parents[2] / "skills")
SECOND = {"how well do M1 and M2 match"}  # second before and after


@pytest.fixture
def names(write_skill, tmp_path):
    """Write skills from (name, description, body); return a function from a query to the names found."""

    def prepare(*skills):
        for name, description, body in skills:
            write_skill(name, f"---\nname: {name}\ndescription: {description}\n---\n{body}\n")
        found = SkillLoader(tmp_path / "skills").skills.values()
        return lambda query: [match.skill.name for match in search(found, query, 10)[0]]

    return prepare


def test_name_counts_more_than_description_and_that_more_than_body(names):
    find = names(("a", "x", "about mirrors"), ("b", "draws a mirror", "y"), ("mirror", "x", "y"), ("z", "x", "y"))
    assert find("mirror") == ["mirror", "b", "a"]


def test_a_second_search_folds_only_its_query(names):
    find = names(("a", "x", "about mirrors"), ("mirror", "x", "y"))
    find("mirror")
    before = folded.cache_info().misses
    assert find("drawing mirrors") == ["mirror", "a"]
    assert folded.cache_info().misses == before + 1


def test_the_opening_of_a_body_counts_more_than_its_sections(names):
    sections = "# A\n\nDoes a thing.\n\n## Errors\n\nvia via via via"
    find = names(("a", "x", sections), ("b", "x", "# B\n\n| task |\n| --- |\n| draw a via |"), ("c", "x", "y"))
    assert find("via") == ["b", "a"]


def test_the_structure_of_a_declaration_is_not_searched(write_skill, tmp_path):
    fields = "tools: [{id: a.b, script: scripts/x.py, intent_tags: [length], context: {need_memory: false}, cost: {}}]"
    write_skill("a", files={"skill.yaml": fields})
    search_for = SkillLoader(tmp_path / "skills").search
    assert [len(search_for(query)["data"]["skills"]) for query in ("length", "memory", "scripts", "cost", "tags")] == [
        *(1, 0, 0, 0, 0)
    ]


def test_what_only_the_body_says_is_found(names):
    find = names(("a", "Does a thing.", "An OASIS file can be read."), ("b", "Does another.", "Nothing."))
    assert find("read oasis") == ["a"]


def test_a_skill_is_found_by_its_tools(write_skill, tmp_path):
    write_skill(
        "a", files={"skill.yaml": "tools: [{id: text.count_words, intent_tags: [length], display_name: {zh: 计数}}]"}
    )
    write_skill("b", files={"skill.yaml": b"\xff"})
    (write_skill("c") / "skill.yaml").mkdir()
    loader = SkillLoader(tmp_path / "skills")
    for query in ("count_words", "length", "计数"):
        assert [skill["name"] for skill in loader.search(query)["data"]["skills"]] == ["a"]


def test_the_request_that_is_most_like_the_query_counts_however_many_there_are(write_skill, tmp_path):
    """The words of ``a`` stand apart in its requests; ``b`` has one with all of them, and many others."""
    write_skill("a", files={"skill.yaml": "asks:\n- wide wire\n- short pin\ntools: []\n"})
    others = "".join(f"- something else number {number}\n" for number in range(40))
    write_skill("b", files={"skill.yaml": f"asks:\n- wide pin\n{others}tools: []\n"})
    found = SkillLoader(tmp_path / "skills").search("a wide pin")["data"]["skills"]
    assert [skill["name"] for skill in found] == ["b", "a"]


def test_many_requests_with_a_word_count_more_than_one(write_skill, tmp_path):
    """Each has the same number of requests, and one that is as like the query as any of the other."""
    write_skill("a", files={"skill.yaml": "asks:\n- short wire\n- pin one\n- pin two\ntools: []\n"})
    write_skill("b", files={"skill.yaml": "asks:\n- short wire\n- thin wire\n- pin two\ntools: []\n"})
    found = SkillLoader(tmp_path / "skills").search("wire")["data"]["skills"]
    assert [skill["name"] for skill in found] == ["b", "a"]


def test_a_question_differs_from_a_command_of_the_same_words(write_skill, tmp_path):
    write_skill("a", files={"skill.yaml": "asks:\n- make the wire long\ntools: []\n"})
    write_skill("b", files={"skill.yaml": "asks:\n- how long is the wire\ntools: []\n"})
    search_for = SkillLoader(tmp_path / "skills").search
    for query, name in (
        ("how long is wire seven", "b"),
        ("make it long, the wire", "a"),
        ("the wire, make it long", "a"),
    ):
        assert search_for(query)["data"]["skills"][0]["name"] == name


def test_words_that_only_join_others_find_no_request_alone(write_skill, tmp_path):
    write_skill("a", files={"skill.yaml": "asks:\n- what is the wire in this\n- what is the pin in that\ntools: []\n"})
    write_skill("b", description="Weather of a city.", files={"skill.yaml": "asks:\n- rain\ntools: []\n"})
    found = SkillLoader(tmp_path / "skills").search("what is the weather in Paris")["data"]["skills"]
    assert [skill["name"] for skill in found] == ["b"]


def test_a_skill_of_somebody_else_without_requests_is_found_beside_those_with_many(names, tmp_path):
    """Its words must weigh against the requests of 21 skills about another subject."""
    names(
        ("pdf-tools", "Work with PDF files. Use to merge, split or fill forms of a PDF.", "x"),
        ("weather", "Tell the weather and forecast of a city. Use for temperature, rain or wind.", "x"),
        ("data-charts", "Draw charts from CSV data, such as bar, line or scatter plots.", "x"),
        ("git-commit", "Write commit messages and descriptions of a pull request from a diff.", "x"),
    )
    everything = [*PACKS.skills.values(), *SkillLoader(tmp_path / "skills").skills.values()]
    for query, name in (
        ("merge two pdf files", "pdf-tools"),
        ("fill in this PDF form", "pdf-tools"),
        ("what is the weather in Paris tomorrow", "weather"),
        ("how hot is it in Berlin, temperature", "weather"),
        ("draw a bar chart of this CSV", "data-charts"),
        ("write a commit message", "git-commit"),
    ):
        assert search(everything, query, 1)[0][0].skill.name == name


def test_a_rare_word_counts_more_than_a_common_one(names):
    find = names(
        ("a", "draw layout", "x"), ("b", "draw layout", "x"), ("c", "draw layout", "x"), ("d", "check parasitics", "x")
    )
    assert find("draw layout parasitics")[0] in {"a", "d"}
    assert find("layout parasitics")[0] == "d"


def test_a_word_is_found_in_its_forms_and_not_inside_others(names):
    find = names(("a", "routes nets", "x"), ("b", "netlist", "x"), ("c", "matched pairs", "x"))
    assert find("routing") == ["a"]
    assert find("route") == ["a"]
    assert find("net") == ["a"]
    assert find("matching pair") == ["c"]
    find = names(("d", "places blocks", "x"), ("e", "resistors", "x"))
    assert find("placement") == ["d"]
    assert find("resistance") == ["e"]


@pytest.mark.parametrize(
    ("written", "asked"),
    [
        ("a guard ring", "guardring"),
        ("the guardring", "guard ring"),
        ("optimize it", "optimising"),
        ("pre-layout", "prelayout"),
    ],
)
def test_a_compound_and_its_parts_and_both_spellings_find_each_other(names, written, asked):
    assert names(("a", "Draws something.", written), ("b", "Draws another.", "Nothing."))(asked) == ["a"]


def test_words_that_stand_together_tell_apart_what_single_words_do_not(names):
    find = names(
        ("a", "netlist layout, netlist, layout. matches", "x"),
        ("b", "layout netlist, matches, pairs", "x"),
        ("c", "whether a layout matches its netlist", "pairs of things"),
    )
    assert find("does my layout match the netlist?")[0] == "c"
    assert find("layout-matching")[0] == "c"


def test_what_a_description_says_a_skill_is_not_for_does_not_count(names):
    find = names(
        ("a", "Draws wires. Not for pictures (view), nor plots. Do not use it for vias.", "x"), ("b", "x", "pictures")
    )
    assert find("pictures") == ["b"]
    assert find("plots vias") == []
    assert find("wires") == ["a"]


def test_case_width_and_punctuation_do_not_matter(names):
    find = names(("a", "Reads GDSII files", "x"), ("b", "common_centroid", "x"))
    assert find("gdsii!") == ["a"]
    assert find("\uff27\uff24\uff33\uff29\uff29") == ["a"]  # fullwidth letters
    assert find("centroid") == ["b"]


def test_chinese_is_found_by_pairs_of_characters_without_blanks(names):
    find = names(
        ("a", "画差分对的版图", "x"),
        ("b", "电流镜", "NMOS版图与电流镜像"),
        ("c", "设计规则检查", "版图检查"),
        ("d", "x", "y"),
    )
    assert find("差分对") == ["a"]
    assert find("电流镜版图")[0] == "b"
    assert find("nmos") == ["b"]
    assert find("检查") == ["c"]
    assert find("图版") == []


@pytest.mark.parametrize("query", ["", "  ", "?!", "zzz", "(", "[z", "\\", "\x00", "\ud800", "a" * 100_000])
def test_any_query_is_answered(names, query):
    assert names(("a", "b", "c"))(query) == []


def test_words_that_only_join_others_count_when_there_is_nothing_else(names):
    find = names(("a", "my own", "x"), ("b", "wires", "x"), ("c", "about 4", "x"))
    assert find("what about my wires in 4") == ["b"]
    assert find("about") == ["c"]
    assert find("4") == ["c"]


def test_a_query_has_a_bounded_number_of_terms():
    assert len(terms_of(" ".join(map(str, range(1000))), MAX_TERMS)) == MAX_TERMS == 32


def test_equal_skills_stay_in_their_order(names):
    assert names(("a", "word", "x"), ("b", "word", "x"), ("c", "word", "x"))("word") == ["a", "b", "c"]


def test_the_score_is_that_of_the_formula(names, tmp_path):
    """BM25F by hand: one term once in the description of one of two skills, fields of mean length."""
    names(("aa", "wire more", "xx"), ("bb", "none more", "xx"))
    for name in ("aa", "bb"):  # requests would add to the score
        (tmp_path / "skills" / name / "skill.yaml").write_text("asks:\n- none\n")
    (match,), total = search(SkillLoader(tmp_path / "skills").skills.values(), "wire", 5)
    frequency = 3.0 * 1 / (1 - 0.5 + 0.5 * 1)
    assert total == 1
    assert match.score == pytest.approx(math.log(1 + (2 - 1 + 0.5) / (1 + 0.5)) * frequency / (1.2 + frequency))


def test_the_excerpt_is_the_line_that_fits_best_as_it_is_written(names, tmp_path):
    names(("a", "x", "# Title\n\nSome wires.\nWires on METAL2, " + "long " * 60 + "\n"))
    (match,), _ = search(SkillLoader(tmp_path / "skills").skills.values(), "metal2 wire", 5)
    assert match.excerpt.startswith("Wires on METAL2, long")
    assert match.excerpt.endswith("...")
    assert len(match.excerpt) < 170


def test_a_skill_that_has_gone_is_searched_by_what_is_known(names, tmp_path):
    names(("a", "word", "body"))
    skills = list(SkillLoader(tmp_path / "skills").skills.values())
    (tmp_path / "skills" / "a" / "SKILL.md").unlink()
    assert [match.skill.name for match in search(skills, "word", 5)[0]] == ["a"]
    assert search(skills, "body", 5) == ([], 0)


PROMPTS = {
    "lvs-check": [
        "compare layout with schematic",
        "版图与原理图比对",
        "is there a short between vdd and vss",
        "extract a netlist from the layout",
    ],
    "drc-check": [
        "check the design rules of my GDS",
        "spacing violations on metal1",
        "run the foundry's KLayout DRC deck",
        "设计规则检查",
    ],
    "common-centroid-pair": [
        "differential pair with low offset",
        "input pair in ABBA with dummies",
        "interdigitate two matched transistors",
        "共质心差分对",
    ],
    "current-mirror": [
        "current mirror 1:4",
        "共源共栅电流镜",
        "bias current source with three copies",
        "cascode mirror with matched ratios",
    ],
    "netlist-parse": [
        "what devices are in this SPICE file",
        "my netlist does not load",
        "find the differential pairs in the netlist",
        "解析网表",
    ],
    "signal-routing": [
        "connect two pins with metal",
        "reroute a net that failed",
        "draw a wire on metal 3 with vias",
        "布线",
    ],
    "layout-edit": [
        "move M1 by 5 um to the right",
        "delete the wire of net tail",
        "undo the last change of the layout",
        "resize M1 in its place",
        "移动器件",
        "撤销上一步",
    ],
    "layout-view": [
        "picture of the layout",
        "版图截图",
    ],
    "layout-metrics": [
        "area and utilization",
        "how well do M1 and M2 match",
    ],
    "mos-pcell": [
        "draw an NMOS with W=10u and 4 fingers",
        "I need a PMOS switch at position (20, 5)",
        "pin coordinates of a transistor cell",
        "画一个晶体管单元",
    ],
    "passive-devices": [
        "10k poly resistor",
        "1 pF MIM capacitor",
        "antenna diode",
        "匹配电阻",
    ],
    "netlist-to-gds": [
        "turn my OTA netlist into a layout",
        "netlist to GDS in one step",
        "自动版图生成",
    ],
    "constraint-planning": [
        "which devices must be symmetric",
        "which nets should be routed first",
        "对称约束",
    ],
    "module-placement": [
        "floorplan of the circuit without wires",
        "change the spacing between rows",
        "模块布局",
    ],
    "gds-export": [
        "save the layout as OASIS",
        "导出 GDS",
    ],
    "design-knowledge-graph": [
        "remember what we decided about this signal",
        "what is connected to clk",
    ],
    "technology-files": [
        "add a new process to the tools",
    ],
}
"""Fifty prompts, written before the descriptions were cut to 100 tokens. 47 found their skill first then, 3 second."""


@pytest.mark.parametrize(("name", "prompts"), PROMPTS.items(), ids=PROMPTS.keys())
def test_the_packs_own_skills_come_first_for_what_they_are_for(name, prompts):
    best = {prompt: 2 if prompt in SECOND else 1 for prompt in prompts}
    found = {prompt: [item["name"] for item in PACKS.search(prompt)["data"]["skills"]] for prompt in prompts}
    assert {prompt: names for prompt, names in found.items() if name not in names[: best[prompt]]} == {}


def test_there_are_fifty_six_prompts():
    assert sum(map(len, PROMPTS.values())) == 56


def run(*arguments):
    return subprocess.run([*skillpack(), "search", *arguments], capture_output=True, text=True, check=False)


def test_the_command_lists_the_best_first(write_skill, tmp_path):
    for name, description in (("s0", "nothing of it end"), ("s1", "wire"), ("s2", "wire end")):
        write_skill(name, description=description)
    root = ("--skills-dir", str(tmp_path / "skills"))
    done = run("wire", "end", "--limit", "2", *root)
    assert re.findall(r"^ +\d\.\d\d  (s\d): ", done.stdout, re.MULTILINE) == ["s2", "s1"]
    assert done.stderr == "1 more; use --limit to show them\n"
    answer = json.loads(run("wire", "--json", *root).stdout)
    assert answer["success"]
    assert answer["data"]["total"] == 2
    assert set(answer["data"]["skills"][0]) == {"name", "description", "score", "excerpt"}
    nothing = run("zzz", *root)
    assert (nothing.returncode, nothing.stdout, nothing.stderr) == (0, "", "no matching skill\n")
