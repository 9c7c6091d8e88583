"""The report page: one file that loads nothing, with every text escaped and the same polygons as the layout."""

import base64
import hashlib
import itertools
import json
import re
from html.parser import HTMLParser

import klayout.db as kdb
import pytest

from layoutkit import technology
from layoutkit.view.drawing_data import drawing_data
from layoutkit.view.report_page import findings_of, report_page, with_times
from report_sample import HOSTILE, inputs_of, nested_layout

GENERIC = technology.load("generic")
VOID = {"meta", "link", "input", "img", "br", "rect"}


def region_of(shapes):
    """Return polygons that the page's data describes, read without the code that wrote them."""
    found = kdb.Region()
    boxes = shapes.get("boxes", [])
    for x, y, width, height in zip(*[iter(boxes)] * 4, strict=True):
        found.insert(kdb.Box(x, y, x + width, y + height))
    for polygon in shapes.get("polygons", []):
        contours = []
        for steps in polygon:
            x = y = 0
            points = []
            for dx, dy in zip(*[iter(steps)] * 2, strict=True):
                x, y = x + dx, y + dy
                points.append(kdb.Point(x, y))
            contours.append(points)
        whole = kdb.Polygon(contours[0])
        for hole in contours[1:]:
            whole.insert_hole(hole)
        found.insert(whole)
    return found


def flattened(data, layer, number):
    """Return the shapes of one layer in a cell of the page's data and below it."""
    cell = data["cells"][number]
    found = region_of(cell["shapes"].get(str(layer), {}))
    for child, turns, mirrored, x, y, *array in cell["instances"]:
        na, nb, ax, ay, bx, by = array or (1, 1, 0, 0, 0, 0)
        inner = flattened(data, layer, child)
        for i in range(na):
            for j in range(nb):
                found += inner.transformed(kdb.Trans(turns, bool(mirrored), x + i * ax + j * bx, y + i * ay + j * by))
    return found


def test_the_data_of_the_drawing_is_the_layout():
    layout, top = nested_layout()
    data = drawing_data(top, GENERIC)
    assert [layer["name"] for layer in data["layers"]] == ["poly", "metal1"]
    assert len(data["cells"]) == 3
    for number, layer in enumerate(data["layers"]):
        info = kdb.LayerInfo(*map(int, layer["gds"].split("/")))
        drawn = kdb.Region(top.begin_shapes_rec(layout.layer(info)))
        assert (flattened(data, number, len(data["cells"]) - 1) ^ drawn).is_empty()
    assert data == drawing_data(top, GENERIC)


def test_the_data_of_the_drawing_does_not_depend_on_the_order_in_which_cells_were_made():
    found = []
    for names in (("A", "B"), ("B", "A")):
        layout = kdb.Layout()
        top, layer = layout.create_cell("TOP"), layout.layer(*GENERIC.layers["poly"].gds)
        cells = {name: layout.create_cell(name) for name in names}
        for name in names:
            cells[name].shapes(layer).insert(kdb.Box(0, 0, 1000, ord(name)))
            top.insert(kdb.CellInstArray(cells[name].cell_index(), kdb.Trans(0, 0)))
        found.append(drawing_data(top, GENERIC))
    assert found[0] == found[1]


def test_an_array_costs_one_entry_however_large_it_is():
    layout, top = nested_layout()
    size = len(json.dumps(drawing_data(top, GENERIC)))
    leaf = layout.cell("LEAF").cell_index()
    top.insert(kdb.CellInstArray(leaf, kdb.Trans(), kdb.Vector(2000, 0), kdb.Vector(0, 2000), 100, 100))
    assert len(json.dumps(drawing_data(top, GENERIC))) < size + 80


class Elements(HTMLParser):
    """Collects the elements of a page with their attributes, and says whether they are properly nested."""

    def __init__(self, text):
        super().__init__()
        self.found, self.open, self.data = [], [], {}
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append((tag, dict(attributes)))

    def handle_startendtag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop()[0] == tag

    def handle_data(self, data):
        tag, attributes = self.open[-1] if self.open else ("", {})
        self.data.setdefault(attributes.get("id") or tag, []).append(data)


