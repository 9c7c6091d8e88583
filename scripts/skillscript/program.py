"""Make a program of a handler: command line, help, schemas, one call or many (``--serve``)."""

from __future__ import annotations

import gc
import sys

from .call_log import log_path
from .envelope import EXIT_CODES, ErrorCode, SkillError, SkillResult, invalid_params, to_json
from .runtime import Stopped, call, error_of, stop_on_signals
from .standard_streams import print_error, take_stdout
from .supervisor import RunningCall, split
from .tool import load_tool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from .arguments import CommandRequest
    from .standard_streams import EnvelopeStream
    from .tool import Handler, Tool, Verdict

PRETTY = 2  # characters of indentation
RARELY = (50_000, 20, 20)  # new objects and so on before Python looks for garbage: by default that is 5 % of a build


def main(
    script_file: str,
    tool_id: str,
    execute: Handler,
    *,
    violates: Verdict | None = None,
    argv: Sequence[str] | None = None,
) -> int:
    """Run a skill script from its command line and return its exit code.

    Standard output carries the envelope and nothing else for the rest of the process's life; call this once, at the
    end of a script. To run a tool inside another program use ``call``.

    Args:
        script_file: The script's ``__file__``; the schemas are found from it.
        tool_id: Dotted id of the tool.
        execute: ``execute(params, context) -> data``.
        violates: Returns from ``data`` whether the design violates something, which is exit code 1.
        argv: Arguments without the program's name, default ``sys.argv[1:]``.
    """
    gc.set_threshold(*RARELY)
    given = sys.argv[1:] if argv is None else argv
    return _answered(lambda stdout: _run(load_tool(script_file, tool_id, execute, violates), given, stdout))


def serve_tools(
    script_file: str, handlers: Mapping[str, tuple[Handler, Verdict | None]], *, argv: Sequence[str] | None = None
) -> int:
    """Run a program whose one process serves several tools of a skill, and return its exit code.

    It is started with ``--serve`` alone; each request names its ``tool``. As with ``main``, standard output carries
    answers and nothing else for the rest of the process's life.

    Args:
        script_file: The program's ``__file__``; the schemas are found from it.
        handlers: ``execute`` and ``violates`` by tool id, as for ``main``.
        argv: Arguments without the program's name, default ``sys.argv[1:]``.
    """
    given = list(sys.argv[1:] if argv is None else argv)

    def work(stdout: EnvelopeStream) -> int:
        from .worker import serve

        if given != ["--serve"]:
            text = f"this program takes --serve only, got {' '.join(given)!r}"
            raise SkillError(ErrorCode.INVALID_PARAM, text)
        tools = {name: load_tool(script_file, name, *handler) for name, handler in handlers.items()}
        return serve(tools, stdout, log_path(None))

    return _answered(work)


def _answered(work: Callable[[EnvelopeStream], int]) -> int:
    """Return the exit code of ``work``, which writes to the stream it gets; answer in its place if it fails."""
    stdout = take_stdout()
    try:
        stop_on_signals()
        return work(stdout)
    except (Exception, KeyboardInterrupt, SystemExit, Stopped) as problem:  # noqa: BLE001 - the outermost boundary
        error, traceback = error_of(problem)
        print_error(traceback)
        result = SkillResult.failure(error)
        try:
            stdout.write_line(result.to_json())
        except OSError as unwritable:
            print_error(f"the answer cannot be written: {unwritable.strerror}")
            return EXIT_CODES[ErrorCode.INTERNAL_ERROR]
        return result.exit_code


def _run(tool: Tool, argv: Sequence[str], stdout: EnvelopeStream) -> int:
    """Carry out the command line, write the answer to ``stdout`` and return the exit code."""
    from .arguments import command_line, read_request

    parser = command_line(tool)
    request = read_request(parser, tool, list(argv))
    if request.help:
        return _written(stdout, parser.format_help().rstrip(), 0)
    if request.schema:
        schemas = {"tool": tool.id, "input": tool.input_schema, "output": tool.output_schema}
        return _written(stdout, to_json(schemas, indent=PRETTY), 0)
    log = log_path(request.log)
    if not request.serve:
        split(stdout, {tool.id: tool}, RunningCall(tool.id, request.params, request.context), log)
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
    """Write the answer and return the exit code: ``code``, or 4 if standard output is closed."""
    if stdout.write_line(text):
        return code
    if stdout.was_closed:
        print_error("the answer cannot be written: standard output is closed")
    return EXIT_CODES[ErrorCode.INTERNAL_ERROR]


def _summarise(result: SkillResult, request: CommandRequest) -> None:
    """Report an error on the terminal in words; a program reads the envelope instead."""
    if result.error is not None and sys.stderr is not None and sys.stderr.isatty():
        print_error(f"{result.error.code}: {result.error.message}" + ("\nsee --help" if request.faults else ""))
