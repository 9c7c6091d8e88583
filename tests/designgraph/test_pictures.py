"""Pictures (S2.6): what they show, that nothing in a graph can break out of them, and that a browser draws them."""

import json
import re
from html.parser import HTMLParser
from itertools import pairwise
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from designgraph import GraphError
from designgraph.exchange import write_text
from designgraph.pictures import BOUNDS, GAP_Y, GraphSelection, arrange, escaped, picture

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = (
    "</script><script>document.title='broken'</script>",
    '"><img src=x onerror="document.title=\'broken\'">',
    "<!--<script>",
    "]]>",
    "javascript:alert(1)",
    '"]; click n0 href "javascript:alert(1)"',
    "`code` #quot; ${document.title='broken'} {{title}}",
    "\x01\x1b[31m\u2028\u2029\ufffe\U0001f600",
    "名称\N{RIGHT-TO-LEFT OVERRIDE}evil",
)


@pytest.fixture
def uart(graph):
    """A small design with every kind of thing to draw."""
    nodes = [
        {"id": "plan", "type": "Plan", "properties": {"description": "Send bytes & be done"}},
        {"id": "state", "type": "Signal", "properties": {"width": 2}},
        {"id": "tx", "type": "Signal", "properties": {"width": 1, "description": "发送"}},
        {"id": "end", "type": "SignalExample", "properties": {}},
        {"id": "t0", "type": "StateTransition", "properties": {"from": "IDLE", "to": "SEND", "condition": "start"}},
        {"id": "alone", "type": "Decision", "properties": {"text": "x" * 100}},
    ]
    relations = [
        ("tx", "plan", "IMPLEMENTS"),
        ("state", "plan", "IMPLEMENTS"),
        ("state", "t0", "STATETRANSITION"),
        ("tx", "end", "EXAMPLES"),
        ("end", "tx", "DEPENDS_ON"),
        ("tx", "plan", "PART_OF"),
        ("tx", "tx", "DRIVES"),
    ]
    graph.init("uart", nodes, [dict(zip(("from", "to", "type"), r, strict=True)) for r in relations])
    return graph


@pytest.fixture
def hostile(graph):
    nodes = [{"id": "n", "type": "Signal", "properties": {"description": "plain"}}]
    nodes += [
        {"id": f"n{i}", "type": "Signal", "properties": {"description": text, text: text}}
        for i, text in enumerate(HOSTILE)
    ]
    graph.init("hostile", nodes, [{"from": "n", "to": f"n{i}", "type": "DRIVES"} for i in range(len(HOSTILE))])
    return graph


def drawn(graph, graph_id, form, **selection):
    return picture(graph, graph_id, form, GraphSelection(**{"max_nodes": 0, **selection}))


def test_mermaid_has_every_node_and_relation(uart):
    text, shown = drawn(uart, "uart", "mermaid")
    lines = text.splitlines()
    assert lines[0] == "flowchart LR"
    assert sum("[" in line for line in lines) == 6
    assert sum("-->" in line for line in lines) == 7
    assert '  n5["tx<br/>#21457;' not in text
    assert any(line.endswith(":::type_Signal") and '"tx<br/>发送"' in line for line in lines)
    assert "IDLE #8594; SEND: start" in text
    assert (len(shown.nodes), shown.left_out) == (6, "")


def test_mermaid_stays_within_the_bounds_of_its_readers(graph):
    nodes = [{"id": f"n{i}", "type": "Signal"} for i in range(400)]
    relations = [{"from": f"n{i}", "to": f"n{j}", "type": "CONNECTS"} for i in range(40) for j in range(40, 70)]
    graph.init("g", nodes, relations)
    text, shown = drawn(graph, "g", "mermaid", max_nodes=500)
    assert text.count("-->") == 500
    assert shown.left_out == "0 of 400 nodes and 700 of 1200 relations are not shown"
    assert f"%% {shown.left_out}" in text
    assert len(drawn(graph, "g", "mermaid")[1].nodes) == 100
    with pytest.raises(GraphError, match="at most 500 nodes"):
        drawn(graph, "g", "mermaid", max_nodes=501)


@pytest.mark.parametrize("text", HOSTILE)
def test_a_mermaid_label_cannot_be_left(text):
    label = escaped(text)
    assert re.fullmatch(r"(?:[^\"`<>\[\]{}|;&\\#\n\x00-\x1f]|#\d+;)*", label)


