"""Make a program of a handler: command line, help, schemas, one call or many.

With ``--serve`` the program is a warm worker that answers each line, a JSON request, with one line, an envelope.
Request: ``{"id": text or integer, "params": {...}, "context": {...}, "timeout_s": number}``. Answer: ``{"id": the same,
ok, error, data, duration_ms, exit_code}``. A line that is not such a request is answered with INVALID_PARAM, and the
worker continues. It ends when its input ends, when its output is closed, or on SIGTERM or Ctrl-C. It also ends after a
call that left threads or child processes, so that they do not affect the next call; that answer has ``"last": true``.
Working folder, environment variables and ``sys.path`` are restored after each call.

When a file of the skill or of a loaded module was edited, it runs nothing more: it answers SERVICE_UNAVAILABLE with
``"stale": true, "last": true`` and ends, so that a new worker can answer the same request.

A call that takes longer than its ``timeout_s`` is answered with TIMEOUT shortly afterwards and ends the worker,
whatever it is doing (see ``supervisor``).

A program may serve several tools in one process (``serve_tools``), so that they share loaded data; each request
then names its ``tool``.
"""

from __future__ import annotations

import gc
import os
import sys
import time
from contextlib import suppress
from pathlib import Path

from sturdy.atomic_files import state_of
from sturdy.strict_json import MAX_BYTES, NotJsonError, parse_json

from .envelope import EXIT_CODES, ErrorCode, Fault, SkillError, SkillResult, invalid_params, to_json
from .runtime import Stopped, call, error_of, stop_on_signals
from .schema import find_faults
from .standard_streams import log_path, print_error, take_stdin, take_stdout
from .supervisor import RunningCall, has_threads, split
from .tool import DECLARATIONS, HANDLER, load_tool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, BinaryIO

    from sturdy.atomic_files import FileState

    from .standard_streams import EnvelopeStream
    from .tool import Handler, Tool, Verdict

PRETTY = 2  # characters of indentation
RARELY = (50_000, 20, 20)  # new objects and so on before Python looks for garbage: by default that is 5 % of a build
_REQUEST_SCHEMA: dict[str, Any] = parse_json(Path(__file__).with_name("request.schema.json").read_bytes())
_FOLDERS = ("scripts", "schemas", "assets", "templates", "resources")  # of a skill, that its tools are made of
_INSTALLED = (
    os.path.dirname(os.__file__) + os.sep,  # noqa: PTH120 - compared as text
    f"{os.sep}site-packages{os.sep}",
    f"{os.sep}dist-packages{os.sep}",
)


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
        return serve({tool.id: tool}, stdout, log)
    code = _written(stdout, result.to_json(indent=PRETTY if request.pretty else None), result.exit_code)
    # on a terminal also in words; a program reads the envelope
    if result.error is not None and sys.stderr is not None and sys.stderr.isatty():
        print_error(f"{result.error.code}: {result.error.message}" + ("\nsee --help" if request.faults else ""))
    return code


def _written(stdout: EnvelopeStream, text: str, code: int) -> int:
    """Write the answer and return the exit code: ``code``, or 4 if standard output is closed."""
    if stdout.write_line(text):
        return code
    if stdout.was_closed:
        print_error("the answer cannot be written: standard output is closed")
    return EXIT_CODES[ErrorCode.INTERNAL_ERROR]


def serve(tools: Mapping[str, Tool], stdout: EnvelopeStream, log: str | None) -> int:
    """Answer the requests on standard input until it ends; return the exit code: 0, or 4 if standard output is closed.

    Args:
        tools: The tools served, by id. A request need not name the only one.
        stdout: Where the answers go.
        log: File to append call records to.
    """
    if stdout.was_closed:
        print_error("no answer can be written: standard output is closed")
        return EXIT_CODES[ErrorCode.INTERNAL_ERROR]
    split(stdout, tools, None, log)
    requests = take_stdin()
    surroundings = _Surroundings()
    sources = _LoadedSources(tools)
    try:
        while True:
            line = _next_line(requests)
            if line == b"":
                return 0
            begin = time.time_ns()
            stale = sources.edited()
            request_id, result = _answer(tools, stdout, None if stale else log, line, stale=stale)
            answer = {"id": request_id, **result.to_dict(), "exit_code": result.exit_code}
            last = stale or not surroundings.restore()
            sources.take_note(begin)
            if stale:
                answer["stale"] = True
            if last:
                answer["last"] = True
            if not stdout.write_line(to_json(answer)) or result.stopped or last:
                return 0
    except (Stopped, KeyboardInterrupt):
        return 0


