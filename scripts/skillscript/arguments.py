"""Read a tool's command line, which is generated from its input schema.

A top-level property ``gate_length`` becomes ``--gate-length VALUE``, and ``graphId`` becomes ``--graph-id`` (or
``--graphId``). A boolean becomes ``--x`` / ``--no-x`` (or ``--x true|false``). Arrays and objects are given as JSON
text or ``@FILE``. A value that cannot be read as the required type is passed on as text, so that the schema check
reports it together with all other faults.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import sys
import textwrap
from dataclasses import dataclass, field
from pathlib import Path

from sturdy.near_names import did_you_mean
from sturdy.schema_acceptance import EVERY_TYPE, is_type, types_of
from sturdy.strict_json import MAX_BYTES, NotJsonError, parse_json

from .envelope import ErrorCode, Fault, SkillError, show
from .schema_references import described

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, NoReturn

    from .tool import Tool

# An option's destination starts with a blank, so that it cannot be the name of a parameter; that of a parameter given
# by its place starts with this.
_PLACE = "\t"
_NO_VALUE = object()
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_CAMEL = re.compile(r"(?<=[a-z0-9])[A-Z]")
_NEGATIVE = re.compile(r"-[.\d]")
_METAVARS = {"string": "TEXT", "number": "NUMBER", "integer": "INTEGER"}
_EXIT_CODES = (
    "Exit codes: 0 done; 1 done, but the design violates something; 2 bad input; 3 a needed program is missing;\n"
    "4 internal error or timeout."
)
_EPILOG = (
    "Standard output carries one JSON envelope {ok, error, data, duration_ms}; messages go to standard error.\n"
    + _EXIT_CODES
)


@dataclass
class CommandRequest:
    """A request as the command line states it.

    Attributes:
        params: Parameters of the call.
        context: Context of the call, ``None`` if not given.
        log: Log file that the command line names.
        help: Show the help.
        schema: Show the schemas.
        serve: Serve requests from standard input.
        pretty: Indent the envelope.
        faults: What is wrong with the command line itself.
    """

    params: Any
    context: Any = None
    log: str | None = None
    help: bool = False
    schema: bool = False
    serve: bool = False
    pretty: bool = False
    faults: list[Fault] = field(default_factory=list)


class _Parser(argparse.ArgumentParser):
    """Raises an error for the envelope instead of ending the process."""

    def error(self, message: str) -> NoReturn:
        raise SkillError(ErrorCode.INVALID_PARAM, f"{message}; see --help")


class _HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Shows ``--w NUMBER``. Values are optional to argparse, so that a missing one is reported with all faults."""

    def _format_args(self, action: argparse.Action, default_metavar: str) -> str:
        return (
            str(action.metavar or default_metavar)
            if action.nargs == "?"
            else super()._format_args(action, default_metavar)
        )


@dataclass(frozen=True)
class Command:
    """How a command for people gives the parameters of a tool.

    Attributes:
        name: What is typed, such as ``skillpack build``.
        arguments: Parameters that are given without their names, in order.
        options: Short options by the parameter that they give.
        help: What stands in the help instead of the tool's description and examples.
    """

    name: str
    arguments: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    help: str = ""


