"""Parameters of a netlist: their values in the scope of an instance, undefined ones, and values from the caller."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from layoutkit.circuit.readers.findings import MAX_NAME, shown_words
from layoutkit.circuit.readers.spice_expressions import evaluate, parse_number
from layoutkit.errors import NetlistError, did_you_mean, listed, sentences

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

MAX_SHOWN_USERS = 5


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
            hint = did_you_mean(name, names, 0.5) or f"; it has {shown_words(names) or 'none'}"
            if name in inner:
                hint = f"; subcircuit '{inner[name]}' has its own, which its instances set"
            yield f"the netlist uses no parameter '{name}'{hint}"


def _users(users: list[str]) -> str:
    more = " and more" if len(users) > MAX_SHOWN_USERS else ""
    return ", ".join(user[:MAX_NAME] for user in users[:MAX_SHOWN_USERS]) + more
