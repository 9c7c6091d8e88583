"""Where the specification's reference library is installed, both judge a corpus alike; differences are documented."""

import re
from pathlib import Path

import pytest

from skillpack import SkillLoader, validate

skills_ref = pytest.importorskip("skills_ref", reason="needs skills-ref")

PAGE = Path(__file__).parents[2] / "references" / "skills-ref.md"


def skill(extra="", *, name="s", description="What it does.", body="Body."):
    return f"---\nname: {name}\ndescription: {description}\n{extra}---\n\n{body}\n"


AGREED = {
    "minimal": skill(),
    "all-fields": skill(
        'license: MIT\ncompatibility: Python\nmetadata:\n  version: "1"\nallowed-tools: Read Bash(git:*)\n'
    ),
    "chinese-description": skill(description="画一个晶体管"),
    "crlf": skill().replace("\n", "\r\n"),
    "quoted-description": skill(description="'Use when: asked # twice'"),
    "folded-description": skill(description=">-\n  one\n  two"),
    "literal-description": skill(description="|\n  one\n  two"),
    "rules-in-the-body": skill(body="one\n\n---\n\ntwo\n---\n"),
    "no-body": skill(body=""),
    "comment": skill("# a comment\n"),
    "longest-description": skill(description="x" * 1024),
    "longest-compatibility": skill("compatibility: " + "x" * 500 + "\n"),
    "number-as-version": skill("metadata:\n  version: 1.10\n"),
    "blank-after-fence": skill().replace("---\n", "--- \n"),
    "no-frontmatter": "# Title\n",
    "empty-file": "",
    "never-closed": "---\nname: s\ndescription: d\n",
    "empty-frontmatter": "---\n---\nbody",
    "list-as-frontmatter": "---\n- name\n---\n",
    "text-as-frontmatter": "---\njust text\n---\n",
    "no-name": "---\ndescription: d\n---\n",
    "no-description": "---\nname: s\n---\n",
    "empty-description": skill(description="''"),
    "null-description": "---\nname: s\ndescription:\n---\n",
    "too-long-description": skill(description="x" * 1025),
    "too-long-compatibility": skill("compatibility: " + "x" * 501 + "\n"),
    "list-as-description": skill(description="\n  - a\n  - b"),
    "list-as-compatibility": skill("compatibility:\n  - a\n"),
    "unknown-field": skill("version: 1.0.0\n"),
    "upper-case-name": skill(name="S"),
    "other-name": skill(name="t"),
    "underscore-name": skill(name="s_t"),
    "two-hyphens": skill(name="s--t"),
    "hyphen-first": skill(name="-s"),
    "too-long-name": skill(name="s" * 65),
    "key-twice": skill("name: s\n"),
    "nested-key-twice": skill("metadata:\n  a: x\n  a: y\n"),
    "alias": skill("license: &a MIT\ncompatibility: *a\n"),
    "tab-indent": skill("metadata:\n\ta: b\n"),
    "unclosed-quote": skill(description="'a"),
    "foreign-tag": skill(description="!important a"),
    "metadata-without-a-value": skill("metadata:\n"),
    "control-character": skill(description="a\x07b"),
}
# Accepted here and refused there (True), or the other way round; each is a row of references/skills-ref.md.
DIFFERENT = {
    "byte-order-mark": (True, "\ufeff" + skill()),
    "unquoted-colon": (True, skill(description="Use when: asked")),
    "unquoted-colon-in-metadata": (True, skill("metadata:\n  note: a: b\n")),
    "tab-after-colon": (True, skill("license:\tMIT\n")),
    "plain-tag": (True, skill("license: !!str MIT\n")),
    "anchor": (True, skill("license: &a MIT\n")),
    "flow-mapping": (True, skill("metadata: {a: b}\n")),
    "angle-brackets": (False, skill(description="'a <b> c'")),
    "letters-beyond-ascii": (False, skill(name="画")),
    "allowed-tools-as-list": (False, skill("allowed-tools:\n  - Read\n")),
    "metadata-as-text": (False, skill("metadata: x\n")),
    "list-in-metadata": (False, skill("metadata:\n  a:\n    - b\n")),
    "license-as-list": (False, skill("license:\n  - MIT\n")),
    "empty-compatibility": (False, skill("compatibility: ''\n")),
    "mapping-in-metadata": (False, skill("metadata:\n  a:\n    b: c\n")),
    "null-as-description": (False, skill(description="null")),
    "surrogate-escapes": (False, skill(description='"\\ud83d\\ude00"')),
    "unicode-line-break": (False, skill(description="one\u2028two")),
    "deep-nesting": (False, skill("metadata:\n  " + "- " * 40 + "x\n")),
    "large-file": (False, skill(body="x" * (1 << 20))),
    "longer-rule-closes": (False, "---\nname: s\ndescription: d\n----\nbody"),
    "text-after-a-rule": (False, "---\nname: s\ndescription: d\n--- x\nbody"),
    "indented-rule": (False, "---\nname: s\ndescription: d\n ---\nbody"),
}
# Accepted by both, and cut short there: description here, description there.
CUT = {
    "dashes-in-a-value": (skill(description="one --- two"), "one --- two", "one"),
    "dashes-in-a-block": (skill(description="|\n  one\n  ---\n  two"), "one\n---\ntwo", "one"),
}


