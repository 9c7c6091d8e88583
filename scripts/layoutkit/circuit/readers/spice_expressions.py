"""Numbers, parameters and arithmetic of SPICE netlists, evaluated without ever running code.

A number may carry a scale suffix (``10u``, ``2.5pF``, ``1MEG``, case-insensitive; letters after the suffix are unit
names and ignored). An expression knows numbers, parameter names, ``+ - * / % ** ^``, comparisons, ``&& || !``,
``c ? a : b``, parentheses and the functions of ``FUNCTIONS``; nothing else is reachable.

Parameters have values in the scope of an instance, may be undefined, and may get values from the caller.
"""

from __future__ import annotations

import math
import operator
import re
from typing import TYPE_CHECKING

from layoutkit.errors import MAX_NAME, NetlistError, did_you_mean, listed, sentences

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    Lookup = Callable[[str], float]
    Binary = Callable[[float, float], float]

MAX_EXPRESSION_LENGTH = 4096
MAX_EXPRESSION_DEPTH = 64
_SCALE_EXPONENTS = {"t": 12, "g": 9, "meg": 6, "x": 6, "k": 3, "m": -3, "u": -6, "µ": -6, "μ": -6}
_SCALE_EXPONENTS |= {"n": -9, "p": -12, "f": -15, "a": -18}
_METRES_PER_MIL = 25.4e-6
_NUMBER = r"(?P<mantissa>\d+\.?\d*|\.\d+)(?:[eE](?P<exponent>[+-]?\d{1,4}))?(?P<letters>[A-Za-zµμ]*)"
_SIGNED_NUMBER = re.compile(rf"(?P<sign>[+-]?){_NUMBER}")
_TOKEN = re.compile(
    rf"\s*(?:(?P<number>{_NUMBER})|(?P<name>[A-Za-z_][\w.]*)|(?P<op>\*\*|[<>=!]=|&&|\|\||[-+*/%^()?:,<>!]))"
)
MAX_SHOWN_USERS = 5


def parse_number(text: str) -> float | None:
    """Return the value of a SPICE number, or ``None`` when ``text`` is not one.

    The suffix is applied to the decimal text, so ``0.42u`` is the same float as ``4.2e-7``.
    """
    match = _SIGNED_NUMBER.fullmatch(text)
    if match is None:
        return None
    value = _scaled(match["mantissa"], match["exponent"], match["letters"])
    return -value if match["sign"] == "-" else value


def _scaled(mantissa: str, exponent: str | None, letters: str) -> float:
    suffix = letters.lower()
    if suffix.startswith("mil"):
        return float(f"{mantissa}e{int(exponent or 0)}") * _METRES_PER_MIL
    scale = _SCALE_EXPONENTS.get("meg" if suffix.startswith("meg") else suffix[:1], 0)
    return float(f"{mantissa}e{int(exponent or 0) + scale}")


def _integer_part(value: float) -> float:
    return float(math.trunc(value))


def _sign(value: float) -> float:
    return math.copysign(1.0, value) if value else 0.0


FUNCTIONS: dict[str, tuple[int, Callable[..., float]]] = {
    "int": (1, _integer_part),
    "abs": (1, abs),
    "sqrt": (1, math.sqrt),
    "exp": (1, math.exp),
    "ln": (1, math.log),
    "log": (1, math.log),
    "log10": (1, math.log10),
    "floor": (1, lambda value: float(math.floor(value))),
    "ceil": (1, lambda value: float(math.ceil(value))),
    "round": (1, lambda value: math.floor(abs(value) + 0.5) * _sign(value)),
    "nint": (1, lambda value: math.floor(abs(value) + 0.5) * _sign(value)),
    "sgn": (1, _sign),
    "pow": (2, math.pow),
    "pwr": (2, lambda base, power: _sign(base) * math.pow(abs(base), power)),
    "min": (-1, min),
    "max": (-1, max),
}
"""Function name to (number of arguments, -1 for one or more; the function)."""
_LEVELS: tuple[dict[str, Binary], ...] = (
    {"||": lambda a, b: float(bool(a) or bool(b))},
    {"&&": lambda a, b: float(bool(a) and bool(b))},
    {"==": operator.eq, "!=": operator.ne, "<=": operator.le, ">=": operator.ge, "<": operator.lt, ">": operator.gt},
    {"+": operator.add, "-": operator.sub},
    {"*": operator.mul, "/": operator.truediv, "%": math.fmod},
)