class _LoadedSources:
    """The files of the skill, and of the modules this process has loaded, except Python's own and installed packages.

    A warm worker must not answer with stale code.
    """

    def __init__(self, tools: Mapping[str, Tool]) -> None:
        self._tools = tuple(tools.values())
        self._skill_files = self._files_of_skill()
        self._known: set[str] = set()  # installed ones too
        self._seen: dict[str, FileState | None] = {}
        self._modules: tuple[int, str] = (0, "")
        self.take_note(time.time_ns())

    def take_note(self, since: int) -> None:
        """Note the modules loaded by now; those not noted before were loaded after ``since`` [ns since 1970].

        A file written between its loading and now is one that has been edited.
        """
        modules = len(sys.modules), next(reversed(sys.modules))  # the one loaded last is at the end
        if modules == self._modules:
            return
        self._modules = modules
        now = time.time_ns()
        for module in list(sys.modules.values()):
            file = getattr(module, "__file__", None)
            if not isinstance(file, str) or file in self._known:
                continue
            self._known.add(file)
            if any(part in file for part in _INSTALLED):
                continue
            stamp = state_of(file)
            self._seen[file] = None if stamp is not None and since <= stamp[0] <= now else stamp

    def edited(self) -> bool:
        """Return whether one of them has been edited or removed, or one was added to the skill."""
        if self._skill_files != self._files_of_skill():
            return True
        return any(stamp is None or stamp != state_of(file) for file, stamp in self._seen.items())

    def _files_of_skill(self) -> dict[str, FileState | None]:
        """Return the state of the files that the tools are made of, by path."""
        found = {file: state_of(file) for tool in self._tools for file in tool.shared_files}
        for home in {tool.skill_dir for tool in self._tools if tool.skill_dir}:
            found.update((f"{home}/{name}", state_of(f"{home}/{name}")) for name in (*DECLARATIONS, HANDLER))
            for folder in _FOLDERS:
                with suppress(OSError), os.scandir(home / folder) as entries:
                    found.update((each.path, state_of(each.path)) for each in entries if each.name != "__pycache__")
        return found


class _Surroundings:
    """The state of the process that a call may change and that is restored after it."""

    def __init__(self) -> None:
        self._folder = os.getcwd()  # noqa: PTH109 - compared as text
        self._environment = dict(os.environ)
        self._encoded = dict(_encoded_environment())
        self._path = list(sys.path)

    def restore(self) -> bool:
        """Restore everything; return whether that was possible."""
        sys.path[:] = self._path
        if _encoded_environment() != self._encoded:
            os.environ.clear()
            os.environ.update(self._environment)
        try:
            os.chdir(self._folder)
        except OSError:
            return False
        return not has_threads() and not _has_children()


def _encoded_environment() -> Mapping[Any, Any]:
    """Return the environment variables in the form in which Python holds them, which is the quickest to compare."""
    held: Mapping[Any, Any] = getattr(os.environ, "_data", os.environ)
    return held


def _has_children() -> bool:
    """Return whether child processes run; those that have ended are reaped."""
    if not hasattr(os, "waitpid") or not hasattr(os, "WNOHANG"):
        return False
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


def _next_line(requests: BinaryIO) -> bytes | None:
    """Return the next line, ``b""`` at the end of the input, ``None`` for a line longer than allowed."""
    line = requests.readline(MAX_BYTES + 1)
    if len(line) <= MAX_BYTES or line.endswith(b"\n"):
        return line
    while line and not line.endswith(b"\n"):
        line = requests.readline(MAX_BYTES)
    return None


def _answer(
    tools: Mapping[str, Tool], stdout: EnvelopeStream, log: str | None, line: bytes | None, *, stale: bool
) -> tuple[Any, SkillResult]:
    """Return the id of the request in a line and its result; a stale worker runs nothing."""
    if line is None:
        return None, _refused(Fault("", f"the request is longer than the {MAX_BYTES} bytes allowed on one line"))
    try:
        request = parse_json(line)
    except NotJsonError as fault:
        return None, _refused(Fault("", f"the request: {fault}"))
    faults = find_faults(request, _REQUEST_SCHEMA)
    request_id = request.get("id") if isinstance(request, dict) else None
    if faults:
        return request_id if isinstance(request_id, (str, int)) else None, _refused(*faults)
    wanted = request.get("tool", next(iter(tools)) if len(tools) == 1 else "")
    if wanted not in tools:
        known = sorted(tools)
        return request_id, _refused(Fault("tool", f"tool must be one of {', '.join(known)}", wanted, known))
    if stale:
        text = "the program has been edited since this process started; start a new process"
        return request_id, SkillResult.failure(SkillError(ErrorCode.SERVICE_UNAVAILABLE, text))
    params, context = request.get("params", {}), request.get("context")
    logged = {"params": params, "context": context} if log is not None else {}
    begun = {"tool": wanted, "request_id": request_id, "served": True, "seconds": request.get("timeout_s")}
    stdout.announce({**begun, **logged})
    return request_id, call(tools[wanted], params, context, log=log)


def _refused(*faults: Fault) -> SkillResult:
    return SkillResult.failure(invalid_params(faults))
