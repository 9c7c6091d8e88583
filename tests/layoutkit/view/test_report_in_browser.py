"""The report page in headless Chromium: it opens without a message, and pointer, keys, print and both themes work.

Its screenshots go to the folder that the environment's ``SCREENSHOTS`` names, which CI keeps.
"""

import copy
import json
import os
import re
from pathlib import Path

import klayout.db as kdb
import pytest

from layoutkit.view.report_page import report_page, with_times
from report_sample import HOSTILE, inputs_of, nested_layout

OTA = Path(__file__).resolve().parents[3] / "skills/netlist-to-gds/assets/ota_5t.spice"
DATA = re.compile(r'(<script id="data" type="application/json">)(.*?)(</script>)')
COPIES = 27  # of 6 devices: 162
MOST_BYTES = 5_000_000
COLORS = ["text", "dim", "good", "bad", "warn", "accent", "card", "page", "soft", "good-soft", "bad-soft", "warn-soft"]


@pytest.fixture(scope="module")
def ota(finished_layout):
    """Return the page of the demo."""
    return finished_layout(OTA, "sky130A")[1] / "report.html"


@pytest.fixture
def page(browser, ota):
    """Return the demo's page, opened anew."""
    browser.open(ota)
    return browser


@pytest.fixture
def keep(tmp_path):
    """Return a function that gives the path for a screenshot."""
    folder = Path(os.environ.get("SCREENSHOTS", tmp_path)).absolute()
    return lambda name: folder / name


def at_net(page, name):
    """Return where on the screen the first box of a net on its topmost layer with one is."""
    data = data_of(page)
    order = [layer["name"] for layer in data["layers"]]
    net = next(net for net in data["nets"] if net["name"] == name)
    layer = max((name for name, drawn in net["shapes"].items() if drawn.get("boxes")), key=order.index)
    x, y, w, h = net["shapes"][layer]["boxes"][:4]
    left, bottom, right, top = data["box"]
    frame = frame_of(page)
    scale = min((frame[2] - 28) / (right - left), (frame[3] - 28) / (top - bottom))
    shown = frame[0] + frame[2] / 2 + (x + w / 2 - (left + right) / 2) * scale
    return shown, frame[1] + frame[3] / 2 - (y + h / 2 - (bottom + top) / 2) * scale


def frame_of(page):
    """Return left, top, width, height of the drawing on the screen."""
    return page.run("(b => [b.x, b.y, b.width, b.height])(document.getElementById('over').getBoundingClientRect())")


def data_of(page):
    return json.loads(page.run("document.getElementById('data').textContent"))


def text(page, name):
    return page.run(f"document.getElementById('{name}').textContent")


def pixels(page):
    """Return how many pixels of the layers' canvas are not background."""
    return page.run(
        "(() => { const c = document.getElementById('base');"
        "const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;"
        "let n = 0; for (let i = 0; i < d.length; i += 4) n += d[i] !== d[0] || d[i + 1] !== d[1] || d[i + 2] !== d[2];"
        "return n; })()"
    )


def test_the_page_opens_without_a_message_and_asks_for_nothing(page):
    assert page.problems == []
    assert [url.partition(":")[0] for url in page.requests] == ["file", "data"]  # itself and its picture
    assert pixels(page) > 20_000


