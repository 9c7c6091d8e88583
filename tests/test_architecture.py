"""Who may import whom, and what must not be loaded before it is needed. Read from the sources, nothing is run."""

import ast
import functools
import importlib
import re
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = {
    "skillpack": ROOT / "loader" / "skillpack",
    "skillscript": ROOT / "scripts" / "skillscript",
    "layoutkit": ROOT / "scripts" / "layoutkit",
    "designgraph": ROOT / "scripts" / "designgraph",
    "sturdy": ROOT / "scripts" / "sturdy",
}
ALLOWED = {
    "sturdy": set(),
    "skillpack": {"skillscript", "sturdy"},
    "skillscript": {"sturdy"},
    "layoutkit": {"sturdy"},
    "designgraph": {"sturdy"},
    "skills": {"skillscript", "layoutkit", "designgraph"},
}
OURS = frozenset({*PACKAGES, "skills"})
SERVERS = frozenset({"anyio", "fastapi", "mcp", "mcp_types", "starlette", "uvicorn"})  # of the extras mcp and http
FUNCTIONS = frozenset({"docstring_parser", "pydantic"})  # of the extra functions, behind @skill
HEAVY = SERVERS | FUNCTIONS
HEAVY |= {"klayout", "numpy", "numba", "shapely", "jsonschema", "yaml", "click", "networkx", "jinja2", "httpx"}
HEAVY |= {"frontmatter"}
KLAYOUT_AT_TOP = frozenset({"klayout", "numpy", "shapely"})  # the engine's own tools, at the top of its modules
COMMANDS = PACKAGES["skillpack"] / "commands"  # one subcommand a module, each on top of click and nothing else
HOSTS = PACKAGES["skillpack"] / "hosts"  # the servers, on top of what the extras install
SPECIALISTS = {
    "skillpack": {
        "__main__.py": {"click"},
        "registry/signature_schema.py": {"docstring_parser", "pydantic"},
        "untrusted/strict_yaml.py": {"frontmatter", "yaml"},
    },
    "skillscript": {"explain.py": {"jsonschema"}},
}


def sources(owner):
    """Return the Python files of a package, or the scripts of all skills."""
    if owner == "skills":
        return sorted((ROOT / "skills").glob("*/scripts/**/*.py"))
    return sorted(PACKAGES[owner].rglob("*.py"))


def imported(node):
    """Return the top-level packages an import statement names; a relative import names its own package."""
    if isinstance(node, ast.Import):
        return {alias.name.partition(".")[0] for alias in node.names}
    if isinstance(node, ast.ImportFrom) and node.level == 0:
        return {node.module.partition(".")[0]}
    return set()


def is_for_types(node):
    """Return whether an ``if`` is ``if TYPE_CHECKING``."""
    test = node.test
    return "TYPE_CHECKING" in {getattr(test, "id", None), getattr(test, "attr", None)}


STATEMENTS = (ast.stmt, ast.excepthandler, ast.match_case)


def within(node):
    """Return the statements right inside of one; imports are statements, so expressions are left out."""
    return [child for child in ast.iter_child_nodes(node) if isinstance(child, STATEMENTS)]


def statements(node):
    """Yield a node and all statements in it."""
    yield node
    for inner in within(node):
        yield from statements(inner)


def all_imports(tree):
    """Return (line, package) of every import, wherever it stands."""
    return [(node.lineno, name) for node in statements(tree) for name in imported(node)]


