"""Running a tool from its command line: help, schemas, one call, or serving many."""

from __future__ import annotations

import sys

from .call_log import log_path
from .cli import Request, command_line, read_request
from .envelope import SkillResult, to_json
from .faults import invalid_params
from .runtime import call
from .standard_streams import tell

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from .standard_streams import EnvelopeStream
    from .tool import Tool

PRETTY = 2  # characters of indentation


def run_command(tool: Tool, argv: Sequence[str], stdout: EnvelopeStream) -> int:
    """Do what the arguments ask for, write the answer to ``stdout`` and return the exit code."""
    parser = command_line(tool)
    request = read_request(parser, tool, list(argv))
    if request.help:
        stdout.write_line(parser.format_help().rstrip())
        return 0
    if request.schema:
        schemas = {"tool": tool.id, "input": tool.input_schema, "output": tool.output_schema}
        stdout.write_line(to_json(schemas, indent=PRETTY))
        return 0
    log = log_path(request.log)
    if not request.serve:
        result = call(tool, request.params, request.context, faults=request.faults, log=log)
    elif request.faults:
        result = SkillResult.failure(invalid_params(request.faults))
    else:
        from .worker import serve

        return serve({tool.id: tool}, stdout, log)
    stdout.write_line(result.to_json(indent=PRETTY if request.pretty else None))
    _summarise(result, request)
    return result.exit_code


def _summarise(result: SkillResult, request: Request) -> None:
    """Say in words on the terminal what went wrong; a program reads the envelope instead."""
    if result.error is not None and sys.stderr is not None and sys.stderr.isatty():
        tell(f"{result.error.code}: {result.error.message}" + ("\nsee --help" if request.faults else ""))