@pytest.mark.parametrize("layer", ["poly", "metal1"])
def test_what_is_drawn_is_what_klayout_says_is_there(browser, tmp_path, layer):
    """At 60 x 60 places, two pixels off all edges. Shapes overlap, have holes and are placed turned and mirrored."""
    path = tmp_path / "sample.html"
    path.write_text(with_times(report_page(inputs_of()), []), encoding="utf-8")
    browser.open(path)
    browser.run("document.getElementById('layers-none').click()")
    browser.run(f"document.querySelector('[data-layer={layer}]').click()")
    browser.settle()
    layout, top = nested_layout()
    drawn = kdb.Region(top.begin_shapes_rec(layout.layer({"poly": 2, "metal1": 4}[layer], 0))).merged()
    width, height = browser.run("(c => [c.width, c.height])(document.getElementById('base'))")
    box = top.bbox()
    scale = min((width - 28) / box.width(), (height - 28) / box.height())
    places = [(x, y) for x in range(14, width, width // 60) for y in range(14, height, height // 60)]
    seen = browser.run(
        "(places => { const c = document.getElementById('base');"
        "const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;"
        "return places.map(([x, y]) => { const i = 4 * (y * c.width + x);"
        f"return d[i] !== 255 || d[i + 1] !== 255 || d[i + 2] !== 255; }}); }})({json.dumps(places)})"
    )
    near = round(2 / scale)
    judged = {True: 0, False: 0}
    for (x, y), filled in zip(places, seen, strict=True):
        place = kdb.Point(
            round(box.center().x + (x + 0.5 - width / 2) / scale),
            round(box.center().y - (y + 0.5 - height / 2) / scale),
        )
        around = kdb.Region(kdb.Box(place, place).enlarged(near, near))
        covered = (around & drawn).area() / around.area()
        if covered in {0, 1}:
            judged[filled] += 1
            assert filled == (covered == 1), place
    assert min(judged.values()) > 50


def test_the_policy_stops_a_script_that_was_put_into_the_page(browser, ota, tmp_path):
    spoilt = tmp_path / "spoilt.html"
    spoilt.write_text(
        ota.read_text(encoding="utf-8").replace("</body>", "<script>document.title = 'spoilt'</script></body>")
    )
    browser.problems.clear()
    browser.open(spoilt)
    assert browser.run("document.title") == "ota_5t in sky130A: clean, complete with replaced devices"
    assert any("Content Security Policy" in problem for problem in browser.problems)


def test_the_pointer_names_the_net_and_a_click_highlights_it(page, keep):
    x, y = at_net(page, "vdd")
    page.pointer("mouseMoved", x, y)
    page.settle()
    assert text(page, "status").startswith("net vdd on met")
    page.click(x, y)
    assert page.run("document.getElementById('drawing').dataset.chosen") == "vdd"
    assert text(page, "chosen") == "Net vdd: M3.s, M3.b, M4.s, M4.b"
    pressed = page.run("[...document.querySelectorAll('[aria-pressed=true]')].map((each) => each.dataset.net)")
    assert set(pressed) == {"vdd"}
    page.screenshot(keep("ota-net-chosen.png"))
    place = page.run("document.getElementById('over').getBoundingClientRect().x") + 8
    page.click(place, y)
    assert page.run("document.getElementById('drawing').dataset.chosen") == ""


def test_a_device_is_found_by_its_name_and_named_under_the_pointer(page):
    page.run("(f => { f.value = 'M1'; f.dispatchEvent(new Event('change')); })(document.getElementById('find'))")
    page.settle()
    assert page.run("document.getElementById('drawing').dataset.chosen") == "M1"
    assert text(page, "chosen") == "Device M1 (nfet_01v8): d=tmir, g=inp, s=tail, b=vss"
    page.run("(f => { f.value = 'M99'; f.dispatchEvent(new Event('change')); })(document.getElementById('find'))")
    assert "no net and no device named M99" in text(page, "status")


def test_keys_move_zoom_choose_and_clear(page, keep):
    page.run("document.getElementById('drawing').focus()")
    whole = pixels(page)
    page.press("ArrowLeft")
    page.press("ArrowUp")
    page.press("+")
    page.press("+")
    assert pixels(page) != whole
    page.screenshot(keep("ota-keyboard.png"))
    page.press("0")
    assert pixels(page) == whole
    chosen = "document.getElementById('drawing').dataset.chosen"
    for _ in range(12):  # from the middle down to the first shape
        page.press("Enter")
        if page.run(chosen):
            break
        page.press("ArrowDown")
    assert page.run(chosen)
    assert text(page, "status").startswith("net ") or text(page, "status").startswith("chosen: ")
    page.press("Escape")
    assert page.run(chosen) == ""


def test_the_tab_key_reaches_everything_in_the_order_of_the_page(page):
    page.run("document.activeElement.blur()")
    reached = []
    for _ in range(24):
        page.press("Tab")
        reached.append(page.run("(e => e.id || e.textContent || e.dataset.layer || e.tagName)(document.activeElement)"))
        outline = page.run("getComputedStyle(document.activeElement).outlineStyle")
        assert outline != "none", reached[-1]
    order = ["Skip to the drawing", "Layout", "theme", "zoom-in", "zoom-out", "fit", "find", "drawing", "layers-all"]
    assert [name for name in reached if name in order] == order


def test_a_layer_that_is_switched_off_is_neither_drawn_nor_named(page):
    whole = pixels(page)
    x, y = at_net(page, "vdd")
    page.run("document.getElementById('layers-none').click()")
    page.settle()
    assert pixels(page) == 0
    page.pointer("mouseMoved", x, y)
    page.settle()
    assert not text(page, "status").startswith("net")
    page.run("document.querySelector('[data-layer=met1]').click()")
    page.settle()
    assert 0 < pixels(page) < whole
    page.run("document.getElementById('layers-all').click()")
    page.settle()
    assert pixels(page) == whole


def test_a_finding_is_clicked_and_the_drawing_goes_there(browser, tmp_path, keep):
    faulty = tmp_path / "faulty.html"
    faulty.write_text(with_times(report_page(inputs_of(name="M1.space")), []), encoding="utf-8")
    browser.open(faulty)
    browser.run("document.querySelector('[data-finding]').click()")
    browser.settle()
    assert browser.run("document.getElementById('drawing').dataset.marked") == "M1.space"
    assert text(browser, "status") == "M1.space: M1.space (0.1 um)"
    browser.screenshot(keep("finding.png"))


def test_hostile_names_are_shown_and_never_run(browser, tmp_path):
    path = tmp_path / "hostile.html"
    path.write_text(with_times(report_page(inputs_of(name=HOSTILE)), []), encoding="utf-8")
    browser.problems.clear()
    browser.open(path)
    assert browser.problems == []
    assert browser.run("document.querySelectorAll('img').length") == 1  # the picture for print
    assert browser.run("document.querySelector('[data-net]').textContent") in {HOSTILE, "in"}
    browser.run("document.querySelectorAll('button[data-device]')[0].click()")
    assert text(browser, "chosen").startswith(f"Device M{HOSTILE} ")


@pytest.mark.parametrize("width", [390, 1400, 2200])
def test_nothing_is_wider_than_the_screen_in_either_theme(page, width, keep):
    page.size(width, 900)
    for theme in ("light", "dark"):
        page.prefer(theme)
        page.settle()
        assert page.run("document.documentElement.scrollWidth") <= width
        page.screenshot(keep(f"ota-{theme}-{width}.png"))
        ground = page.run("getComputedStyle(document.body).backgroundColor")
        assert (int(re.search(r"\d+", ground)[0]) > 128) is (theme == "light")
    page.run("(t => { t.value = 'light'; t.dispatchEvent(new Event('change')); })(document.getElementById('theme'))")
    assert page.run("getComputedStyle(document.body).backgroundColor") != ground
    page.run("(t => { t.value = 'auto'; t.dispatchEvent(new Event('change')); })(document.getElementById('theme'))")


def test_text_has_contrast_in_both_themes(page):
    """WCAG 2.2 AA: 4.5 to 1 for text."""
    for theme in ("light", "dark"):
        page.prefer(theme)
        page.settle()
        colors = page.run(
            f"Object.fromEntries({json.dumps(COLORS)}.map(name => "
            "[name, getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim()]))"
        )
        for name in ("text", "dim", "good", "bad", "warn", "accent"):
            for ground in ("card", "page", "soft", *([f"{name}-soft"] if f"{name}-soft" in colors else [])):
                assert contrast(colors[name], colors[ground]) >= 4.5, (theme, name, ground)


def contrast(one, other):
    def luminance(color):
        parts = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    dark, bright = sorted((luminance(one), luminance(other)))
    return (bright + 0.05) / (dark + 0.05)


def test_print_shows_the_picture_and_every_section(page, keep):
    page.prefer("dark")  # paper is white all the same
    page.pdf(keep("ota.pdf"))
    page.send("Emulation.setEmulatedMedia", media="print")
    page.settle()
    assert page.run("document.querySelector('.printed').getBoundingClientRect().height") > 100
    assert page.run("getComputedStyle(document.querySelector('.viewer')).display") == "none"
    assert page.run("[...document.querySelectorAll('.scroll')].every(e => e.scrollHeight <= e.clientHeight + 2)")
    assert page.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    page.send("Emulation.setEmulatedMedia", media="")
    assert page.problems == []


def multiplied(page, copies):
    """Return a page whose cell is an array of ``copies``, with as many nets, devices, findings and rows."""
    data = json.loads(DATA.search(page)[2])
    left, _, right, _ = data["box"]
    step = right - left + 1000
    data["cells"].append({"shapes": {}, "instances": [[len(data["cells"]) - 1, 0, 0, 0, 0, copies, 1, step, 0, 0, 0]]})
    data["box"][2] += step * (copies - 1)
    once = {name: data[name] for name in ("nets", "devices", "findings")}
    for name in once:
        data[name] = []
    for number in range(copies):
        shifted = copy.deepcopy(once)
        for net in shifted["nets"]:
            net["name"] = f"X{number}.{net['name']}"
            for shapes in net["shapes"].values():
                shapes["boxes"] = [v + number * step * (i % 4 == 0) for i, v in enumerate(shapes.get("boxes", ()))]
                for polygon in shapes.get("polygons", ()):
                    for contour in polygon:
                        contour[0] += number * step
        for device in shifted["devices"]:
            device["name"] = f"X{number}.{device['name']}"
            device["boxes"] = [v + number * step * (i % 4 == 0) for i, v in enumerate(device["boxes"])]
        for name, entries in shifted.items():
            data[name] += entries
    text = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    page = DATA.sub(lambda found: found[1] + text + found[3], page)
    return re.sub(r"<tbody>(.*?)</tbody>", lambda rows: f"<tbody>{rows[1] * copies}</tbody>", page, flags=re.DOTALL)


def test_a_circuit_of_162_devices_is_small_and_opens_with_the_work_of_one_cell(page, browser, ota, tmp_path, keep):
    """Counted, not timed: the shapes that the script traces, and the frames until the drawing stands."""
    traced = int(page.run("document.documentElement.dataset.traced"))
    large = tmp_path / "large.html"
    large.write_text(multiplied(ota.read_text(encoding="utf-8"), COPIES), encoding="utf-8")
    assert large.stat().st_size < MOST_BYTES
    browser.open(large)
    assert int(browser.run("document.documentElement.dataset.traced")) == traced
    assert int(browser.run("document.documentElement.dataset.frames")) <= 3
    assert browser.problems == []
    x, y, width, height = frame_of(browser)
    browser.pointer("mouseMoved", x + width / 2, y + height / 2)
    browser.settle()
    browser.screenshot(keep("large.png"))