def imports_at_load(tree):
    """Return (line, package) of the imports that run when the module is loaded."""
    found = []
    waiting = list(tree.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        if isinstance(node, ast.If) and is_for_types(node):
            waiting.extend(node.orelse)
            continue
        found.extend((node.lineno, name) for name in imported(node))
        waiting.extend(within(node))
    return sorted(found)


@dataclass
class Imports:
    """Imports of a file: (line, package) of all and of those at load time; all statements, and those that run."""

    anywhere: list
    at_load: list
    statements: list
    running: list


@functools.cache
def imports_in(path):
    """Return the imports of a file; cached, because several tests need them."""
    tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
    never = type_checking_imports(tree)
    every = [node for node in statements(tree) if isinstance(node, (ast.Import, ast.ImportFrom))]
    running = [node for node in every if id(node) not in never]
    return Imports(all_imports(tree), imports_at_load(tree), every, running)


def offences(owner, where, forbidden):
    """Return ``file:line imports name`` for what is forbidden among the imports of ``owner``'s sources."""
    return [
        f"{path.relative_to(ROOT)}:{line} imports {name}"
        for path in sources(owner)
        for line, name in getattr(imports_in(path), where)
        if name in forbidden
    ]


@pytest.mark.parametrize("owner", sorted(ALLOWED))
def test_imports_go_only_where_the_design_allows(owner):
    """skills -> skillscript, layoutkit, designgraph; skillpack -> skillscript; all: sturdy. Nothing imports skills."""
    assert offences(owner, "anywhere", OURS - ALLOWED[owner] - {owner}) == []


def test_what_all_build_on_needs_nothing_but_the_standard_library():
    foreign = [
        f"{path.name}:{line} imports {name}"
        for path in sources("sturdy")
        for line, name in imports_in(path).anywhere
        if name not in sys.stdlib_module_names | {"sturdy"}
    ]
    assert foreign == []


def test_no_script_of_a_skill_reaches_into_another_skill():
    names = {path.name.replace("-", "_") for path in (ROOT / "skills").iterdir() if path.is_dir()}
    assert offences("skills", "anywhere", names | {"skills"}) == []


# What a skill's script builds on; the rest of the engine is behind ``layoutkit.tools``.
SCRIPTS_BUILD_ON = ("skillscript", "layoutkit.tools", "designgraph")
# The rooms of the engine, highest first: a room imports those below it; the last three names are modules.
ROOMS = (
    {"python_api"},
    {"tools", "pcells"},
    {"explore"},
    {"flow"},
    {"review", "simulate"},
    {"parasitics"},
    {"draw", "place", "route", "extract", "drc", "lvs", "view"},
    {"layout", "circuit"},
    {"technology"},
    {"compiled", "file_schema", "other_programs", "templates"},
    {"errors", "rectangle"},
)
WITHIN_A_LEVEL = {("lvs", "extract"), ("drc", "extract")}


@functools.cache
def modules():
    """Return dotted name to file of every module of the packages."""
    found = {}
    for home in PACKAGES.values():
        for path in home.rglob("*.py"):
            name = ".".join(path.relative_to(home.parent).with_suffix("").parts)
            found[name.removesuffix(".__init__")] = path
    return found


def type_checking_imports(tree):
    """Return the import statements below ``if TYPE_CHECKING``, which never run."""
    blocks = (node for node in statements(tree) if isinstance(node, ast.If) and is_for_types(node))
    return {id(inner) for block in blocks for statement in block.body for inner in statements(statement)}


def imports_of(name, path, known, *, types=False):
    """Return the modules of ``known`` that a module imports when it is loaded or later, or also for its types."""
    found = set()
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in imports_in(path).statements if types else imports_in(path).running:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        else:
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            home = ".".join([*above, *([node.module] if node.module else [])])
            found |= {f"{home}.{alias.name}" if f"{home}.{alias.name}" in known else home for alias in node.names}
    return (found & known.keys()) - {name}


@functools.cache
def import_graph(*, types=False):
    known = modules()
    return {name: imports_of(name, path, known, types=types) for name, path in known.items()}


def cycles_in(graph):
    """Return the groups of modules that import one another, directly or not, each as sorted names."""
    reached = {}
    for start in graph:
        seen, waiting = set(), list(graph[start])
        while waiting:
            name = waiting.pop()
            if name not in seen:
                seen.add(name)
                waiting.extend(graph[name])
        reached[start] = seen
    return {
        ", ".join(sorted({start, *(name for name in seen if start in reached[name])}))
        for start, seen in reached.items()
        if start in seen
    }


def room_of(module):
    """Return the room of ``module`` of the engine, and its level from below."""
    room = module.split(".")[1]
    return room, next(level for level, rooms in enumerate(reversed(ROOMS)) if room in rooms)


def test_no_modules_import_one_another():
    """Not in a function either: which of them is loaded first must not matter."""
    assert cycles_in(import_graph()) == set()


FLOW_CIRCLE = [
    "current_loads",
    "design",
    "dummies",
    "groups",
    "hierarchy",
    "instances",
    "joined_wells",
    "kept_modules",
    "modules",
    "net_wishes",
    "overlays",
    "pair_loads",
    "passive_modules",
    "placing",
    "ports",
    "rings",
    "room",
    "routing",
    "symmetric_modules",
]
# Modules that know one another by their types alone; the flow is to be written anew.
CIRCLES_OF_TYPES = {", ".join(f"layoutkit.flow.{name}" for name in FLOW_CIRCLE)}


def test_no_further_modules_know_the_types_of_one_another():
    assert cycles_in(import_graph(types=True)) == CIRCLES_OF_TYPES


def package_graph(graph, root):
    """Return which folders of a package import one another's modules, when loaded, later or for types.

    The package itself is left out: it is below all folders with what they share, and above them with its public names.
    """
    homes = {name: name if modules()[name].name == "__init__.py" else name.rpartition(".")[0] for name in graph}
    found = {home: set() for home in homes.values() if home.startswith(f"{root}.")}
    for name, used in graph.items():
        if homes[name] in found:
            found[homes[name]] |= {homes[other] for other in used} & found.keys() - {homes[name]}
    return found


def test_no_rooms_of_the_loader_import_one_another():
    """Not in a function either, and not for types alone."""
    assert cycles_in(package_graph(import_graph(types=True), "skillpack")) == set()


def test_rooms_that_import_one_another_are_found():
    planted = {**import_graph(types=True), "skillpack.untrusted.file_access": {"skillpack.commands.calling"}}
    (circle,) = cycles_in(package_graph(planted, "skillpack"))
    assert {"skillpack.untrusted", "skillpack.commands"} <= set(circle.split(", "))


def test_cycles_are_found():
    graph = {"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"d"}, "e": set()}
    assert cycles_in(graph) == {"b, c", "d"}


def test_every_room_of_the_engine_imports_only_lower_rooms():
    """python_api -> tools -> explore -> flow -> parasitics -> draw, ..., view -> layout, circuit -> technology."""
    offenders = []
    for module, used in import_graph().items():
        for other in (name for name in used if f"{module} {name}".count("layoutkit.") == 2):
            (room, level), (below, lower) = room_of(module), room_of(other)
            if room != below and lower >= level and (room, below) not in WITHIN_A_LEVEL:
                offenders.append(f"{module} imports {other}")
    assert sorted(offenders) == []


def test_a_skills_script_builds_on_the_tools_of_the_engine():
    offenders = {}
    for path in sources("skills"):
        running = imports_in(path).running
        used = {
            f"{node.module}.{alias.name}"
            for node in running
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        used |= {alias.name for node in running if isinstance(node, ast.Import) for alias in node.names}
        ours = {name for name in used if name.partition(".")[0] in OURS}
        wrong = {name for name in ours if not any(f"{name}.".startswith(f"{home}.") for home in SCRIPTS_BUILD_ON)}
        if wrong:
            offenders[path.relative_to(ROOT / "skills").as_posix()] = sorted(wrong)
    assert offenders == {}


def test_a_modules_name_stands_for_one_thing():
    """``__init__``, ``__main__`` and the command modules, which are named after their commands, excepted."""
    homes = {}
    for name, path in modules().items():
        if path.name not in {"__init__.py", "__main__.py"} and path.parent != COMMANDS:
            homes.setdefault(path.stem, []).append(name)
    shared = {stem: sorted(names) for stem, names in homes.items() if len(names) > 1}
    assert shared == {}


@pytest.mark.parametrize("owner", ["layoutkit", "designgraph", "skills"])
def test_heavy_packages_are_imported_where_they_are_first_needed(owner):
    allowed = KLAYOUT_AT_TOP if owner == "layoutkit" else frozenset()
    assert offences(owner, "at_load", HEAVY - allowed) == []


@pytest.mark.parametrize("package", sorted(SPECIALISTS))
def test_a_heavy_package_is_loaded_by_one_module_that_the_others_load_late(package):
    at_top = {
        path.relative_to(PACKAGES[package]).as_posix(): names
        for path in sources(package)
        if not path.is_relative_to(COMMANDS)
        and not path.is_relative_to(HOSTS)
        and (names := {name for _, name in imports_in(path).at_load} & HEAVY)
    }
    assert at_top == SPECIALISTS[package]


def test_a_subcommand_loads_click_and_nothing_else_that_is_heavy():
    for path in COMMANDS.glob("*.py"):
        names = {name for _, name in imports_in(path).at_load}
        assert names & HEAVY <= {"click"}, path.name


def test_only_the_servers_use_what_only_the_extras_install():
    outside = [path for path in sources("skillpack") if not path.is_relative_to(HOSTS)]
    used = {p.name: {name for _, name in imports_in(p).anywhere} for p in outside}
    assert {name: names & SERVERS for name, names in used.items() if names & SERVERS} == {}


def test_skill_scripts_load_the_engine_only_when_they_execute():
    """``--help`` of a script imports no KLayout, hence nothing of the engine either."""
    assert offences("skills", "at_load", {"layoutkit", "designgraph"}) == []


@pytest.mark.parametrize("package", sorted(PACKAGES))
def test_a_package_itself_imports_only_the_standard_library_and_itself(package):
    """``import skillpack`` (skillscript, layoutkit) stays cheap."""
    tree = ast.parse((PACKAGES[package] / "__init__.py").read_text(encoding="utf-8"))
    foreign = {name for _, name in imports_at_load(tree)} - sys.stdlib_module_names - {package}
    assert foreign == set()


@pytest.mark.parametrize(
    "package", [name for name, home in PACKAGES.items() if "_HOMES" in (home / "__init__.py").read_text()]
)
def test_no_public_name_is_that_of_a_module_which_would_hide_it_once_loaded(package):
    public = set(importlib.import_module(package).__all__)
    assert public & {path.stem for path in PACKAGES[package].iterdir()} == set()


def test_no_text_advises_to_install_from_a_registry_that_does_not_have_the_package():
    texts = [*ROOT.glob("*.md"), *(ROOT / "references").rglob("*.md"), *(ROOT / "skills").rglob("*.md")]
    texts += [path for owner in ALLOWED for path in sources(owner)]
    wrong = re.compile(r"pip3? install (-\w+ )*['\"]?analog[-_]layout[-_]skills(?!-[\d{])")
    assert [path.name for path in texts if wrong.search(path.read_text(encoding="utf-8"))] == []
    assert wrong.search("pip install 'analog-layout-skills[mcp]'")


TESTS = ROOT / "tests"
CLOCKS = {"time", "monotonic", "perf_counter", "process_time", "thread_time", "times", "getrusage", "wait3", "wait4"}
CLOCKS |= {f"{name}_ns" for name in CLOCKS}
CLOCK_HOMES = {"time", "os", "resource"}
WAITING = {"subprocess.run", "check_output", "communicate", "wait", "join", "urlopen", "create_connection"}
WAITING |= {"eventually", "select.select", "move_on_after", "fail_after"}
LAST_WORDS = {name.rpartition(".")[2] for name in WAITING}
SHORTEST_WATCHDOG_S = 60


def looks_at_time(nodes):
    """Return the lines of a test that could make it pass or fail by how long something takes.

    These are a clock that is read, an upper bound of a duration the product states, a deadline of Hypothesis, and a
    watchdog that a busy machine can reach.
    """
    return sorted({node.lineno for node in nodes if any(rule(node) for rule in TIME_RULES.get(type(node), ()))})


def reads_a_clock(node):
    if isinstance(node, ast.Attribute):
        return node.attr in CLOCKS and getattr(node.value, "id", None) in CLOCK_HOMES
    if isinstance(node, ast.ImportFrom):
        return node.module in CLOCK_HOMES | {"timeit"} and bool({alias.name for alias in node.names} & CLOCKS)
    return isinstance(node, ast.Import) and "timeit" in {alias.name for alias in node.names}


def bounds_a_duration(node):
    if any(isinstance(op, (ast.Eq, ast.NotEq, ast.In, ast.NotIn, ast.Is, ast.IsNot)) for op in node.ops):
        return False
    sides = [node.left, *node.comparators]
    pairs = zip(sides, node.ops, sides[1:], strict=False)
    smaller = [left if isinstance(op, (ast.Lt, ast.LtE)) else right for left, op, right in pairs]
    return any(word in ast.unparse(side) for side in smaller for word in ("duration", "time_ms"))


def has_a_deadline(node):
    return any(
        word.arg == "deadline" and not (isinstance(word.value, ast.Constant) and word.value.value is None)
        for word in node.keywords
    ) and ast.unparse(node.func).endswith(("settings", "register_profile"))


def waits_too_briefly(node):
    if getattr(node.func, "attr", getattr(node.func, "id", None)) not in LAST_WORDS:
        return False
    name = ast.unparse(node.func)
    if not WAITING & {name, name.rpartition(".")[2]}:
        return False
    given = [word.value for word in node.keywords if word.arg in {"timeout", "seconds"}]
    if name.endswith((".wait", ".join", ".move_on_after", ".fail_after")) and len(node.args) == 1:
        given += node.args
    if name == "select.select":
        given += node.args[3:]
    return any(isinstance(value, ast.Constant) and limited(value.value) for value in given)


def limited(value):
    return isinstance(value, (int, float)) and value < SHORTEST_WATCHDOG_S


TIME_RULES = {
    **dict.fromkeys((ast.Attribute, ast.ImportFrom, ast.Import), (reads_a_clock,)),
    ast.Compare: (bounds_a_duration,),
    ast.Call: (has_a_deadline, waits_too_briefly),
}


@functools.cache
def found_in_tests():
    """Return the lines that look at time and the private names of each file of tests, by its path; read once."""
    found = {}
    for path in sorted(TESTS.rglob("*.py")):
        nodes = [*ast.walk(ast.parse(path.read_text(encoding="utf-8")))]
        found[str(path.relative_to(TESTS))] = looks_at_time(nodes), private_names(nodes)
    return found


def test_no_test_passes_or_fails_by_how_long_something_takes():
    """What must be fast is counted, or compared with itself in ``tests/bench``; ``tests/patience.py`` says more."""
    judged = {name: lines for name, (lines, _) in found_in_tests().items() if name != "patience.py"}
    assert [f"{name}:{line}" for name, lines in judged.items() for line in lines if name[:6] != "bench/"] == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("start = time.monotonic()", True),
        ("from time import perf_counter", True),
        ("resource.getrusage(0)", True),
        ("os.wait4(1, 0)", True),
        ("assert envelope['duration_ms'] < 3000", True),
        ("assert 0 <= call.duration_ms < 5000", True),
        ("assert 5000 > call.duration_ms", True),
        ("@settings(max_examples=9, deadline=2000)\ndef f(): pass", True),
        ("process.wait(5)", True),
        ("subprocess.run(x, timeout=20)", True),
        ("eventually(f, seconds=3)", True),
        ("select.select([pipe], [], [], 10)", True),
        ("with anyio.move_on_after(30) as scope: pass", True),
        ("time.sleep(1)", False),
        ("assert call.duration_ms >= 1400", False),
        ("assert set(envelope) == {'duration_ms'}", False),
        ("@settings(max_examples=9, deadline=None)\ndef f(): pass", False),
        ("process.wait(WATCHDOG_S)", False),
        ("run(source, timeout=WATCHDOG_S)", False),
        ("run(source, timeout=1.5)", False),
        ("' '.join(words)", False),
    ],
)
def test_the_search_for_clocks_finds_them(text, found):
    assert bool(looks_at_time(ast.walk(ast.parse(text)))) is found


def private_names(nodes):
    """Return the private names of the packages that a test imports or replaces; ruff finds those that it accesses."""
    found = set()
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in PACKAGES:
            found |= {*node.module.split("."), *(alias.name for alias in node.names)}
        elif isinstance(node, ast.Import):
            found |= {
                part for alias in node.names if alias.name.split(".")[0] in PACKAGES for part in alias.name.split(".")
            }
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") in {"setattr", "delattr"}:
            texts = [each.value for each in node.args[:2] if isinstance(each, ast.Constant)]
            found |= {part for text in texts if isinstance(text, str) for part in text.split(".")}
    return sorted(name for name in found if name.startswith("_") and not name.startswith("__"))


def test_no_test_uses_a_private_name():
    assert {name: private for name, (_, private) in found_in_tests().items() if private} == {}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("from layoutkit.route.metal import _pads", ["_pads"]),
        ("from layoutkit._inner import pads", ["_inner"]),
        ("import skillpack._inner", ["_inner"]),
        ("monkeypatch.setattr(engine, '_work', [0])", ["_work"]),
        ("monkeypatch.setattr('layoutkit.place.engine._work', [0])", ["_work"]),
        ("from layoutkit.route import metal\nfrom x import _y\nmonkeypatch.setattr(os, 'replace', f)", []),
    ],
)
def test_the_search_for_private_names_finds_them(text, found):
    assert private_names(ast.walk(ast.parse(text))) == found


@pytest.mark.parametrize(
    ("text", "at_load"),
    [
        ("import klayout.db as kdb", ["klayout"]),
        ("from klayout import db", ["klayout"]),
        ("try:\n    import numba\nexcept ImportError:\n    numba = None", ["numba"]),
        ("class A:\n    import yaml", ["yaml"]),
        ("def f():\n    import klayout", []),
        ("if TYPE_CHECKING:\n    import klayout\nelse:\n    import numpy", ["numpy"]),
        ("import typing as t\nif t.TYPE_CHECKING:\n    import klayout", ["typing"]),
        ("from . import x\nfrom .y import z", []),
    ],
)
def test_the_reader_of_imports_sees_what_runs_at_load_time(text, at_load):
    """The checks above can fail."""
    assert [name for _, name in imports_at_load(ast.parse(text))] == at_load
