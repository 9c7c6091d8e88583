"""Pages of the documentation site that are made from what is here, and links between pages: a hook of MkDocs.

The folder ``references`` holds the pages that are written by hand. Made here, each time the site is built: the home
page (README.md), the command line (from click), the skills (their texts, and their tools from the JSON Schemas), the
Python interface (from docstrings), the gallery (from ``tests/bench/board``), and the notebook with what its cells
return. A link to a file of the repository leads to its page if it has one, else to the repository.
"""

import inspect
import json
import posixpath
import re
from functools import cache
from html import escape
from pathlib import Path, PurePosixPath

import click
from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parents[1]
BOARD = ROOT / "tests" / "bench" / "board"
NOTEBOOK = ROOT / "references" / "tutorials" / "python.ipynb"
ADDRESS = re.search(r'^Source = "(.*)"$', (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE)[1]
HERE = re.compile(
    rf"(?:{ADDRESS}/(?:blob|tree|raw)|{ADDRESS.replace('github.com', 'raw.githubusercontent.com')})/main/"
)
LINK = re.compile(r"(?<=\]\()([^)\s#]*)(#[^)\s]*)?(?=\))|(?<=^)(\[[^\]\n]+\]: )(\S+?)(#\S*)?$", re.MULTILINE)
# The end of a line within a Chinese sentence, which a browser would show as a space.
BREAK = re.compile(
    r"(?<=[\u3001-\u301f\uff01-\uff60])\n *(?!\d+\. )(?=[\w`\[\u201c\uff08])"
    r"|(?<=[\u4e00-\u9fff])\n *(?=[\u4e00-\u9fff])"
)
FENCE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
# Pages that are files outside of the folder of the site: address in the site, file.
COPIES = {
    "index.md": "README.md",
    "zh/index.md": "README.zh.md",
    "changelog.md": "CHANGELOG.md",
    "security.md": "SECURITY.md",
    "technology-format.md": "skills/technology-files/references/technology-format.md",
}
# The texts of the skills: those of SKILL.md begin the page of the skill's tools.
COPIES |= {
    f"tools/{file.parts[-3]}/{file.name}": file.relative_to(ROOT).as_posix()
    for file in sorted((ROOT / "skills").glob("*/references/*.md"))
    if file.relative_to(ROOT).as_posix() not in COPIES.values()
}
PICTURES = {
    f"images/{picture.parts[-3]}-{picture.name}": picture.relative_to(ROOT).as_posix()
    for picture in sorted((ROOT / "skills").glob("*/assets/*.png"))
}
SKILLS = {f"tools/{file.parent.name}.md": file for file in sorted((ROOT / "skills").glob("*/SKILL.md"))}
# How much more, or less, a hit on these pages counts in the search.
WEIGHTS = {"tools/": 4, "tutorials/": 2, "decisions/": 0.2, "changelog.md": 0.1, "requirements.md": 0.2, "zh/": 0.5}
# Files that have a page of another form.
SHOWN_BY = {"tests/bench/board/board.html": "gallery.md", "references/tutorials/python.ipynb": "tutorials/python.md"}


def on_files(files, config):
    """Add the generated pages and the pictures of the gallery."""
    made = {address: (ROOT / file).read_text(encoding="utf-8") for address, file in COPIES.items()}
    made |= {"cli.md": command_line_page(), "python-api.md": python_page(), "gallery.md": gallery_page()}
    made |= {"decisions.md": decisions_page(), "tutorials/python.md": notebook_page(executed_notebook())}
    made |= tool_pages()
    for address, text in made.items():
        files.append(File.generated(config, address, content=text))
    for address, picture in PICTURES.items():
        files.append(File.generated(config, address, abs_src_path=str(ROOT / picture)))
    for picture in sorted(BOARD.rglob("*.png")):
        address = f"images/board/{picture.relative_to(BOARD).as_posix()}"
        files.append(File.generated(config, address, abs_src_path=str(picture)))
    return files


def on_page_markdown(markdown, page, config, files):  # noqa: ARG001 - the signature of MkDocs
    """Return the page with links that are right in the site, and without spaces within Chinese sentences."""
    address = page.file.src_uri
    weight = next((weight for start, weight in WEIGHTS.items() if address.startswith(start)), 1)
    page.meta["search"] = {"boost": weight}
    origin = PurePosixPath(COPIES.get(address, f"references/{address}"))
    if address in SKILLS:
        origin = PurePosixPath(SKILLS[address].relative_to(ROOT).as_posix())
    parts = FENCE.split(markdown)
    pages = {file.src_uri for file in files}
    return "".join(
        part if part.startswith("```") else with_links(BREAK.sub("", part), origin, address, pages) for part in parts
    )


def on_post_build(config):
    """Write the index of the search as a script, too, for pages that are opened from disk."""
    index = Path(config.site_dir) / "search" / "search_index.json"
    index.with_suffix(".js").write_text(f"var __index = {index.read_text(encoding='utf-8')}", encoding="utf-8")


def with_links(text, origin, address, pages):
    """Return ``text`` with the links of a file of the repository as they are in the site.

    Args:
        text: Markdown.
        origin: The file that it comes from, relative to the root of the repository.
        address: Of its page.
        pages: Addresses of all files of the site.
    """

    def moved(match):
        head, target, anchor = match[3] or "", (match[1] if match[3] is None else match[4]), match[2] or match[5] or ""
        return head + site_address(target, anchor, origin, address, pages)

    return LINK.sub(moved, text)


def site_address(target, anchor, origin, address, pages):
    """Return where a link to ``target`` leads in the site."""
    if not target or target.startswith("mailto:") or ("://" in target and not HERE.match(target)):
        return target + anchor
    file = HERE.sub("", target) if "://" in target else posixpath.normpath((origin.parent / target).as_posix())
    own = {source: place for place, source in COPIES.items()} | SHOWN_BY
    own |= {source: place for place, source in PICTURES.items()}
    own |= {skill.relative_to(ROOT).as_posix(): place for place, skill in SKILLS.items()}
    place = own.get(file, file.removeprefix("references/") if file.startswith("references/") else "")
    if place in pages:
        return posixpath.relpath(place, posixpath.dirname(address)) + anchor
    if not (ROOT / file).exists():
        return target + anchor  # MkDocs reports it
    return f"{ADDRESS}/blob/main/{file}{anchor}"


# --- the command line


def command_line_page():
    """Return the help of every command of ``skillpack``."""
    from skillpack.__main__ import command

    lines = [
        "# Command line",
        "",
        "`skillpack COMMAND --help` prints the same. Each command states its exit codes.",
        "",
    ]
    group = click.Context(command, info_name="skillpack")
    for name in command.list_commands(group):
        found = command.get_command(group, name)
        lines += command_section(found, click.Context(found, info_name=name, parent=group), 2)
    return "\n".join(lines)


def command_section(command, context, level):
    """Return the section of one command, with its subcommands below it."""
    lines = [f"{'#' * level} {context.command_path}", "", *paragraphs(command.help or ""), ""]
    lines += ["```text", context.get_usage().removeprefix("Usage: "), "```", ""]
    options = [each for each in command.params if isinstance(each, click.Option) and not each.hidden]
    rows = [option_row(option, context) for option in options]
    lines += ["| option | meaning |", "| --- | --- |", *rows, ""] if rows else []
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            lines += command_section(inner, click.Context(inner, info_name=name, parent=context), level + 1)
    return lines


def paragraphs(text):
    """Return a help text as Markdown; click keeps the lines after a line ``\\b`` as they are."""
    found = []
    for part in inspect.cleandoc(text).split("\n\n"):
        head, _, rest = part.partition("\n")
        found += ["```text", rest, "```", ""] if head == "\b" else [" ".join(part.split()), ""]
    return found


def option_row(option, context):
    """Return an option as a row: its names, and its help with the default."""
    names, meaning = option.get_help_record(context) or (", ".join(option.opts), option.help or "")
    return f"| `{cell(names)}` | {cell(meaning)} |"


# --- the tools


@cache
def declared_tools():
    """Return the tools of the pack, by skill."""
    from skillpack import SkillLoader, find_tools

    skills = SkillLoader(ROOT / "skills").skills
    return {name: (skill, list(find_tools([skill]).by_id.values())) for name, skill in sorted(skills.items())}


def tool_pages():
    """Return a page with the text and the tools of each skill, and the list of the tools."""
    pages, index = {}, ["# Skills and tools", ""]
    index += ["Every tool is a script, a tool over MCP, and a path of the HTTP server.", ""]
    index += ["| tool | skill | what it does |", "| --- | --- | --- |"]
    for name, (skill, tools) in declared_tools().items():
        if not tools:
            continue
        page = f"tools/{name}.md"
        pages[page] = "\n".join([skill.body.strip(), "", *map(tool_section, tools)])
        for tool in tools:
            index.append(f"| [`{tool.id}`](tools/{name}.md#{anchor(tool.id)}) | {name} | {cell(tool.description)} |")
    return {**pages, "tools.md": "\n".join(index) + "\n"}


def tool_section(tool):
    """Return the section of one tool: parameters, fields of the answer, and both schemas."""
    from skillpack.hosts.served_schemas import served_names

    (over_mcp,) = served_names([tool.id], "underscored")
    lines = [f"## {tool.id} {{ #{anchor(tool.id)} }}", "", escape(tool.description), ""]
    lines += [f"Version {tool.version}. Script `{Path(tool.script).name}`, over MCP `{over_mcp}`.", ""]
    lines += ["| parameter | type | default | meaning |", "| --- | --- | --- | --- |"]
    lines += parameter_rows(tool.input_schema)
    lines += ["", "| field of `data` | type | meaning |", "| --- | --- | --- |"]
    for field, schema in properties_of(tool.output_schema).items():
        found = resolved(schema, tool.output_schema)
        lines.append(f"| `{field}` | {type_of(found, tool.output_schema)} | {cell(found.get('description', ''))} |")
    for title, schema in (("parameters", tool.input_schema), ("the answer", tool.output_schema)):
        text = json.dumps(schema, indent=2, ensure_ascii=False)
        lines += ["", f'??? note "JSON Schema of {title}"', "", "    ```json"]
        lines += [f"    {line}" for line in text.splitlines()] + ["    ```", ""]
    return "\n".join(lines)


def parameter_rows(schema):
    """Return the parameters of a tool as rows."""
    required = required_of(schema)
    rows = []
    for name, given in properties_of(schema).items():
        found = resolved(given, schema)
        default = "required" if name in required else ""
        default = f"`{cell(json.dumps(found['default'], ensure_ascii=False))}`" if "default" in found else default
        rows.append(f"| `{name}` | {type_of(found, schema)} | {default} | {cell(found.get('description', ''))} |")
    return rows


def resolved(schema, root):
    """Return a schema with what it refers to in ``root``; keywords beside a reference have precedence."""
    if "$ref" not in schema:
        return schema
    target = root
    for word in schema["$ref"].removeprefix("#/").split("/"):
        target = target[word]
    return {**resolved(target, root), **{key: value for key, value in schema.items() if key != "$ref"}}


def parts_of(schema, root):
    """Yield the schemas of which all hold: itself, what it refers to and what ``allOf`` lists."""
    whole = resolved(schema, root)
    yield whole
    if "$ref" in schema:
        yield from parts_of({"$ref": schema["$ref"]} if len(schema) > 1 else resolved(schema, root), root)
    for part in whole.get("allOf", ()):
        if "$ref" in part or "properties" in part:
            yield from parts_of(part, root)


def properties_of(schema):
    """Return the properties of an object, with those of the schemas that it refers to or combines."""
    found = {}
    for part in parts_of(schema, schema):
        found |= {name: value for name, value in part.get("properties", {}).items() if name not in found}
    return found


def required_of(schema):
    """Return the names of the properties that an object must have."""
    return {name for part in parts_of(schema, schema) for name in part.get("required", ())}


def type_of(schema, root):
    """Return the type of a value in words."""
    if "enum" in schema:
        return " ".join(f"`{cell(json.dumps(value, ensure_ascii=False))}`" for value in schema["enum"])
    if "const" in schema:
        return f"`{cell(json.dumps(schema['const'], ensure_ascii=False))}`"
    kind = schema.get("type")
    if kind == "array":
        items = resolved(schema.get("items", {}), root) if isinstance(schema.get("items", {}), dict) else {}
        return f"array of {type_of(items, root)}" if items else "array"
    if isinstance(kind, list):
        return " or ".join(kind)
    if kind is None:
        choices = [resolved(each, root) for key in ("oneOf", "anyOf") for each in schema.get(key, ())]
        return " or ".join(dict.fromkeys(type_of(each, root) for each in choices)) or "any"
    return kind


def anchor(tool_id):
    """Return the anchor of a tool's section."""
    return re.sub(r"[^a-z0-9]+", "-", tool_id.lower())


def cell(text):
    """Return a text as the content of a table's cell."""
    flat = "<br>".join(" ".join(part.split()) for part in escape(str(text), quote=False).split("\n\n"))
    return flat.replace("|", "\\|")


# --- Python


def python_page():
    """Return the functions of ``import layoutkit`` and what they return, from their docstrings."""
    import layoutkit
    from layoutkit import python_api

    lines = ["# Python", "", *docstring(layoutkit), "[A notebook](tutorials/python.md) shows them in use.", ""]
    for name in layoutkit.__all__:
        function = getattr(python_api, name)
        lines += [f"## layoutkit.{name}", "", "```python", f"{name}{inspect.signature(function)}", "```", ""]
        lines += docstring(function)
    for name in ("Netlist", "Layout", "Check", "Build"):
        kind = getattr(python_api, name)
        lines += [f"## {name}", "", *docstring(kind)]
        for member, value in vars(kind).items():
            inner = getattr(value, "fget", None) or getattr(value, "func", None) or value
            if not member.startswith("_") and inspect.isfunction(inner):
                shown = f"{member}{inspect.signature(inner)}" if inner is value else member
                lines += [f"### {name}.{member} {{ #{name.lower()}-{member} }}", "", "```python", shown, "```", ""]
                lines += docstring(inner)
    return "\n".join(lines)


def docstring(thing):
    """Return a docstring as Markdown: sections and their entries as lists, what ends in ``::`` as code."""
    lines, inside_code = [], False
    for line in inspect.getdoc(thing).splitlines():
        if inside_code and line and not line.startswith(" "):
            lines += ["```", ""]
            inside_code = False
        if inside_code:
            lines.append(line[4:])
        elif line.endswith("::"):
            lines += [line[:-1].replace("``", "`"), "", "```python"]
            inside_code = True
        elif line in {"Args:", "Raises:", "Attributes:"}:
            lines += [f"**{line[:-1]}**", ""]
        elif entry := re.fullmatch(r"    (\w+): (.*)", line):
            lines.append(f"- `{entry[1]}`: {entry[2].replace('``', '`')}")
        else:
            lines.append((f"  {line.strip()}" if line.startswith("    ") else line).replace("``", "`"))
    return [*lines, *(["```"] if inside_code else []), ""]


# --- the notebook


def executed_notebook():
    """Return the notebook with the results of its cells, which run in an empty folder."""
    import tempfile

    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(NOTEBOOK, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        NotebookClient(notebook, kernel_name="python3", resources={"metadata": {"path": folder}}).execute()
    return notebook


def notebook_page(notebook):
    """Return an executed notebook as Markdown."""
    lines = []
    for part in notebook.cells:
        if part.cell_type == "markdown":
            lines += [part.source, ""]
            continue
        lines += ["```python", part.source, "```", ""]
        for output in part.outputs:
            lines += [shown(output), ""]
    lines += ["[The notebook](python.ipynb) itself, to run in Jupyter.", ""]
    return "\n".join(lines)


def shown(output):
    """Return one result of a cell: HTML or a picture if it has one, else text."""
    data = output.get("data", {})
    if "text/html" in data:
        return f'<div class="result">{data["text/html"]}</div>'
    if "image/png" in data:
        return f'<p><img alt="result of the cell" src="data:image/png;base64,{data["image/png"].strip()}"></p>'
    text = data.get("text/plain", output.get("text", ""))
    return f"```text\n{text.rstrip()}\n```"


# --- the gallery and the decisions


def gallery_page():
    """Return the layouts of the suite with their figures, from the committed scoreboard."""
    board = json.loads((BOARD / "board.json").read_text(encoding="utf-8"))
    circuits = {}
    for key, row in board["rows"].items():
        technology, _, name = key.partition(" ")
        circuits.setdefault(name, {})[technology] = row
    lines = [
        "# Gallery",
        "",
        "Layouts of this repository's circuits, each made from its netlist by one command. `make board` draws them and",
        "measures them: area [um2], area over that of the modules, length of wires over its lower bound, CPU time.",
        "",
    ]
    for name, rows in sorted(circuits.items()):
        lines += [f"## {name.replace('_', ' ')}", "", f"{next(iter(rows.values()))['devices']} devices.", ""]
        heads = "| " + " | ".join(["", *rows]) + " |"
        pictures = [f"![{name} in {each}](images/board/{each}/{name}.png)" for each in rows]
        lines += [heads, "| --- " * (len(rows) + 1) + "|", "| layout | " + " | ".join(pictures) + " |"]
        for label, judge in FIGURES.items():
            lines.append(f"| {label} | " + " | ".join(judge(row) for row in rows.values()) + " |")
        lines.append("")
    return "\n".join(lines)


FIGURES = {
    "area": lambda row: f"{row['area_um2']:.0f}",
    "area over modules": lambda row: f"{row['area_over_modules']:.2f}",
    "wire over bound": lambda row: f"{row['wire_over_bound']:.2f}",
    "unrouted nets, DRC, LVS": lambda row: f"{row['unrouted']}, {row['drc']}, {row['lvs']}",
    "CPU time": lambda row: f"{row['cpu_s']:.1f} s",
}


def decisions_page():
    """Return the list of the decision records."""
    lines = ["# Decisions", "", "What was decided, why, and what would reverse it.", ""]
    for path in sorted((ROOT / "references" / "decisions").glob("*.md")):
        title = path.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ")
        lines.append(f"- [{title}](decisions/{path.name})")
    return "\n".join(lines) + "\n"