def test_a_page_loads_nothing_and_allows_only_its_own_script_and_style():
    text = with_times(report_page(inputs_of()), [])
    page = Elements(text)
    assert page.open == []
    assert "://" not in text
    for tag, attributes in page.found:
        assert all(not name.startswith("on") and name != "style" for name in attributes), (tag, attributes)
        for name in ("src", "href"):
            assert attributes.get(name, "#").startswith(("#", "data:")), (tag, attributes)
    policy = next(each["content"] for _, each in page.found if each.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    for kind, body in (("script", page.data["script"][-1]), ("style", page.data["style"][0])):
        digest = base64.b64encode(hashlib.sha256(body.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy


def test_no_name_from_a_file_becomes_markup():
    """The same elements with a harmless name and with one that closes the script, and the names as they were."""
    plain, hostile = (Elements(with_times(report_page(inputs_of(name=name)), [])) for name in ("amp", HOSTILE))
    assert [tag for tag, _ in hostile.found] == [tag for tag, _ in plain.found]
    data = json.loads("".join(hostile.data["data"]))
    assert data["nets"][0]["name"] == HOSTILE
    assert data["labels"] == [[HOSTILE, 0, 0]]
    assert {each["data-net"] for _, each in hostile.found if "data-net" in each} == {HOSTILE, "in"}
    assert HOSTILE in hostile.data["pre"][0]
    assert hostile.data["title"] == [f"{HOSTILE} in {HOSTILE}: not clean"]


def test_a_page_can_be_read_by_ear_and_by_keyboard():
    page = Elements(with_times(report_page(inputs_of()), [{"name": "drc", "duration_ms": 2.0, "cpu_ms": 1.0}]))
    tags = [tag for tag, _ in page.found]
    assert {"header", "nav", "main", "footer", "aside"} <= set(tags)
    assert tags.count("table") == tags.count("caption")
    levels = [int(tag[1]) for tag in tags if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))
    assert all(each.get("scope") in {"row", "col"} for tag, each in page.found if tag == "th")
    assert all(each.get("alt") for tag, each in page.found if tag == "img")
    assert all("tabindex" in each for _, each in page.found if each.get("class") == "scroll")
    names = {each["id"] for _, each in page.found if "id" in each}
    assert len(names) == len([1 for _, each in page.found if "id" in each])
    for _, each in page.found:
        for name in ("aria-labelledby", "aria-describedby"):
            assert each.get(name, "data") in names
        assert each.get("href", "#data").removeprefix("#") in names or each["href"] == "data:,"
    assert any(each.get("aria-live") == "polite" for _, each in page.found)


def test_only_the_line_with_the_times_differs_between_two_builds():
    page = report_page(inputs_of())
    one, two = (with_times(page, [{"name": "drc", "duration_ms": time, "cpu_ms": time}]) for time in (2.0, 3.0))
    differing = [pair for pair in zip(one.splitlines(), two.splitlines(), strict=True) if pair[0] != pair[1]]
    assert len(differing) == 1
    assert 'id="times"' in differing[0][0]


def test_every_fault_is_a_finding_with_its_rule_and_its_place():
    findings = findings_of(inputs_of(name="met1.2").report)
    assert [(each["rule"], each.get("box")) for each in findings] == [
        ("met1.2", [0.9, 1.9, 1.1, 2.1]),
        ("met1.2", None),  # one that the report counts and does not list
        ("R9", None),
        ("layer", None),
    ]
    mismatch = {"kind": "open", "message": "net a is open", "layout": [{"name": "a", "x": 1.0, "y": 2.0}]}
    nowhere = {**mismatch, "layout": [{"name": "a", "x": None, "y": None}]}
    open_net = {"net": "b", "reason": "no way", "blocked_by": [{"box": [0, 0, 1, 1]}]}
    weak = {"net": "c", "verdict": "failed", "text": "too thin", "box": [1, 1, 2, 2]}
    crooked = {
        "name": "pair",
        "symmetric": False,
        "asymmetries": [{"layer": "met2", "area_um2": 0.25, "place": [3.0, 4.0]}],
    }
    findings = findings_of(
        {
            "lvs": {"mismatches": [mismatch, nowhere]},
            "routing": {
                "failed": [open_net],
                "single_cuts": [{"cut": "via", "position": [5.0, 6.0], "reason": "no room"}],
            },
            "currents": {"nets": [weak, {"net": "d", "verdict": "passed"}]},
            "modules": [crooked, {**crooked, "symmetric": True}],
        }
    )
    assert [(each["rule"], each["fault"], each.get("box")) for each in findings] == [
        ("LVS open", True, [0.9, 1.9, 1.1, 2.1]),
        ("LVS open", True, None),
        ("open b", True, [0, 0, 1, 1]),
        ("current c", True, [1, 1, 2, 2]),
        ("single via", False, [4.9, 5.9, 5.1, 6.1]),
        ("asymmetry", False, [2.9, 3.9, 3.1, 4.1]),
    ]


@pytest.mark.parametrize(
    ("faults", "left", "words"), [((), [], "clean"), (("x",), [], "not clean"), ((), ["lvs"], "not finished")]
)
def test_the_verdict_is_never_better_than_the_report(faults, left, words):
    report = {**inputs_of().report, "remaining_stages": left}
    assert f"<title>amp in amp: {words}</title>" in report_page(inputs_of(report=report, faults=faults))


@pytest.mark.parametrize(
    ("severities", "said"),
    [
        ((), "No faults."),
        (("should",), "No faults."),
        (("must", "should"), "No faults, but the design review says 1 must."),
        (("must", "must"), "No faults, but the design review says 2 musts."),
    ],
)
def test_a_layout_without_faults_says_how_many_musts_the_review_has(severities, said):
    findings = [{"id": "rail", "severity": severity, "why": "x", "place": [0, 0, 1, 1]} for severity in severities]
    review = {"would_sign": False, "must": severities.count("must"), "should": severities.count("should")}
    report = {**inputs_of().report, "drc": {}, "review": {**review, "findings": findings}}
    assert f">{said}</p>" in report_page(inputs_of(report=report, faults=()))
