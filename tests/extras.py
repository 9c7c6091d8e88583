"""Packages that only extras install. Tests that need a missing one are skipped; others import it when they use it.

Every worker imports all test modules, but few of them run those that need a server or a cluster.
"""

import importlib
import importlib.util

import pytest


class Late:
    """A package that is imported when it is first used.

    Args:
        name: Its name.
    """

    def __init__(self, name):
        self._name = name

    def __getattr__(self, attribute):
        if attribute.startswith("_"):  # pytest looks such names up in every object of a module
            raise AttributeError(attribute)
        return getattr(importlib.import_module(self._name), attribute)


def extra(name, reason):
    """Return the package ``name``, or skip the test module if it is not installed."""
    if importlib.util.find_spec(name) is None:
        pytest.skip(reason, allow_module_level=True)
    return Late(name)
