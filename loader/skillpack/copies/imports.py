"""What a module imports and which files beside it it reads, found in its text; nothing is executed."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_IMPORT_ERRORS = frozenset({"ImportError", "ModuleNotFoundError", "Exception", "BaseException"})
_DYNAMIC = frozenset({"import_module", "__import__", "run_module", "find_spec", "executable"})
_NAME = re.compile(r"\.{0,3}[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
_FILE = re.compile(r"[\w.*-]+(?:/[\w.*-]+)*")
_HOLDERS = (ast.stmt, ast.excepthandler, ast.match_case)  # what a statement can be in: no expression
_MAX_TEXT = 200  # characters of a string that may name a module or a file


class Import(NamedTuple):
    """One imported name.

    Attributes:
        module: Dotted name as written, with leading dots if it is relative.
        name: The name that is imported from the module; "" for ``import module``.
        optional: Whether the module handles its absence.
    """

    module: str
    name: str = ""
    optional: bool = False


class OwnFile(NamedTuple):
    """A place that is computed from ``__file__``.

    Attributes:
        levels: How many folders up: 1 is the module's own folder.
        pattern: Path below that folder, or "" for the folder itself.
    """

    levels: int
    pattern: str = ""


@dataclass(frozen=True)
class ModuleUse:
    """What one module uses.

    Attributes:
        imports: What it imports, also inside functions and in code that it passes to another Python.
        lazy: Where a package's ``__getattr__`` finds names, as its ``if TYPE_CHECKING`` block declares: each with its
            module.
        is_lazy: Whether the module has a ``__getattr__``.
        own_files: Places computed from ``__file__``.
        texts: Short strings, with ``*`` for what is computed; only of modules that have ``own_files`` or import
            dynamically.
        is_dynamic: Whether it imports modules, or starts programs, that are named by strings.
    """

    imports: tuple[Import, ...]
    lazy: dict[str, str]
    is_lazy: bool
    own_files: tuple[OwnFile, ...]
    texts: tuple[str, ...]
    is_dynamic: bool


def use_of(path: Path) -> ModuleUse:
    """Return what the module at ``path`` uses.

    Raises:
        SyntaxError: If it is not Python of this version.
    """
    return _use_of(path.read_bytes(), path.name)


@lru_cache(maxsize=1000)  # the modules of one distribution serve all skills
def _use_of(source: bytes, name: str) -> ModuleUse:
    tree = ast.parse(source, name)
    nodes = list(_executed(tree))
    is_lazy = any(isinstance(node, ast.FunctionDef) and node.name == "__getattr__" for node in tree.body)
    own_files = tuple(sorted(_own_files(tree))) if b"__file__" in source else ()
    called = {node.id for node in nodes if isinstance(node, ast.Name)}
    called |= {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    called |= {alias.name for node in nodes if isinstance(node, ast.ImportFrom) for alias in node.names}
    is_dynamic = not _DYNAMIC.isdisjoint(called)
    texts = sorted(set(_texts(nodes))) if own_files or is_dynamic else []
    imports = [*_imports(tree), *_attributes(nodes)]
    if "executable" in called:
        imports += _imports_of_code(nodes)
    return ModuleUse(tuple(sorted(set(imports))), _declared_lazily(tree), is_lazy, own_files, tuple(texts), is_dynamic)


def _is_for_types(test: ast.expr) -> bool:
    return (isinstance(test, ast.Name) and test.id == "TYPE_CHECKING") or (
        isinstance(test, ast.Attribute) and test.attr == "TYPE_CHECKING"
    )


def _children(node: ast.AST) -> Iterator[ast.AST]:
    """Return the nodes directly below ``node`` that are executed: no block for type checkers."""
    if isinstance(node, ast.If) and _is_for_types(node.test):
        return iter(node.orelse)
    return ast.iter_child_nodes(node)


def _executed(node: ast.AST) -> Iterator[ast.AST]:
    waiting = [node]
    while waiting:
        place = waiting.pop()
        yield place
        waiting += _children(place)


def _imports(tree: ast.AST) -> Iterator[Import]:
    """Yield the import statements; one below ``try`` with a handler for its failure is optional."""
    waiting: list[tuple[ast.AST, bool]] = [(tree, False)]
    while waiting:
        node, optional = waiting.pop()
        yield from _imported(node, optional)
        guarded = isinstance(node, ast.Try) and any(map(_handles_absence, node.handlers))
        body = set(map(id, node.body)) if isinstance(node, ast.Try) and guarded else set()
        inner = (child for child in _children(node) if isinstance(child, _HOLDERS))
        waiting += [(child, optional or id(child) in body) for child in inner]


def _imported(node: ast.AST, optional: bool) -> Iterator[Import]:
    if isinstance(node, ast.Import):
        yield from (Import(alias.name, optional=optional) for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        module = "." * node.level + (node.module or "")
        yield from (Import(module, alias.name, optional) for alias in node.names)


def _handles_absence(handler: ast.ExceptHandler) -> bool:
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    names = {kind.id for kind in kinds if isinstance(kind, ast.Name)}
    return handler.type is None or not names.isdisjoint(_IMPORT_ERRORS)


def _attributes(nodes: list[ast.AST]) -> Iterator[Import]:
    """Yield what is used of imported modules as an attribute, such as ``package.name``, which may import it lazily."""
    modules: dict[str, str] = {}
    for node in nodes:
        if isinstance(node, ast.Import):
            modules |= {alias.asname or alias.name.partition(".")[0]: _bound(alias) for alias in node.names}
    for node in nodes:
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in modules:
            yield Import(modules[node.value.id], node.attr, optional=True)


def _bound(alias: ast.alias) -> str:
    """Return the module that an ``import`` statement binds to a name."""
    return alias.name if alias.asname else alias.name.partition(".")[0]


def _imports_of_code(nodes: list[ast.AST]) -> list[Import]:
    """Return what programs import that are written in strings, for ``python -c``."""
    found: list[Import] = []
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "import " in node.value:
            try:
                found += _imports(ast.parse(node.value))
            except SyntaxError:  # prose
                continue
    return found


def _declared_lazily(tree: ast.Module) -> dict[str, str]:
    found: dict[str, str] = {}
    for block in tree.body:
        if isinstance(block, ast.If) and _is_for_types(block.test):
            for node in block.body:
                if isinstance(node, ast.ImportFrom):
                    module = "." * node.level + (node.module or "")
                    found |= {alias.asname or alias.name: module for alias in node.names}
    return found


def _texts(nodes: list[ast.AST]) -> Iterator[str]:
    inner = {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            text = "".join(_text_of(part) for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inner:
            text = node.value
        else:
            continue
        if len(text) <= _MAX_TEXT and (_FILE.fullmatch(text) or _NAME.fullmatch(text)):
            yield text


def _text_of(part: ast.expr) -> str:
    return part.value if isinstance(part, ast.Constant) and isinstance(part.value, str) else "*"


def _own_files(tree: ast.AST) -> set[OwnFile]:
    """Return the places that expressions with ``__file__`` name."""
    parents = {id(child): node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id == "__file__"]
    return {place for name in names if (place := _place(name, parents)).levels > 0}


def _place(name: ast.AST, parents: dict[int, ast.AST]) -> OwnFile:
    """Return the place named by the largest expression around ``name`` that is understood."""
    levels = 0
    steps: tuple[str, ...] = ()
    node: ast.AST = name
    while (outer := parents.get(id(node))) is not None:
        if isinstance(outer, ast.Attribute):
            levels += outer.attr == "parent"
        elif isinstance(outer, ast.Subscript) and isinstance(outer.slice, ast.Constant):
            levels += int(outer.slice.value) + 1 if isinstance(outer.slice.value, int) else 0
        elif isinstance(outer, ast.Call):
            called = outer.func
            title = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
            texts = tuple(_text_of(part) for part in outer.args if part is not node)
            levels += title in {"dirname", "with_name"}
            steps += texts if title in {"with_name", "joinpath", "join"} else ()
        elif isinstance(outer, ast.BinOp) and isinstance(outer.op, ast.Div) and outer.left is node:
            steps += (_text_of(outer.right),)
        else:
            break
        node = outer
    return OwnFile(levels, "/".join(steps))