def test_svg_is_xml_and_shows_texts_as_they_are(uart):
    root = ET.fromstring(drawn(uart, "uart", "svg")[0])  # noqa: S314 - made here
    texts = [element.text for element in root.iter(f"{SVG}text")]
    assert {"plan", "Send bytes & be done", "tx", "发送", "IDLE → SEND: start", "IMPLEMENTS, PART_OF", "Signal"} <= set(
        texts
    )
    assert f"{'x' * 39}…" in texts
    paths = [element for element in root.iter(f"{SVG}path") if element.get("marker-end")]
    assert len(paths) == 6, "one arrow for each pair of nodes"


def test_nothing_in_a_graph_breaks_out_of_an_svg(hostile):
    root = ET.fromstring(drawn(hostile, "hostile", "svg")[0])  # noqa: S314 - made here
    names = {element.tag.removeprefix(SVG) for element in root.iter()}
    assert names == {"svg", "title", "style", "defs", "marker", "path", "rect", "text", "g"}
    assert not [a for e in root.iter() for a in e.attrib if a.startswith("on") or "href" in a]


class _Elements(HTMLParser):
    def __init__(self):
        super().__init__()
        self.found = []
        self.texts = {}

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.texts.setdefault(self.found[-1][0] if self.found else "", []).append(data)


@pytest.mark.parametrize("name", ["uart", "hostile"])
def test_a_page_is_self_contained_and_nothing_breaks_out_of_it(request, name):
    text = drawn(request.getfixturevalue(name), name, "html")[0]
    reader = _Elements()
    reader.feed(text)
    assert [tag for tag, _ in reader.found].count("script") == 2
    assert not [tag for tag, _ in reader.found if tag in ("img", "link", "iframe", "object", "base")]
    addresses = [a[n] for _, a in reader.found for n in ("src", "href", "xlink:href") if n in a]
    assert addresses == []
    assert set(re.findall(r"https?://[^\s\"'<)]+", text)) <= {"http://www.w3.org/2000/svg"}
    policy = next(a["content"] for tag, a in reader.found if a.get("http-equiv") == "Content-Security-Policy")
    assert "default-src 'none'" in policy
    assert "script-src 'sha256-" in policy
    data = json.loads(text.split('type="application/json">', 1)[1].split("</script>", 1)[0])
    assert len(data["nodes"]) == len(drawn(request.getfixturevalue(name), name, "html")[1].nodes)


def test_what_the_page_holds_is_the_graph(hostile):
    text = drawn(hostile, "hostile", "html")[0]
    data = json.loads(text.split('type="application/json">', 1)[1].split("</script>", 1)[0])
    properties = {node["id"]: node["properties"] for node in data["nodes"]}
    for index, hostile_text in enumerate(HOSTILE):
        assert properties[f"n{index}"] == {"description": hostile_text, hostile_text: hostile_text}


def test_a_picture_can_show_what_lies_around_a_node_or_some_types(uart):
    assert [n.id for n in drawn(uart, "uart", "svg", focus="tx", depth=1)[1].nodes] == ["end", "plan", "tx"]
    assert [n.id for n in drawn(uart, "uart", "svg", types={"Signal"})[1].nodes] == ["state", "tx"]
    near = drawn(uart, "uart", "svg", focus="t0", depth=3, max_nodes=3)[1]
    assert [n.id for n in near.nodes] == ["plan", "state", "t0"]
    assert near.left_out == "1 of 4 nodes and 3 of 5 relations are not shown"
    with pytest.raises(GraphError, check=lambda error: error.code == "NODE_NOT_FOUND"):
        drawn(uart, "uart", "svg", focus="ghost")
    with pytest.raises(GraphError, match="not of the types"):
        drawn(uart, "uart", "svg", focus="tx", types={"Plan"})


@pytest.mark.parametrize("form", sorted(BOUNDS))
def test_an_empty_graph_has_a_picture_too(graph, form):
    graph.init("nothing")
    text, shown = drawn(graph, "nothing", form)
    assert text
    assert shown.nodes == ()


@pytest.mark.parametrize("form", sorted(BOUNDS))
def test_the_same_graph_gives_the_same_bytes(uart, open_store, form):
    assert drawn(uart, "uart", form)[0] == drawn(open_store(), "uart", form)[0]


EDGES = st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)), max_size=30)


@settings(max_examples=60, deadline=None)
@given(EDGES, st.lists(st.integers(20, 200), min_size=12, max_size=12))
def test_no_two_boxes_of_a_layout_touch(edges, widths):
    sizes = {f"n{i}": (float(width), 20.0 + width % 3 * 10) for i, width in enumerate(widths)}
    drawing = arrange(sizes, [(f"n{a}", f"n{b}") for a, b in edges])
    boxes = list(drawing.boxes.values())
    assert set(drawing.boxes) == set(sizes)
    for i, a in enumerate(boxes):
        assert (a.width, a.height) == list(sizes.values())[int(list(drawing.boxes)[i][1:])]
        assert a.x >= -1e-6
        assert a.y >= -1e-6
        assert a.x + a.width <= drawing.width + 1e-6
        for b in boxes[:i]:
            apart_x = a.x >= b.x + b.width or b.x >= a.x + a.width
            apart_y = a.y >= b.y + b.height + GAP_Y - 1e-6 or b.y >= a.y + a.height + GAP_Y - 1e-6
            assert apart_x or apart_y


