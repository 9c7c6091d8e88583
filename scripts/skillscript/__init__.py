"""What turns a Python function into a skill script: one envelope, one command line, one set of error codes.

A script needs three lines::

    from skillscript import main
    def execute(params, context): ...
    if __name__ == "__main__":
        raise SystemExit(main(__file__, "layout.create_nmos_pcell", execute))

Every name below is imported when it is first used, so that ``import skillscript`` and a script's ``--help`` stay
cheap. The command line, codes and exit codes are described in ``references/envelope.md``.
"""

import sys

if sys.version_info < (3, 10):  # noqa: UP036 - a copy of a skill has this package beside it, whatever Python runs it
    raise ImportError("skillscript needs Python 3.10 or newer", name="skillscript")

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sturdy.near_names import did_you_mean
    from sturdy.strict_json import parse_json

    from .envelope import ErrorCode, Fault, SkillError, SkillResult, invalid_params
    from .handler import load_handler
    from .model_call import ModelAnswer, Task, ask_model, prompt_variables, render_file
    from .model_client import ModelSettings, model_settings
    from .program import main, serve_tools
    from .runtime import call
    from .schema import check_schema, fill_defaults, find_faults, validate
    from .standard_streams import append_record
    from .tool import Tool, declared_models, load_tool

_PUBLIC = {
    "standard_streams": ("append_record",),
    "envelope": ("ErrorCode", "Fault", "SkillError", "SkillResult", "invalid_params"),
    "handler": ("load_handler",),
    "model_call": ("ModelAnswer", "Task", "ask_model", "prompt_variables", "render_file"),
    "model_client": ("ModelSettings", "model_settings"),
    "program": ("main", "serve_tools"),
    "runtime": ("call",),
    "schema": ("check_schema", "fill_defaults", "find_faults", "validate"),
    "sturdy.near_names": ("did_you_mean",),
    "sturdy.strict_json": ("parse_json",),
    "tool": ("Tool", "declared_models", "load_tool"),
}
_HOMES = {name: home for home, names in _PUBLIC.items() for name in names}

__all__ = ["ErrorCode", "Fault", "SkillError", "SkillResult", "Tool", "append_record", "call", "invalid_params"]
__all__ += ["load_handler", "load_tool", "main", "serve_tools"]
__all__ += ["check_schema", "did_you_mean", "fill_defaults", "find_faults", "parse_json", "validate"]
__all__ += ["ModelAnswer", "ModelSettings", "Task", "ask_model", "declared_models", "model_settings"]
__all__ += ["prompt_variables", "render_file"]


def __getattr__(name: str) -> object:
    """Return the public ``name``, importing the module it lives in."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'skillscript' has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(home if home.startswith("sturdy.") else f"{__name__}.{home}"), name)
    globals()[name] = value
    return value