def command_line(tool: Tool, command: Command | None = None) -> argparse.ArgumentParser:
    """Return the parser of ``tool``'s command line. It collects texts; ``read_request`` turns them into values.

    Args:
        tool: The tool.
        command: The command that runs it. Default: its own script.
    """
    places = "".join(f" [{shown_name(name)}]" for name in command.arguments) if command else ""
    parser = _Parser(
        usage=f"{command.name}{places} [OPTIONS]"
        if command
        else f"{Path(sys.argv[0]).name} [--PARAMETER VALUE ...] [--params JSON|FILE|-]",
        description=textwrap.fill((command and command.help) or _description(tool), 100),
        epilog=_EXIT_CODES if command else _examples(tool) + _EPILOG,
        formatter_class=_HelpFormatter,
        allow_abbrev=False,
        add_help=False,
        argument_default=argparse.SUPPRESS,
    )
    group = parser.add_argument_group("parameters")
    for name in command.arguments if command else ():
        parser.add_argument(f"{_PLACE}{name}", nargs="?", metavar=shown_name(name), help=argparse.SUPPRESS)
    for name, schema in _flag_properties(tool):
        _add_parameter(group, name, schema, tool, command)
    group = parser.add_argument_group("options")
    values = {"nargs": "?", "const": _NO_VALUE, "action": "append"}
    for option, metavar, text in (
        ("params", "JSON|FILE|-", "all parameters as one JSON object: text, a file, @file, or - for standard input"),
        ("context", "JSON|FILE", "the call's context as a JSON object (user_profile, session_context, ...)"),
        ("log", "FILE", "append a JSON line with inputs and result to FILE (default: $ANALOG_LAYOUT_LOG)"),
    ):
        group.add_argument(f"--{option}", dest=f" {option}", metavar=metavar, help=text, **values)  # type: ignore[arg-type]
    for option, text in (
        ("serve", "answer JSON requests from standard input, one per line, until it ends"),
        ("schema", "print the input and output schemas and exit"),
        ("pretty", "indent the envelope"),
        ("help", "show this help and exit"),
    ):
        names = ("-h", "--help") if option == "help" else (f"--{option}",)
        group.add_argument(*names, dest=f" {option}", action="store_true", help=text)
    return parser


_RESERVED = ("params", "context", "log", "serve", "schema", "pretty", "help")


def read_request(parser: argparse.ArgumentParser, tool: Tool, argv: list[str]) -> CommandRequest:
    """Return the request that ``argv`` states, with all its faults in ``faults``."""
    flags = {flag: action.nargs != 0 for action in parser._actions for flag in action.option_strings}  # noqa: SLF001
    given, extra = parser.parse_known_args(_joined_negatives(argv, flags))
    found: dict[str, Any] = {}
    for name, value in vars(given).items():
        if name.startswith(_PLACE):
            found.setdefault(name[len(_PLACE) :], []).append(value)
        elif name in found:
            found[name] += value
        else:
            found[name] = value
    request = CommandRequest(params={})
    for option in ("help", "schema", "serve", "pretty"):
        setattr(request, option, bool(found.get(f" {option}")))
    request.faults += _unknown_arguments(extra, flags)
    last = {name: _last(name, found[name], request) for name in found}
    request.log = _path_option(last.get(" log"))
    if " params" in last and last[" params"] is not _NO_VALUE:
        request.params = _document(" params", last[" params"], request)
    if " context" in last and last[" context"] is not _NO_VALUE:
        request.context = _document(" context", last[" context"], request)
    given_flags = [name for name in last if not name.startswith(" ")]
    if request.serve and (given_flags or " params" in last or " context" in last):
        text = "--serve takes parameters and context from the requests on standard input, not from the command line"
        request.faults.append(Fault("--serve", text))
    if not isinstance(request.params, dict):
        return request
    for name, schema in _flag_properties(tool):
        if name in last and last[name] is not _NO_VALUE:
            request.params[name] = _value(name, last[name], _types(schema, tool.input_schema), request)
    return request


def _flag_properties(tool: Tool) -> list[tuple[str, dict[str, Any]]]:
    """Return the properties that have a flag; one named like an option is reached through ``--params`` alone."""
    properties = {
        name: described(schema, tool.input_schema) for name, schema in tool.input_schema.get("properties", {}).items()
    }
    return [
        (name, schema if isinstance(schema, dict) else {})
        for name, schema in properties.items()
        if _kebab(name) not in _RESERVED
    ]