def test_a_chain_runs_from_left_to_right_and_a_long_edge_bends_around():
    sizes = dict.fromkeys("abcd", (50.0, 20.0))
    drawing = arrange(sizes, [("a", "b"), ("b", "c"), ("c", "d"), ("a", "d"), ("d", "b")])
    lefts = [drawing.boxes[name].x for name in "abcd"]
    assert all(first + 50 < second for first, second in pairwise(lefts))
    assert len(drawing.bends["a", "d"]) == 2
    (x1, _), (x2, _) = drawing.bends["a", "d"]
    assert lefts[0] < x1 < x2 < lefts[3]
    assert len(drawing.bends["d", "b"]) == 1


def browse(browser, page, fragment=""):
    """Return what Chromium makes of a page: its elements after its script has run."""
    browser.visit(f"{page.as_uri()}{fragment}")
    browser.settle()
    return browser.elements()


def test_chromium_draws_the_whole_graph(uart, tmp_path, browser):
    page = tmp_path / "uart.html"
    page.write_text(drawn(uart, "uart", "html")[0], encoding="utf-8")
    made = browse(browser, page)
    assert sorted(re.findall(r'data-id="(\w+)"', made)) == ["alone", "end", "plan", "state", "t0", "tx"]
    assert "6 of 6 nodes, 6 arrows" in made
    assert "Signal (2)" in made


def test_chromium_shows_a_neighbourhood_and_its_properties(uart, tmp_path, browser):
    page = tmp_path / "uart.html"
    page.write_text(drawn(uart, "uart", "html")[0], encoding="utf-8")
    made = browse(browser, page, "#t0")
    assert sorted(re.findall(r'data-id="(\w+)"', made)) == ["plan", "state", "t0"]
    assert re.search(r'class="node chosen"[^>]*data-id="t0"', made)
    assert "<dt>condition</dt><dd>start</dd>" in made


def test_chromium_finds_what_is_searched(uart, tmp_path, browser):
    """The page's own policy forbids a second script, so that this one is put into a copy without the policy."""
    text = drawn(uart, "uart", "html")[0]
    text = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", text)
    script = "const s = document.getElementById('search'); s.value = '发送'; s.dispatchEvent(new Event('input'));"
    page = tmp_path / "search.html"
    page.write_text(text.replace("</body>", f"<script>{script}</script></body>"), encoding="utf-8")
    made = browse(browser, page)
    assert re.findall(r'class="([^"]*)"[^>]*data-id="tx"', made) == ["node found"]
    assert re.findall(r'class="([^"]*)"[^>]*data-id="plan"', made) == ["node dim"]
    assert ">1 found<" in made


def test_chromium_runs_nothing_that_a_graph_holds(hostile, tmp_path, browser):
    page = tmp_path / "hostile.html"
    text = drawn(hostile, "hostile", "html")[0]
    page.write_text(text.replace("</body>", "<script>document.title='broken'</script></body>"), encoding="utf-8")
    made = browse(browser, page, "#n0")
    assert "<title>hostile - design graph</title>" in made
    assert len(set(re.findall(r'data-id="(\w+)"', made))) == len(HOSTILE) + 1
    assert "<img" not in made.replace("&lt;img", "")


@pytest.mark.parametrize("form", ["svg", "html"])
def test_chromium_paints_the_picture(uart, tmp_path, browser, form):
    page = tmp_path / f"uart.{form}"
    page.write_text(drawn(uart, "uart", form)[0], encoding="utf-8")
    shot = tmp_path / "shot.png"
    browse(browser, page)
    browser.screenshot(shot)
    blank = tmp_path / "blank.html"
    blank.write_text("<!DOCTYPE html><title>blank</title>")
    blank_shot = tmp_path / "blank.png"
    browse(browser, blank)
    browser.screenshot(blank_shot)
    assert shot.stat().st_size > 3 * blank_shot.stat().st_size


def test_a_picture_cannot_be_written_in_place_of_a_folder(graph, tmp_path):
    for folder in ("/", str(tmp_path)):
        with pytest.raises(GraphError) as caught:
            write_text(graph.store.path, folder, "text")
        assert caught.value.details["param_name"] == "output_path"
