"""The pictures in the skills' assets show what the tools draw today, and each manual says what its pictures mean."""

import re
import struct

import klayout.db as kdb
import pytest

from layoutkit.technology import load
from layoutkit.view.render import CHARACTER_WIDTH
from skill_pictures import DIGEST, PICTURES, SKILLS, TECHNOLOGY, answer_of, digest_of, drawing_of, picture_of
from skillpack import load_skill
from skillpack.copies.skill_copy import own_files
from skillpack.hosts.mcp.skill_files import served_files

EMBEDDED = re.compile(r"^!\[([^\]\n]+)\]\((\S+)\)$", re.MULTILINE)
AREA = re.compile(r"(\d+) um2")
ROW = re.compile(r"^\| `([AB/]+)` \| (\d) \| ([\d.]+)[^|]* \| (\d+) \|$", re.MULTILINE)


def noted_digest(name):
    return re.search(rb"tEXt%s\0([0-9a-f]{64})" % DIGEST.encode(), (SKILLS / name).read_bytes())[1].decode()


def manual_of(skill):
    """Return the text of a skill's body and of its pages."""
    pages = (SKILLS / skill / "SKILL.md", *sorted((SKILLS / skill / "references").glob("*.md")))
    return "\n".join(page.read_text(encoding="utf-8") for page in pages)


def meanings(skill):
    """Return the alternative text of each picture in the manual of ``skill``, by the picture's name."""
    found = [(f"{skill}/{file.removeprefix('../')}", meaning) for meaning, file in EMBEDDED.findall(manual_of(skill))]
    assert len(found) == len(dict(found))
    return dict(found)


def letters_of_rows(drawing):
    """Return the labels of the devices' gates row by row, the lowest first, as a pattern has them."""
    rows = {}
    texts = drawing.cell.shapes(drawing.layout.layer(*load(TECHNOLOGY).spec("text").gds))
    for text in sorted((shape.text for shape in texts.each(kdb.Shapes.STexts)), key=lambda text: (text.y, text.x)):
        rows.setdefault(text.y, []).append(text.string)
    return "/".join("".join(row).replace("x", "") for row in rows.values())


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_shows_what_its_tool_draws_today(name, tmp_path):
    drawing = drawing_of(name, tmp_path)
    assert noted_digest(name) == digest_of(name, drawing), "the picture is stale: run make pictures and look at it"
    meaning = meanings(name.partition("/")[0])[name]
    assert [int(area) for area in AREA.findall(meaning)] == pytest.approx(drawing.areas, rel=0.1)
    if "{pattern}" in PICTURES[name].title:
        fingers = letters_of_rows(drawing)
        patterns = {fingers, re.sub(r"([A-Z])\1", r"\1", fingers)}  # a unit has one finger or two
        assert patterns & set(re.split(r"[ ,]", drawing.title)) & set(re.split(r"[ :]", meaning))


def test_every_picture_is_made_by_the_program_and_explained_once_in_its_manual():
    """In one line of text, so that a reader who does not see the picture learns the same."""
    assert {path.relative_to(SKILLS).as_posix() for path in SKILLS.glob("*/*/*.png")} == set(PICTURES)
    explained = {}
    for skill in {name.partition("/")[0] for name in PICTURES}:
        explained |= meanings(skill)
    assert set(explained) == set(PICTURES)
    assert min(len(meaning.split()) for meaning in explained.values()) >= 15


@pytest.mark.parametrize("skill", sorted({name.partition("/")[0] for name in PICTURES}))
def test_a_copy_of_a_skill_has_its_pictures_and_a_host_serves_them(skill):
    pictures = {file.partition("/")[2] for file in PICTURES if file.startswith(f"{skill}/")}
    assert pictures <= set(own_files(SKILLS / skill)[0])
    assert pictures <= {file.path for file in served_files(load_skill(SKILLS / skill / "SKILL.md"))}


def test_the_offsets_and_areas_by_which_a_manual_compares_patterns_are_those_of_the_tools(tmp_path):
    rows = ROW.findall(manual_of("common-centroid-pair"))
    assert {pattern for pattern, *_ in rows} == {"ABBA", "AABB", "AB/BA"}
    for pattern, dummies, offset, area in rows:
        where = {"technology": TECHNOLOGY, "workspace": str(tmp_path)}
        (pair,) = PICTURES["common-centroid-pair/assets/one-row.png"].calls
        changed = {**pair, **where, "arrangement": pattern, "dummies": int(dummies), "check": False}
        box = answer_of(SKILLS / "common-centroid-pair", "layout.create_common_centroid_pair", changed)["bounding_box"]
        assert int(area) == pytest.approx(box["width"] * box["height"], rel=0.1)
        groups = {**where, "matched_groups": [["A", "B"]]}
        (group,) = answer_of(SKILLS / "layout-metrics", "eval.compute_metrics", groups)["matched_groups"]
        assert float(offset) == pytest.approx(abs(group["predicted_offsets"][0]["value"]), rel=0.1, abs=0.05)


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_small(name):
    png = (SKILLS / name).read_bytes()
    width, height = struct.unpack(">II", png[16:24])
    assert all(side <= most for side, most in zip((width, height), PICTURES[name].size, strict=True))
    assert max(width, height) <= 640
    assert len(PICTURES[name].title) <= PICTURES[name].size[0] / CHARACTER_WIDTH - 2
    assert len(png) <= 25_000


def test_a_shape_moved_by_a_grid_step_makes_a_picture_stale_and_a_shape_cut_in_two_does_not(tmp_path):
    name = "mos-pcell/assets/dummies.png"
    drawing = drawing_of(name, tmp_path)
    shapes = drawing.cell.shapes(drawing.layout.layer(*load(TECHNOLOGY).spec("poly").gds))
    gate = next(shapes.each()).polygon
    box, five = gate.bbox(), kdb.Vector(0, 5)
    lower = kdb.Box(box.left, box.bottom, box.right, box.center().y)
    former, digest = kdb.Region(shapes), digest_of(name, drawing)
    for region, stale in (
        ((former - kdb.Region(lower)) + (former & kdb.Region(lower)), False),
        (former.moved(five), True),
        (former - kdb.Region(gate), True),
    ):
        shapes.clear()
        shapes.insert(region)
        assert (digest_of(name, drawing) != digest) is stale


def test_the_same_drawing_gives_the_same_bytes():
    name = "mos-pcell/assets/dummies.png"
    assert picture_of(name) == picture_of(name)
