"""Start the PCell libraries inside KLayout's application, whose macro calls ``start``.

The application brings its own database module, ``pya``. A ``klayout`` package of PyPI beside it would make layouts that
the application does not know, so ``klayout.db`` is ``pya`` here, whatever is installed.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


def start(technologies: Mapping[str, str]) -> list[str]:
    """Register one library a technology and return their names.

    Args:
        technologies: Shipped technology or path of a technology file -> name of the KLayout technology it is for.

    Raises:
        RuntimeError: If this does not run inside KLayout's application.
        LayoutkitError: If there is no such technology.
    """
    use_application()
    from layoutkit.pcells.registration import register

    return [
        register(name, klayout_technology=klayout_name).name() for name, klayout_name in sorted(technologies.items())
    ]


def use_application() -> None:
    """Make ``klayout.db`` the application's own ``pya``.

    Raises:
        RuntimeError: If there is no ``pya`` with an application, or another ``klayout.db`` is in use already.
    """
    try:
        pya = import_module("pya")
    except ImportError:
        pya = None
    if pya is None or not hasattr(pya, "Application"):
        raise RuntimeError("this runs inside KLayout's application; elsewhere call layoutkit.pcells.registration")
    loaded = sys.modules.get("klayout.db")
    if loaded is not None and loaded is not pya and loaded.Layout is not pya.Layout:
        raise RuntimeError("klayout.db of PyPI is loaded already; start the PCell libraries before what loads it")
    package = sys.modules.setdefault("klayout", ModuleType("klayout"))
    sys.modules["klayout.db"] = pya
    package.db = pya  # type: ignore[attr-defined]