def judged(tmp_path, text, folder="s"):
    """Return whether each of the two accepts a skill: here, there."""
    home = tmp_path / folder
    home.mkdir()
    (home / "SKILL.md").write_bytes(text if isinstance(text, bytes) else text.encode())
    try:
        there = skills_ref.validate(home) == []
    except Exception:  # noqa: BLE001 - an exception is a refusal too, of a ruder kind
        there = False
    return validate(home).ok, there


@pytest.mark.parametrize("case", AGREED)
def test_both_judge_alike_and_read_the_same(tmp_path, case):
    here, there = judged(tmp_path, AGREED[case])
    assert here == there
    if here:
        read_there, read_here = skills_ref.read_properties(tmp_path / "s"), SkillLoader(tmp_path).skills["s"]
        assert (read_here.name, read_here.description) == (read_there.name, read_there.description)
        assert (read_here.fields.get("metadata") or None) == (read_there.metadata or None)


def test_both_accept_and_refuse_a_good_part_of_the_corpus(tmp_path):
    verdicts = []
    for case, text in AGREED.items():
        (tmp_path / case).mkdir()
        verdicts.append(judged(tmp_path / case, text)[0])
    assert 10 < sum(verdicts) < len(verdicts) - 10


@pytest.mark.parametrize("case", DIFFERENT)
def test_a_documented_difference_is_one(tmp_path, case):
    accepted_here, text = DIFFERENT[case]
    folder = "画" if case == "letters-beyond-ascii" else "s"
    assert judged(tmp_path, text, folder) == (accepted_here, not accepted_here)


@pytest.mark.parametrize("case", CUT)
def test_a_description_with_dashes_is_whole_here_and_cut_there(tmp_path, case):
    text, here, there = CUT[case]
    assert judged(tmp_path, text) == (True, True)
    assert SkillLoader(tmp_path).skills["s"].description == here
    assert skills_ref.read_properties(tmp_path / "s").description == there


def test_both_refuse_what_is_no_text(tmp_path):
    assert judged(tmp_path, b"---\nname: s\ndescription: \xff\n---\n") == (False, False)
    with pytest.raises(UnicodeDecodeError):
        skills_ref.validate(tmp_path / "s")


def test_every_difference_is_a_row_of_the_page():
    rows = re.findall(r"^\| `([a-z-]+)` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert rows == [*DIFFERENT, *CUT]
    agreed = len(AGREED) + 1  # and bytes that are not UTF-8
    assert f"corpus of {agreed + len(rows)} skills" in PAGE.read_text(encoding="utf-8")
    assert f"agree on {agreed} of them" in PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize("home", sorted((Path(__file__).parents[2] / "skills").glob("*/")), ids=lambda home: home.name)
def test_the_packs_own_skills_are_valid_in_both(home):
    assert (validate(home).ok, skills_ref.validate(home)) == (True, [])