def evaluate(text: str, lookup: Lookup) -> float:
    """Return the value of an expression.

    Args:
        text: The expression, without the quotes or braces around it.
        lookup: Value of a parameter by its lowercase name; raises ``KeyError`` for an unknown one.

    Raises:
        NetlistError: If the text is not an expression, names something unknown, or has no finite value.
    """
    if len(text) > MAX_EXPRESSION_LENGTH:
        raise NetlistError(f"expression of {len(text)} characters is longer than {MAX_EXPRESSION_LENGTH}")
    try:
        value = float(_Evaluation(text, lookup).result())
    except (ZeroDivisionError, OverflowError, ValueError) as error:
        raise NetlistError(f"expression '{text}' has no value: {error}") from None
    if not math.isfinite(value):
        raise NetlistError(f"expression '{text}' has no finite value")
    return value


class _Evaluation:
    """One pass of recursive descent over one expression."""

    def __init__(self, text: str, lookup: Lookup) -> None:
        self._text = text
        self._lookup = lookup
        tokens = []
        position = 0
        while text[position:].strip():
            match = _TOKEN.match(text, position)
            if match is None:
                raise NetlistError(f"expression '{text}' has '{text[position:].strip()[0]}' where it is not understood")
            kind = "number" if match["number"] else "name" if match["name"] else str(match["op"])
            tokens.append((kind, match))
            position = match.end()
        self._tokens = tokens
        self._position = 0
        self._depth = 0

    def _peek(self) -> str:
        return self._tokens[self._position][0] if self._position < len(self._tokens) else "end"

    def _take(self) -> tuple[str, re.Match[str]]:
        if self._position >= len(self._tokens):
            raise NetlistError(f"expression '{self._text}' ends too early")
        self._position += 1
        return self._tokens[self._position - 1]

    def _expect(self, kind: str) -> None:
        if self._peek() != kind:
            raise NetlistError(f"expression '{self._text}' lacks '{kind}'")
        self._position += 1

    def result(self) -> float:
        value = self._ternary()
        if self._peek() != "end":
            raise NetlistError(f"expression '{self._text}' has '{self._take()[1].group().strip()}' left over")
        return value

    def _deeper(self, part: Callable[[], float]) -> float:
        """Return the value of a part that contains others."""
        self._depth += 1
        if self._depth > MAX_EXPRESSION_DEPTH:
            raise NetlistError(f"expression is nested deeper than {MAX_EXPRESSION_DEPTH} levels")
        value = part()
        self._depth -= 1
        return value

    def _ternary(self) -> float:
        return self._deeper(self._choice)

    def _choice(self) -> float:
        value = self._binary(0)
        if self._peek() != "?":
            return value
        self._position += 1
        if_true = self._ternary()
        self._expect(":")
        if_false = self._ternary()
        return if_true if value else if_false

    def _binary(self, level: int) -> float:
        if level == len(_LEVELS):
            return self._unary()
        value = self._binary(level + 1)
        while self._peek() in _LEVELS[level]:
            operation = _LEVELS[level][self._take()[0]]
            value = float(operation(value, self._binary(level + 1)))
        return value

    def _unary(self) -> float:
        sign = 1.0
        while self._peek() in {"+", "-"}:
            sign = -sign if self._take()[0] == "-" else sign
        if self._peek() == "!":
            self._position += 1
            return sign * float(not self._deeper(self._unary))
        return sign * self._power()

    def _power(self) -> float:
        base = self._primary()
        if self._peek() not in {"**", "^"}:
            return base
        self._position += 1
        return math.pow(base, self._deeper(self._unary))

    def _primary(self) -> float:
        kind, match = self._take()
        if kind == "number":
            return _scaled(match["mantissa"], match["exponent"], match["letters"])
        if kind == "(":
            value = self._ternary()
            self._expect(")")
            return value
        if kind != "name":
            raise NetlistError(f"expression '{self._text}' has '{kind}' where a value is needed")
        name = match["name"].lower()
        if self._peek() == "(":
            return self._call(name)
        try:
            return self._lookup(name)
        except KeyError:
            raise NetlistError(f"parameter '{match['name']}' is not defined") from None

    def _call(self, name: str) -> float:
        if name not in FUNCTIONS:
            raise NetlistError(f"function '{name}' is not known; known are {', '.join(sorted(FUNCTIONS))}")
        count, function = FUNCTIONS[name]
        self._expect("(")
        arguments = [self._ternary()]
        while self._peek() == ",":
            self._position += 1
            arguments.append(self._ternary())
        self._expect(")")
        if count not in {-1, len(arguments)}:
            raise NetlistError(f"function '{name}' takes {count} arguments, got {len(arguments)}")
        return float(function(*arguments))


