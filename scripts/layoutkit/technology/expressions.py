"""Layer expressions such as ``nsdm & diff - nwell``: parsed once, evaluated to a region any number of times.

An expression holds layer names (``met1``, ``met1.pin``), GDS numbers (``68/20``; ``68`` alone means ``68/0``), the
operators below and a few functions. Nothing else is accepted; no part of it is ever executed as Python.

==========================  ==========================================================================
``a & b``                   where both are
``a | b`` (or ``a + b``)    where either is
``a - b``                   where ``a`` is and ``b`` is not
``a ^ b``                   where exactly one is
``interacting(a, b)``       the polygons of ``a`` that overlap or touch ``b``
``not_interacting(a, b)``   the other polygons of ``a``
``overlapping(a, b)``       the polygons of ``a`` that share area with ``b`` (touching is not enough)
``not_overlapping(a, b)``   the other polygons of ``a``
``inside(a, b)``            the polygons of ``a`` that lie wholly in ``b``
``not_inside(a, b)``        the other polygons of ``a``
``holes(a)``                the holes of ``a``
``squares(a)``              the polygons of ``a`` that are squares
``own(a)``                  the shapes of the layer ``a`` in the checked cell itself, without those of cells below it
``sized(a, d)``             ``a`` with every edge moved outward by ``d`` um (inward where negative)
==========================  ==========================================================================

As in Python ``-`` and ``+`` bind closer than ``&``, ``&`` closer than ``^``, ``^`` closer than ``|``.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol, TypeAlias

from layoutkit.errors import TechnologyError

if TYPE_CHECKING:
    from collections.abc import Iterator

    import klayout.db as kdb

    from layoutkit.technology.technology import Technology

MAX_LENGTH = 2000
SELECTIONS = ("interacting", "not_interacting", "overlapping", "not_overlapping", "inside", "not_inside")
FUNCTIONS = {**dict.fromkeys(SELECTIONS, 2), "holes": 1, "own": 1, "squares": 1, "sized": 2}
_OPERATORS: dict[type[ast.operator], str] = {
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.Add: "|",
    ast.Sub: "-",
    ast.BitXor: "^",
}


class Layers(Protocol):
    """The layers that an expression refers to."""

    def named(self, name: str) -> kdb.Region:
        """Return the merged shapes of the layer or derived layer ``name``."""

    def numbered(self, layer: int, datatype: int) -> kdb.Region:
        """Return the merged shapes of a GDS layer."""

    def own(self, name: str) -> kdb.Region:
        """Return the merged shapes of the layer ``name`` in the cell itself."""

    def length(self, length_um: float) -> int:
        """Return ``length_um`` in the units of the regions."""


@dataclass(frozen=True)
class Named:
    """A layer or derived layer by name."""

    name: str


@dataclass(frozen=True)
class Numbered:
    """A layer by GDS number."""

    layer: int
    datatype: int


@dataclass(frozen=True)
class Boolean:
    """Two expressions joined by ``& | - ^``."""

    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True)
class Selection:
    """A function applied to one layer: ``other`` for the selections, ``length_um`` for ``sized``, none for the rest."""

    function: str
    layer: Expression
    other: Expression | None = None
    length_um: float = 0.0


Expression: TypeAlias = "Named | Numbered | Boolean | Selection"


@lru_cache(maxsize=4096)
def parse(text: str) -> Expression:
    """Return the expression that ``text`` states.

    Raises:
        TechnologyError: If it is not an expression of layers; the message states where and what is allowed.
    """
    if not text.strip() or len(text) > MAX_LENGTH:
        raise TechnologyError(f"a layer expression has 1 to {MAX_LENGTH} characters, got {len(text)}")
    try:
        return _expression(ast.parse(text.strip(), mode="eval").body, text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise TechnologyError(f"layer expression '{text}' cannot be read: {error}") from error


def names(expression: Expression) -> Iterator[str]:
    """Yield every layer name in ``expression``, from left to right."""
    if isinstance(expression, Named):
        yield expression.name
    elif isinstance(expression, Boolean):
        yield from names(expression.left)
        yield from names(expression.right)
    elif isinstance(expression, Selection):
        yield from names(expression.layer)
        if expression.other is not None:
            yield from names(expression.other)


def whole_layers(expression: Expression) -> Iterator[Named | Numbered]:
    """Yield the layers that ``expression`` contains whole: itself, parts of a union, arguments of ``sized``."""
    if isinstance(expression, (Named, Numbered)):
        yield expression
    elif isinstance(expression, Boolean) and expression.operator == "|":
        yield from whole_layers(expression.left)
        yield from whole_layers(expression.right)
    elif isinstance(expression, Selection) and expression.function == "sized":
        yield from whole_layers(expression.layer)


def require(text: str, technology: Technology, within: tuple[str, ...] = ()) -> None:
    """Check that ``text`` can be read and names only layers that ``technology`` has.

    Args:
        text: An expression.
        technology: Its layers, roles, aliases and derived layers.
        within: The derived layers whose definitions refer to this expression.

    Raises:
        TechnologyError: If it cannot or does not, or a derived layer is defined through itself.
    """
    for name in names(parse(text)):
        derived = technology.derived.get(name)
        if name in within:
            raise TechnologyError(f"derived layer '{name}' is defined through itself: {' -> '.join((*within, name))}")
        if derived is None:
            technology.spec(name)
        else:
            require(derived, technology, (*within, name))


def evaluate(expression: Expression, layers: Layers) -> kdb.Region:
    """Return the merged region that ``expression`` describes; the regions of ``layers`` are not changed."""
    if isinstance(expression, Named):
        return layers.named(expression.name)
    if isinstance(expression, Numbered):
        return layers.numbered(expression.layer, expression.datatype)
    if isinstance(expression, Boolean):
        return _boolean(expression, layers)
    return _selection(expression, layers).merged()


def _boolean(expression: Boolean, layers: Layers) -> kdb.Region:
    left = evaluate(expression.left, layers)
    if left.is_empty() and expression.operator in {"&", "-"}:
        return left
    right = evaluate(expression.right, layers)
    if right.is_empty():
        return right if expression.operator == "&" else left
    if expression.operator == "&":
        return (left & right).merged()
    if expression.operator == "-":
        return (left - right).merged()
    return ((left | right) if expression.operator == "|" else (left ^ right)).merged()


def _selection(expression: Selection, layers: Layers) -> kdb.Region:
    if expression.function == "own" and isinstance(expression.layer, Named):
        return layers.own(expression.layer.name)
    layer = evaluate(expression.layer, layers)
    if layer.is_empty():
        return layer
    if expression.function == "holes":
        return layer.holes()
    if expression.function == "squares":
        return layer.squares()
    if expression.other is None:
        return layer.sized(layers.length(expression.length_um))
    method = getattr(layer, expression.function)  # one of SELECTIONS, which are kdb.Region's own names
    return method(evaluate(expression.other, layers))  # type: ignore[no-any-return]


def _expression(node: ast.expr, text: str) -> Expression:
    if isinstance(node, ast.Name):
        return Named(node.id)
    if isinstance(node, ast.Attribute):
        return Named(_dotted(node, text))
    if isinstance(node, ast.Constant):
        return Numbered(_gds_number(node, text), 0)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        return Numbered(_gds_number(node.left, text), _gds_number(node.right, text))
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        return Boolean(_OPERATORS[type(node.op)], _expression(node.left, text), _expression(node.right, text))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return _call(node, node.func.id, text)
    raise _fault(text, node, "only layer names, GDS numbers, & | - ^ ( ) and the known functions are allowed")


def _call(node: ast.Call, function: str, text: str) -> Selection:
    if function not in FUNCTIONS:
        raise _fault(text, node, f"there is no function '{function}'; there are: {', '.join(sorted(FUNCTIONS))}")
    if len(node.args) != FUNCTIONS[function] or node.keywords:
        raise _fault(text, node, f"'{function}' takes {FUNCTIONS[function]} argument(s)")
    layer = _expression(node.args[0], text)
    if function == "own" and not isinstance(layer, Named):
        raise _fault(text, node, "'own' takes the name of a layer")
    if function in {"holes", "own", "squares"}:
        return Selection(function, layer)
    if function == "sized":
        return Selection(function, layer, length_um=_number(node.args[1], text))
    return Selection(function, layer, _expression(node.args[1], text))


def _dotted(node: ast.expr, text: str) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value, text)}.{node.attr}"
    raise _fault(text, node, "a dot is allowed only in a layer name")


def _number(node: ast.expr, text: str) -> float:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_number(node.operand, text)
    if isinstance(node, ast.Constant) and type(node.value) in {int, float}:
        return float(node.value)  # type: ignore[arg-type]
    raise _fault(text, node, "a length in um is a plain number")


def _gds_number(node: ast.expr, text: str) -> int:
    if isinstance(node, ast.Constant) and type(node.value) is int and 0 <= node.value <= 65535:
        return node.value
    raise _fault(text, node, "a GDS layer is a whole number from 0 to 65535, or two with a '/' between them")


def _fault(text: str, node: ast.expr, reason: str) -> TechnologyError:
    return TechnologyError(f"layer expression '{text}', column {node.col_offset + 1}: {reason}")