def _add_parameter(
    group: argparse._ArgumentGroup, name: str, schema: dict[str, Any], tool: Tool, command: Command | None
) -> None:
    types = _types(schema, tool.input_schema)
    short = [command.options[name]] if command and name in command.options else []
    flags = [*short, f"--{_kebab(name)}", *([f"--{name}"] if _CAMEL.search(name) else [])]
    options: dict[str, Any] = {
        "dest": name,
        "nargs": "?",
        "const": _NO_VALUE,
        "action": "append",
        "help": _help_text(name, schema, tool),
    }
    if types == {"boolean"}:
        if command is None:
            group.add_argument(*flags, **{**options, "const": True, "metavar": "true|false"})
        else:  # a word that follows is an argument
            group.add_argument(*flags, dest=name, action="append_const", const=True, help=options["help"])
        group.add_argument(
            f"--no-{_kebab(name)}", dest=name, action="append_const", const=False, help=argparse.SUPPRESS
        )
        return
    choices = schema.get("enum")
    if choices and all(isinstance(item, str) for item in choices) and len(choices) <= 8:
        metavar = "{" + ",".join(choices) + "}"
    else:
        metavar = _METAVARS.get(next(iter(types)), "JSON") if len(types) == 1 else "VALUE"
    group.add_argument(*flags, metavar=metavar, **options)


def _help_text(name: str, schema: dict[str, Any], tool: Tool) -> str:
    notes = []
    if name in tool.input_schema.get("required", ()):
        notes.append("required")
    choices = schema.get("enum")
    if choices and len(choices) > 8:
        notes.append("one of " + ", ".join(map(str, choices)))
    if "default" in schema:
        notes.append(f"default: {json.dumps(schema['default'], ensure_ascii=False)}")
    if "x-env" in schema:
        notes.append(f"or ${schema['x-env']}")
    if _types(schema, tool.input_schema) == {"boolean"}:
        notes.append(f"--no-{_kebab(name)} for false")
    text = _paragraphs(str(schema.get("description", "")))
    noted = f"{text} [{'; '.join(notes)}]" if notes else text
    return noted.strip().replace("%", "%%")


def _paragraphs(text: str) -> str:
    """Return a description in one paragraph; the first of several is often a title without a full stop."""
    paragraphs = [paragraph.strip() for paragraph in text.strip().split("\n\n")]
    ended = (paragraph if paragraph.endswith((".", ":", "!", "?")) else f"{paragraph}." for paragraph in paragraphs)
    return paragraphs[0] if len(paragraphs) == 1 else " ".join(ended)


def _description(tool: Tool) -> str:
    of_script = getattr(sys.modules.get(getattr(tool.execute, "__module__", "")), "__doc__", None)
    return str(tool.input_schema.get("description") or of_script or tool.id)


def _examples(tool: Tool) -> str:
    """Return the examples of the schema as commands; a file of the skill gets the path from the current folder."""
    lines = []
    script = sys.argv[0]
    for example in tool.input_schema.get("examples", ()):
        if isinstance(example, dict):
            words = [word for name, value in example.items() for word in _flag_words(name, _from_here(value, script))]
            lines.append("  python " + " ".join([shlex.quote(script), *words]))
    return "examples:\n" + "\n".join(lines) + "\n\n" if lines else ""


def _from_here(value: Any, script: str) -> Any:
    """Return a value of an example; ``assets/x`` as the path from the current folder to that file of the skill."""
    if isinstance(value, str) and value.startswith("assets/"):
        file = Path(script).parent.parent / value
        return str(file) if file.exists() else value
    return value


def _flag_words(name: str, value: Any) -> list[str]:
    if value is True:
        return [f"--{_kebab(name)}"]
    if value is False:
        return [f"--no-{_kebab(name)}"]
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return [f"--{_kebab(name)}", shlex.quote(text)]


def shown_name(name: str) -> str:
    """Return how the help calls a parameter that is given by its place."""
    return "FILE" if name.endswith("_path") else name.upper()


def _kebab(name: str) -> str:
    return _CAMEL.sub(lambda match: f"-{match[0].lower()}", name).replace("_", "-")


def _joined_negatives(argv: list[str], flags: dict[str, bool]) -> list[str]:
    """Return ``argv`` with ``--w -1e-6`` written ``--w=-1e-6``, which argparse would read as an option."""
    joined: list[str] = []
    for word in argv:
        if joined and flags.get(joined[-1]) and _NEGATIVE.match(word):
            joined[-1] += "=" + word
        else:
            joined.append(word)
    return joined


