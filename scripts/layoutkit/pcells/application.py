"""Start the PCell libraries inside KLayout's application, whose macro calls ``start``.

The application brings its own database module, ``pya``. Layouts made by a ``klayout`` package from
PyPI are unknown to the application, so this module makes ``klayout.db`` the application's ``pya``.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


def start(technologies: Mapping[str, str]) -> list[str]:
    """Register one library per technology and return their names.

    Args:
        technologies: Name of the KLayout technology by shipped technology or path of a technology file.

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
        RuntimeError: If there is no ``pya`` with an application, or another ``klayout.db`` is already loaded.
    """
    try:
        pya = import_module("pya")
    except ImportError:
        pya = None
    if pya is None or not hasattr(pya, "Application"):
        raise RuntimeError("this runs inside KLayout's application; elsewhere call layoutkit.pcells.registration")
    loaded = sys.modules.get("klayout.db")
    if loaded is not None and loaded is not pya and loaded.Layout is not pya.Layout:
        raise RuntimeError("klayout.db from PyPI is already loaded; start the PCell libraries first")
    package = sys.modules.setdefault("klayout", ModuleType("klayout"))
    sys.modules["klayout.db"] = pya
    package.db = pya  # type: ignore[attr-defined]
