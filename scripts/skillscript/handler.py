"""Skills whose code is a module ``handler.py`` with ``execute(params, context)``, as a function or in a class.

As a program it runs such a module as a skill script: ``python handler.py HANDLER TOOL_ID [arguments of the script]``.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from skillscript.tool import Handler

_MODULE = "handler"


def load_handler(path: str | Path) -> Handler:
    """Return ``execute(params, context)`` of the module at ``path``; an ``async`` one is awaited.

    It is the module's function ``execute``, else the method of its class ``Skill``, else that of the only class with
    such a method (base classes of another such class do not count). The class is instantiated once, without arguments.

    Raises:
        SkillError: INTERNAL_ERROR if there is no such function or class, or several classes.
    """
    import inspect
    from importlib.util import module_from_spec, spec_from_file_location

    spec = spec_from_file_location(_MODULE, path)
    if spec is None or spec.loader is None:
        raise _unusable(f"{path} is not a Python module")
    module = sys.modules[_MODULE] = module_from_spec(spec)
    spec.loader.exec_module(module)
    found: Any = getattr(module, "execute", None)
    if not callable(found):
        found = _skill_class(module)().execute

    def execute(params: dict[str, Any], context: dict[str, Any]) -> dict[str, Any]:
        answer = found(params, context)
        if inspect.iscoroutine(answer):
            import asyncio

            answer = asyncio.run(answer)
        result: dict[str, Any] = answer  # anything else is refused by the caller's check
        return result

    return execute


def _skill_class(module: Any) -> type[Any]:
    """Return the class of a module whose ``execute`` is the skill's."""
    import inspect

    classes = [
        value
        for value in dict.fromkeys(item for item in vars(module).values() if inspect.isclass(item))
        if value.__module__ == _MODULE and callable(getattr(value, "execute", None)) and not inspect.isabstract(value)
    ]
    last = [kind for kind in classes if not any(other is not kind and issubclass(other, kind) for other in classes)]
    named = [kind for kind in last if kind.__name__ == "Skill"] or last
    if not named:
        raise _unusable("handler.py has neither a function execute(params, context) nor a class with such a method")
    if len(named) > 1:
        names = ", ".join(sorted(kind.__name__ for kind in named))
        raise _unusable(f"handler.py has several classes with execute: {names}; call one of them Skill")
    chosen: type[Any] = named[0]
    return chosen


def _unusable(text: str) -> Exception:
    from skillscript.envelope import ErrorCode, SkillError

    return SkillError(ErrorCode.INTERNAL_ERROR, text)


def run_handler(path: str, tool_id: str, arguments: list[str]) -> int:
    """Run the handler at ``path`` as a skill script with these arguments, and return its exit code."""
    import os

    sys.path.insert(0, os.path.dirname(os.path.realpath(path)))  # noqa: PTH120 - where its own modules are
    sys.argv = [path, *arguments]
    from skillscript.program import main

    loaded: list[Handler] = []

    def execute(params: dict[str, Any], context: dict[str, Any]) -> dict[str, Any]:
        if not loaded:
            loaded.append(load_handler(path))
        return loaded[0](params, context)

    return main(path, tool_id, execute)


if __name__ == "__main__":
    del sys.path[0]  # this package's folder: its modules must not be found as top-level modules
    raise SystemExit(run_handler(sys.argv[1], sys.argv[2], sys.argv[3:]))