def _unknown_arguments(extra: list[str], flags: dict[str, bool]) -> list[Fault]:
    faults = []
    known = sorted(flag for flag in flags if flag.startswith("--"))
    follows_unknown = False
    for word in extra:
        if word.startswith("-") and len(word) > 1 and not _NEGATIVE.match(word):
            flag = word.split("=", 1)[0]
            hint = did_you_mean(flag.replace("_", "-"), known) or "; see --help"
            faults.append(Fault(flag, f"Unknown option: {flag}{hint}", word, known))
            follows_unknown = "=" not in word
        elif follows_unknown:  # the unknown option's own value
            follows_unknown = False
        else:
            faults.append(Fault(word, f"Unexpected argument: {word}; parameters are given as --name VALUE", word))
    return faults


def _fault(name: str, reason: str, value: Any = None) -> Fault:
    """Return the fault of the flag with destination ``name``; a parameter's path is its name."""
    flag = f"--{_kebab(name.strip())}"
    return Fault(flag if name.startswith(" ") else name, f"{flag}: {reason}", value)


def _last(name: str, values: Any, request: CommandRequest) -> Any:
    """Return the value of a flag; a missing value and a second one are faults."""
    if not isinstance(values, list):
        return values
    if len(values) > 1:
        request.faults.append(_fault(name, f"is given {len(values)} times; give it once"))
    if values[-1] is _NO_VALUE:
        request.faults.append(_fault(name, "needs a value"))
    return values[-1]


def _path_option(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _types(schema: Any, root: dict[str, Any]) -> set[str]:
    """Return the JSON types a property may have; all of them if its schema does not say."""
    schema = described(schema, root)
    if not isinstance(schema, dict):
        return set(EVERY_TYPE)
    branches = [*schema.get("anyOf", ()), *schema.get("oneOf", ())]
    if branches and not {"type", "enum", "const"} & set(schema):
        return {name for branch in branches for name in _types(branch, root)}
    return types_of(schema)


def _value(name: str, text: Any, types: set[str], request: CommandRequest) -> Any:
    """Return the value that a flag's ``text`` means, or the text itself if it has none of the ``types``."""
    if not isinstance(text, str) or types == {"string"}:
        return text
    if types & {"number", "integer"} and _NUMBER.fullmatch(text):
        return _number(text)
    if text.startswith("@") and types & {"array", "object"}:
        return _document(name, text, request)
    try:
        value = parse_json(text)
    except NotJsonError as fault:
        if types & {"array", "object"} and text.lstrip().startswith(("[", "{")):
            request.faults.append(_fault(name, str(fault), text))
        return text
    return value if any(is_type(value, name) for name in types) or "string" not in types else text


def _number(text: str) -> int | float | str:
    try:
        return int(text)
    except ValueError:
        return float(text)


def _document(name: str, text: str, request: CommandRequest) -> Any:
    """Return the JSON value that ``text`` is or names: JSON text, ``-`` for standard input, ``@FILE`` or ``FILE``."""
    try:
        if text == "-":
            return parse_json(_bounded(sys.stdin.buffer.read))
        if text.lstrip("\ufeff \t\r\n")[:1] in ("{", "["):
            return parse_json(text)
        return parse_json(_file_text(text.removeprefix("@")))
    except NotJsonError as fault:
        request.faults.append(_fault(name, str(fault), text))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        request.faults.append(_fault(name, f"cannot read {show(text)}: {reason}", text))
    return None


def _file_text(name: str) -> bytes:
    path = Path(name)
    if not path.is_file() and not name.startswith(("/dev/", "/proc/")) and path.exists():
        raise NotJsonError(f"is not a regular file: {name}")
    with path.open("rb") as file:
        return _bounded(file.read)


def _bounded(read: Callable[[int], bytes]) -> bytes:
    return read(MAX_BYTES + 1)