class OpenParametersError(NetlistError):
    """An expression uses parameters that nothing defines.

    Attributes:
        names: All of them.
        at_one: The value of the expression if each of them were 1; None where it has none.
    """

    def __init__(self, names: Iterable[str], at_one: float | None = None) -> None:
        self.names, self.at_one = tuple(dict.fromkeys(names)), at_one
        super().__init__(listed(f"parameter '{name}' is not defined" for name in self.names))


class Scope:
    """Parameter values as one instance sees them: its overrides, its definition's defaults, the deck's globals.

    Values are evaluated when first needed, so a parameter nobody uses cannot fail.

    Args:
        outer: Where names that are not defined here are looked up.
        fallback: Expressions of names that are defined neither here nor outside.
    """

    def __init__(self, outer: Scope | None = None, fallback: Mapping[str, str] | None = None) -> None:
        self._outer = outer
        self._fallback: Mapping[str, str] = fallback or {}
        self._layers: list[tuple[Mapping[str, str], Scope]] = []
        self._values: dict[str, float] = {}
        self._open: dict[str, tuple[str, ...]] = {}
        self._active: dict[str, None] = {}  # in the order in which they depend on each other

    def define(self, params: Mapping[str, str], evaluated_in: Scope | None = None) -> None:
        """Set parameters to expressions that are evaluated in ``evaluated_in`` (default: in this scope).

        What is defined later wins. The mapping is kept, not copied: a subcircuit's instances share its defaults.
        """
        self._layers.append((params, evaluated_in or self))

    def lookup(self, name: str) -> float:
        """Return a parameter's value.

        Raises:
            KeyError: If it is not defined.
            OpenParametersError: If it depends on parameters that are not defined.
            NetlistError: If it depends on itself or its expression is faulty.
        """
        if name in self._values:
            return self._values[name]
        if name in self._open:
            raise OpenParametersError(self._open[name])
        found = self._expression(name)
        if found is None:
            try:
                return self._lookup_outside(name)
            except KeyError:
                if name not in self._fallback:
                    raise
                found = (self._fallback[name], self)
        if name in self._active:  # "w={w}" passes the value from outside on
            try:
                if next(reversed(self._active)) == name:
                    return self._lookup_outside(name)
            except KeyError:
                if self._expression(name) is None:
                    raise  # the card's own size, of a parameter that nothing defines
            raise NetlistError(f"parameter '{name}' depends on itself")
        text, scope = found
        self._active[name] = None
        try:
            self._values[name] = scope.value(text)
        except OpenParametersError as error:
            self._open[name] = error.names
            raise
        finally:
            del self._active[name]
        return self._values[name]

    def _expression(self, name: str) -> tuple[str, Scope] | None:
        return next(((params[name], scope) for params, scope in reversed(self._layers) if name in params), None)

    def _lookup_outside(self, name: str) -> float:
        if self._outer is None:
            raise KeyError(name)
        return self._outer.lookup(name)

    def value(self, text: str) -> float:
        """Return the value of a number or expression in this scope.

        Raises:
            OpenParametersError: If it depends on parameters that are not defined; the error names all of them.
            NetlistError: If it has no value.
        """
        number = parse_number(text)
        if number is not None and math.isfinite(number):
            return number
        missing: list[str] = []

        def lookup(name: str) -> float:
            try:
                return self.lookup(name)
            except KeyError:
                missing.append(name)
            except OpenParametersError as error:
                missing.extend(error.names)
            return 1.0  # the evaluation goes on to find other undefined names

        result: float | None = None
        try:
            result = evaluate(text.strip("'"), lookup)
        except NetlistError:
            if not missing:
                raise
        if missing or result is None:
            raise OpenParametersError(missing, result)
        return result


