"""Layer expressions mean what set arithmetic says, and nothing else is accepted."""

from contextlib import suppress

import klayout.db as kdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layoutkit.errors import TechnologyError
from layoutkit.technology.expressions import evaluate, names, parse

CELLS = [(x, y) for x in range(4) for y in range(4)]


class Drawn:
    """Layers a, b, c as sets of unit squares."""

    def __init__(self, **squares):
        self.squares = squares

    def named(self, name):
        return kdb.Region([kdb.Box(x * 10, y * 10, x * 10 + 10, y * 10 + 10) for x, y in self.squares[name]]).merged()

    def numbered(self, layer, datatype):
        return self.named({(1, 0): "a", (2, 5): "b"}[(layer, datatype)])

    def length(self, length_um):
        return round(length_um * 1000)


def squares_in(region):
    def holds(x, y):
        return not (region & kdb.Region(kdb.Box(x * 10 + 1, y * 10 + 1, x * 10 + 9, y * 10 + 9))).is_empty()

    return {(x, y) for x, y in CELLS if holds(x, y)}


expressions = st.recursive(
    st.sampled_from(["a", "b", "c"]),
    lambda inner: st.tuples(inner, st.sampled_from("&|-^"), inner).map(lambda p: f"({p[0]} {p[1]} {p[2]})"),
    max_leaves=6,
)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(expressions, *(st.sets(st.sampled_from(CELLS)) for _ in range(3)))
def test_operators_are_those_of_sets(text, a, b, c):
    # Python's own sets know the same operators with the same precedence.
    expected = eval(text, {"__builtins__": {}}, {"a": a, "b": b, "c": c})  # noqa: S307 - text made here
    assert squares_in(evaluate(parse(text), Drawn(a=a, b=b, c=c))) == expected


@pytest.mark.parametrize("text", ["a & b - c", "a | b & c", "a - b | c", "a ^ b & c", "a - b - c"])
def test_precedence_is_that_of_python(text):
    a, b, c = {(0, 0), (1, 0), (2, 0)}, {(1, 0), (2, 0), (3, 0)}, {(2, 0), (0, 3)}
    expected = eval(text, {"__builtins__": {}}, {"a": a, "b": b, "c": c})  # noqa: S307 - text given above
    assert squares_in(evaluate(parse(text), Drawn(a=a, b=b, c=c))) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("interacting(a, b)", {(0, 0), (0, 1)}),
        ("not_interacting(a, b)", {(3, 3)}),
        ("overlapping(a, b)", set()),
        ("not_overlapping(a, b)", {(0, 0), (0, 1), (3, 3)}),
        ("inside(b, a | b)", {(1, 0)}),
        ("not_inside(b, a)", {(1, 0)}),
        ("interacting(1/0, 2/5)", {(0, 0), (0, 1)}),
        ("1 & a", {(0, 0), (0, 1), (3, 3)}),
        ("sized(b, 0.01)", {(0, 0), (1, 0), (2, 0), (0, 1), (1, 1), (2, 1)}),
        ("sized(a, -0.006)", set()),
        ("holes(sized(a, 0.01) - a)", {(0, 0), (0, 1), (3, 3)}),
        ("a + b", {(0, 0), (0, 1), (3, 3), (1, 0)}),
    ],
)
def test_functions_select_and_grow(text, expected):
    drawn = Drawn(a={(0, 0), (0, 1), (3, 3)}, b={(1, 0)})
    assert squares_in(evaluate(parse(text), drawn)) == expected


def test_holes_are_filled_shapes():
    ring = {(x, y) for x in range(3) for y in range(3)} - {(1, 1)}
    assert squares_in(evaluate(parse("holes(a)"), Drawn(a=ring))) == {(1, 1)}


def test_layers_are_left_as_they_were():
    drawn = Drawn(a={(0, 0)}, b={(1, 0)})
    region = drawn.named("a")
    drawn.named = lambda name: region if name == "a" else Drawn(b={(1, 0)}).named("b")
    evaluate(parse("a | b"), drawn)
    evaluate(parse("sized(a, 1)"), drawn)
    assert squares_in(region) == {(0, 0)}


def test_names_come_in_order_with_their_dots():
    assert list(names(parse("met1.pin & overlapping(a, b) - sized(c, 1)"))) == ["met1.pin", "a", "b", "c"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        "a b",
        "a &",
        "a * b",
        "a / b",
        "a if b else c",
        "lambda: a",
        "a[0]",
        "'a'",
        "1.5",
        "70000",
        "-1",
        "1/0/0",
        "True",
        "a == b",
        "not a",
        "~a",
        "f(a, b)",
        "inside(a)",
        "inside(a, b, c)",
        "inside(a, other=b)",
        "sized(a, b)",
        "sized(a, '1')",
        "a.b()",
        "a().b",
        "__import__('os')",
        "a; b",
        "a\nb",
        "a := b",
        "(" * 300 + "a" + ")" * 300,
        "a & " * 2000 + "a",
        "\x00",
    ],
)
def test_anything_else_is_refused(text):
    with pytest.raises(TechnologyError):
        parse(text)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.text(max_size=40))
def test_any_text_is_an_expression_or_a_technology_error(text):
    with suppress(TechnologyError):
        parse(text)
