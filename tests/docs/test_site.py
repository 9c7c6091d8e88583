"""The documentation site: built without a warning, complete, without anything from another host, its commands run."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
from html import unescape
from pathlib import Path

import pytest

from forked import BIN, programs
from patience import WATCHDOG_S, eventually

pytest.importorskip("mkdocs", reason="skipped: needs the extra docs")
sys.path.insert(0, str(Path(__file__).parents[1]))
import site_pages

ROOT = Path(__file__).parents[2]
BOARD = ROOT / "tests" / "bench" / "board"
FENCED = re.compile(r"^```(bash|sh|console)\n(.*?)^```", re.MULTILINE | re.DOTALL)
LOADED = re.compile(
    r"""(?:<(?:script|img|iframe|source)[^>]*\ssrc|<link[^>]*\shref|url)[=(]["']?(?:https?:)?//[^"')]+"""
)
# Who runs the commands of a page, by its place in the repository.
RUN_BY = {
    "README.md": "test_site.py",
    "README.zh.md": "test_site.py",
    "references/hosts.md": "test_site.py",
    "references/writing-skills.md": "test_site.py",
    "references/pipelines.md": "test_registry_pages.py",
    "references/registry.md": "test_registry_pages.py",
    "references/editors": "test_tutorials.py",
    "references/tutorials": "test_tutorials.py",
    "references/zh/tutorials": "test_tutorials.py",
    "skills": "test_documents.py",
}
# Replacements in the commands of pages: paths of this machine, and one skill instead of all (test_install.py and
# test_export.py test all).
PLACES = {
    "install --all": "install netlist-parse",
    "export --all": "export netlist-parse",
    "/path/to/my/project": ".",
    "/srv/layouts": ".",
    "./path/to/analog-layout-skills": str(ROOT),
}
# Programs of others. The tests of hosts and of the package run them where they are installed; here they only exist.
OTHERS = ("claude", "codex", "gemini", "npx", "uvx")
# What CI does before it runs any test: the demo, the tests themselves, and an environment with this package.
DONE_BY_CI = {"make demo", "make test", "python3 -m venv .venv && .venv/bin/pip install -e .", ". .venv/bin/activate"}


def build_site(folder):
    """Build the site into a folder and return what the builder said."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=WATCHDOG_S, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stderr


@pytest.fixture(scope="module")
def site(once):
    """Build the site once in a test run and return its folder."""
    said, folder = once(build_site, "site")
    assert not re.search(r"^(WARNING|ERROR) +-", said, re.MULTILINE), said[-3000:]
    return folder


def text_of(page):
    """Return the text of a page of the site, without its tags."""
    return unescape(re.sub(r"<[^>]+>", "", page.read_text(encoding="utf-8")))


def commands_in(document):
    """Return the shell commands of a page, continued lines joined."""
    blocks = [block for _, block in FENCED.findall(document.read_text(encoding="utf-8"))]
    lines = [line.strip() for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    return [line for line in lines if line and not line.startswith("#")]


def test_no_page_loads_anything_from_another_host(site):
    pages = [*site.rglob("*.html"), *site.rglob("*.css")]
    assert len(pages) > 50
    assert [page.name for page in pages if LOADED.search(page.read_text(encoding="utf-8"))] == []
    assert LOADED.search('<script src="https://x.org/a.js">')
    assert LOADED.search("@font-face {src: url(//x.org/a.woff)}")


def test_no_line_ends_within_a_chinese_sentence(site):
    """A browser shows the end of a line as a space."""
    broken = re.compile(
        r"[\u3001\u3002\uff09\uff0c\uff1a\uff1b][ \n]+[\w`\u201c\uff08<]|[\u4e00-\u9fff]\n *[\u4e00-\u9fff]"
    )
    assert broken.search("放置\uff0c\n再布线")
    pages = [*(site / "zh").rglob("*.html")]
    assert len(pages) == 5
    for page in pages:
        paragraphs = re.findall(r"(?s)<(?:p|li)>(.*?)</", page.read_text(encoding="utf-8"))
        assert [text for text in paragraphs if broken.search(text)] == [], page.name


def test_tables_keep_the_names_in_them_whole(site):
    assert '<link rel="stylesheet" href="site.css">' in (site / "index.html").read_text(encoding="utf-8")
    rule = re.search(
        r"table:not\(\[class\]\) code \{(.*?)\}", (site / "site.css").read_text(encoding="utf-8"), re.DOTALL
    )
    assert "word-break: normal" in rule[1]


def test_the_reference_has_every_command_and_option(site):
    import click

    from skillpack.__main__ import command

    text = " ".join(text_of(site / "cli.html").split())
    context = click.Context(command)
    for name in command.list_commands(context):
        found = command.get_command(context, name)
        assert f"skillpack {name}" in text
        options = {option for each in found.params if isinstance(each, click.Option) for option in each.opts}
        assert [option for option in options if option not in text] == [], name


def test_the_reference_has_every_parameter_of_every_tool(site):
    for name, (_, tools) in site_pages.declared_tools().items():
        text = text_of(site / "tools" / f"{name}.html") if tools else ""
        for tool in tools:
            assert tool.id in text
            (section,) = re.findall(
                rf"(?s)^{re.escape(tool.id)}¶?$.*?(?=JSON Schema of the answer)", text, re.MULTILINE
            )
            table = section.partition("JSON Schema")[0]
            required = site_pages.required_of(tool.input_schema)
            names = set(site_pages.properties_of(tool.input_schema))
            assert required <= names
            assert [each for each in names if not re.search(rf"\b{re.escape(each)}\b", table)] == [], tool.id
            assert names == validated_names(tool.input_schema), tool.id


def test_the_site_has_the_text_of_every_skill(site):
    """Word by word, but for marks of Markdown: instructions and references."""
    for name in site_pages.declared_tools():
        folder = ROOT / "skills" / name
        files = {folder / "SKILL.md": site / "tools" / f"{name}.html"}
        for file in folder.glob("references/*.md"):
            page = site / "tools" / name / f"{file.stem}.html"
            files[file] = page if page.exists() else site / f"{file.stem}.html"
        for file, page in files.items():
            markup = re.compile(
                r"\A---\n.*?\n---\n|!\[[^\]]*\]\([^)]*\)|\]\([^)]*\)|^ *```\w*", re.DOTALL | re.MULTILINE
            )
            written = set(re.findall(r"[a-zA-Z]{4,}", markup.sub(" ", file.read_text(encoding="utf-8"))))
            assert written <= set(re.findall(r"[a-zA-Z]{4,}", text_of(page))), file


@pytest.mark.parametrize("words", ["net current", "wider wire", "antenna", "matched pair", "electromigration"])
def test_the_search_of_a_page_opened_from_disk_finds_the_skills_first(site, browser, words):
    browser.visit((site / "index.html").as_uri())
    browser.wait("document.querySelector('.md-search__input') !== null")
    browser.run("document.querySelector('#__search').click(), document.querySelector('.md-search__input').focus()")
    for key in words:
        browser.press(key)
    found = "[...document.querySelectorAll('.md-search-result__link')].map(each => each.pathname)"
    browser.wait(f"{found}.length > 0 && document.querySelector('.md-search__input').value === '{words}'")
    assert "/tools/" in browser.run(found)[0]
    assert browser.problems == []


def validated_names(schema):
    """Return the parameters that a validator of JSON Schema knows: those that it does not refuse as unknown."""
    from skillscript import find_faults

    words = set(re.findall(r'"(\w+)": *[{]', json.dumps(schema)))
    refused = {str(fault.path) for fault in find_faults(dict.fromkeys(words), schema) if "Unknown" in fault.message}
    return {word for word in words if word not in refused}


def test_the_notebook_ran_and_its_page_shows_what_its_cells_return(site):
    page = (site / "tutorials" / "python.html").read_text(encoding="utf-8")
    text = unescape(re.sub(r"<[^>]+>", " ", page))
    assert page.count("data:image/png;base64,") >= 2
    assert "differential_pair" in text
    assert re.search(r"DRC\s+clean", text)
    assert re.search(r"True\s+\(\)", text)  # one line of output may reach the page in two pieces
    assert "LVS does not match" in text
    notebook = json.loads(site_pages.NOTEBOOK.read_text(encoding="utf-8"))
    assert [cell for cell in notebook["cells"] if cell.get("outputs")] == []  # committed without results
    assert (site / "tutorials" / "python.ipynb").is_file()


def test_the_gallery_shows_every_layout_of_the_board(site):
    page = (site / "gallery.html").read_text(encoding="utf-8")
    rows = json.loads((BOARD / "board.json").read_text(encoding="utf-8"))["rows"]
    shown = {f"{key.replace(' ', '/')}.png" for key, row in rows.items() if row["status"] == "done"}
    assert {path.relative_to(BOARD).as_posix() for path in BOARD.rglob("*.png")} == shown
    assert [name for name in shown if f'src="images/board/{name}"' not in page] == []
    assert [name for name in shown if not (site / "images" / "board" / name).is_file()] == []


def test_someone_runs_every_command_of_the_site(site):
    """A page that shows commands is in ``RUN_BY``; the file named there runs all commands of the page."""
    pages = [ROOT / file for file in site_pages.COPIES.values()]
    pages += [path for path in (ROOT / "references").rglob("*.md") if path.name != "releasing.md"]
    for path in pages:
        place = path.relative_to(ROOT).as_posix()
        runner = RUN_BY.get(place) or RUN_BY.get(place.rpartition("/")[0]) or RUN_BY.get(place.partition("/")[0])
        assert (ROOT / "tests" / "docs" / runner).is_file() if runner else not commands_in(path), place
    for page in site.rglob("*.html"):
        assert 'class="language-sh' not in page.read_text(encoding="utf-8")


@pytest.fixture
def shell(tmp_path):
    """Return a function that runs a line in an empty folder, and the environment that it has."""
    place = tmp_path / "programs"
    place.mkdir()
    for name in OTHERS:
        (place / name).write_text("#!/bin/sh\nexit 0\n", encoding="utf-8")
        (place / name).chmod(0o755)
    own = ("ANALOG_LAYOUT_", "SKILLPACK_", "SKILL_MODEL_", "CHIPFORGE_", "KG_", "CLAUDE_")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(own)}
    environment["PATH"] = os.pathsep.join([str(place), str(programs()), str(BIN), os.environ["PATH"]])
    environment["HOME"] = str(tmp_path / "home")
    work = tmp_path / "work"
    for folder in (work, tmp_path / "home"):
        folder.mkdir()

    def run(text, cwd=work):
        done = subprocess.run(
            ["bash", "-e", "-c", text],
            cwd=cwd,
            env=environment,
            capture_output=True,
            text=True,
            timeout=WATCHDOG_S,
            check=False,
        )
        assert done.returncode == 0, f"{text}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
        return done.stdout

    run.environment, run.folder = environment, work
    return run


def test_the_commands_of_both_readmes_run(shell):
    """In the clone, except for those that CI runs before any test."""
    lines = commands_in(ROOT / "README.md")
    assert commands_in(ROOT / "README.zh.md") == lines
    assert set(lines) >= DONE_BY_CI
    for line in lines:
        if line not in DONE_BY_CI:
            shell(line.replace('"technology"', f'"workspace": "{shell.folder}", "technology"'), ROOT)


def test_the_commands_of_the_page_on_skills_run(shell):
    for _, block in FENCED.findall((ROOT / "references/writing-skills.md").read_text(encoding="utf-8")):
        shell(block)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def answers(port):
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def test_the_commands_of_the_page_on_hosts_run(shell):
    """Servers start, listen and are stopped; what follows a server in its block meets it."""
    for module in ("mcp", "fastapi"):
        pytest.importorskip(module, reason=f"skipped: needs the extra with {module}")
    if shutil.which("curl") is None:
        pytest.skip("skipped: needs curl")
    for _, block in FENCED.findall((ROOT / "references/hosts.md").read_text(encoding="utf-8")):
        run_block(block.replace("\\\n", " "), shell)


def run_block(block, shell):
    port, servers, kept = free_port(), [], []
    for place, stand_in in PLACES.items():
        block = block.replace(place, stand_in)
    try:
        for line in block.replace("8321", str(port)).splitlines():
            if re.search(r"skillpack (mcp --http|http)\b", line) and not line.startswith("npx"):
                own = line if "--port" in line else f"{line} --port {port}"
                servers.append(
                    subprocess.Popen(["bash", "-c", f"exec env {own}"], cwd=shell.folder, env=shell.environment)
                )
                assert eventually(lambda: answers(port)), line
            elif line.startswith("token="):
                kept.append(line)
            elif "curl " in line:
                answer = json.loads(shell("\n".join([*kept, line.replace("curl ", "curl --silent --show-error ", 1)])))
                assert {"skills", "error"} & set(answer), answer
            else:
                shell(line)
    finally:
        for server in servers:
            server.terminate()
            server.wait(WATCHDOG_S)
