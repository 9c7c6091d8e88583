"""The layout engine: from an analog netlist to a checked mask layout, for Python programs and notebooks.

Five functions do what the tools of the skills do; ``layoutkit.python_api`` describes them::

    import layoutkit

    layoutkit.technology("sky130A")                      # layers, rules and devices of a process
    ota = layoutkit.circuit("ota.spice")                 # a netlist with its devices, nets and matched groups
    layoutkit.draw("nmos", "sky130A", w=4, l=0.5, nf=2)  # one device or matched group [um], as a layout
    built = layoutkit.build(ota, "sky130A")              # the whole layout, with its report
    layoutkit.check(built.layout, ota)                   # DRC and LVS

In Jupyter each result shows itself. Importing this package imports nothing else: a function loads what it needs.

``technology``, ``circuit`` and ``draw`` are also packages of the engine; calling the package calls the function.
"""

import sys
from importlib import import_module
from types import ModuleType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from inspect import Signature
    from typing import Any

    from layoutkit.python_api import build, check, circuit, draw, technology

__all__ = ["build", "check", "circuit", "draw", "technology"]

_PACKAGES = frozenset({"circuit", "draw", "technology"})


def _function(name: str) -> "Any":
    return getattr(import_module("layoutkit.python_api"), name)


class _CallablePackage(ModuleType):
    """A package of the engine that also is the function of its name."""

    def __call__(self, *arguments: "Any", **options: "Any") -> "Any":
        """Call the function of ``layoutkit.python_api`` that has this package's name."""
        return _function(self.__name__.rpartition(".")[2])(*arguments, **options)

    @property
    def __signature__(self) -> "Signature":
        from inspect import signature

        return signature(_function(self.__name__.rpartition(".")[2]))


class _Engine(ModuleType):
    """This package, which makes each package of ``_PACKAGES`` callable when Python binds it here after its import."""

    def __setattr__(self, name: str, value: object) -> None:
        if name in _PACKAGES and isinstance(value, ModuleType):
            value.__class__ = _CallablePackage
        super().__setattr__(name, value)


def __getattr__(name: str) -> "Any":
    """Return the function ``name``, imported when it is first used."""
    if name in _PACKAGES:
        return import_module(f"{__name__}.{name}")
    if name in __all__:
        return _function(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> "list[str]":
    """Return the public names, loaded or not."""
    return sorted({*globals(), *__all__})


sys.modules[__name__].__class__ = _Engine