class GivenParameters(dict[str, str]):
    """Values of parameters that the caller gives, by lowercase name, with a record of which of them were used.

    Args:
        given: Name to number or SPICE expression, such as ``{"w0": "2u"}``.

    Raises:
        NetlistError: If a value is not a finite number or expression, or a name is given twice in two spellings.
    """

    def __init__(self, given: Mapping[str, str | float] | None) -> None:
        super().__init__()
        self.used: set[str] = set()
        faults = []
        for name, value in (given or {}).items():
            if (
                isinstance(value, bool)
                or not isinstance(value, str | int | float)
                or value in ("", math.inf, -math.inf)
            ):
                faults.append(f"'{name}' must be a number or an expression such as \"2u\", got {value!r}")
            elif name.lower() in self:
                faults.append(f"'{name}' is given twice; upper and lower case are one name")
            else:
                self[name.lower()] = repr(value) if not isinstance(value, str) else value.strip().strip("'\"{}")
        for name in self:
            faults += self._fault_of(name)
        self.used.clear()
        if faults:
            raise NetlistError(f"Invalid parameters: {sentences(faults)}", details={"param_name": "parameters"})

    def _fault_of(self, name: str) -> list[str]:
        scope = Scope()
        scope.define(self)
        try:
            scope.lookup(name)
        except OpenParametersError:
            return []  # it may use parameters of the netlist
        except NetlistError as error:
            return [f"'{name}': {error}"]
        return []

    def __getitem__(self, name: str) -> str:
        self.used.add(name)
        return super().__getitem__(name)

    def faults(self, missing: Mapping[str, list[str]], known: Iterable[str], inner: Mapping[str, str]) -> Iterator[str]:
        """Yield what is wrong once a netlist has been read: all open parameters in one text, then each unused one.

        Args:
            missing: Parameters that nothing defines, with the devices that use them.
            known: Parameters that the netlist itself sets where these may replace them.
            inner: Parameters of subcircuits below the top, with a subcircuit that has it.
        """
        if missing:
            found = [f"parameter '{name}' is not defined (used by {_users(users)})" for name, users in missing.items()]
            example = listed(f'"{name}": ...' for name in missing)
            yield f"{sentences(found)}; give each a value: parameters {{{example}}}"
        names = sorted({*known, *missing, *self.used})
        for name in sorted(self.keys() - set(names)):
            hint = did_you_mean(name, names, 0.5) or f"; it has {listed(names, joint=' ') or 'none'}"
            if name in inner:
                hint = f"; subcircuit '{inner[name]}' has its own, which its instances set"
            yield f"the netlist uses no parameter '{name}'{hint}"


def _users(users: list[str]) -> str:
    more = " and more" if len(users) > MAX_SHOWN_USERS else ""
    return ", ".join(user[:MAX_NAME] for user in users[:MAX_SHOWN_USERS]) + more
