"""Running a tool from its command line: help, schemas, one call, or serving many."""

from __future__ import annotations

import sys

from . import supervisor
from .call_log import log_path
from .cli import Request, command_line, read_request
from .envelope import EXIT_CODES, ErrorCode, SkillResult, to_json
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
        return _written(stdout, parser.format_help().rstrip(), 0)
    if request.schema:
        schemas = {"tool": tool.id, "input": tool.input_schema, "output": tool.output_schema}
        return _written(stdout, to_json(schemas, indent=PRETTY), 0)
    log = log_path(request.log)
    if not request.serve:
        supervisor.split(stdout, {tool.id: tool}, supervisor.Call(tool.id, request.params, request.context), log)
        result = call(tool, request.params, request.context, faults=request.faults, log=log)
    elif request.faults:
        result = SkillResult.failure(invalid_params(request.faults))
    else:
        from .worker import serve

        return serve({tool.id: tool}, stdout, log)
    code = _written(stdout, result.to_json(indent=PRETTY if request.pretty else None), result.exit_code)
    _summarise(result, request)
    return code


def _written(stdout: EnvelopeStream, text: str, code: int) -> int:
    """Write the answer and return the exit code: ``code``, or 4 if nobody can read the answer."""
    if stdout.write_line(text):
        return code
    if stdout.was_closed:
        tell("the answer cannot be written: standard output is closed")
    return EXIT_CODES[ErrorCode.INTERNAL_ERROR]


def _summarise(result: SkillResult, request: Request) -> None:
    """Say in words on the terminal what went wrong; a program reads the envelope instead."""
    if result.error is not None and sys.stderr is not None and sys.stderr.isatty():
        tell(f"{result.error.code}: {result.error.message}" + ("\nsee --help" if request.faults else ""))
