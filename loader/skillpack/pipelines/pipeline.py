"""Pipelines: tools that run one after the other, with the pipeline's inputs and the answers of earlier ones (S1.7).

A pipeline is a YAML (or JSON) file; ``references/pipelines.md`` shows one. Everything that is certain to be
wrong with it is reported before its first step runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from skillpack.exceptions import FileRefusedError, PipelineError, SkillFileError, YamlError
from skillpack.execution.runner import choose
from skillpack.pipelines.references import (
    LostReferenceError,
    SchemaPlace,
    StepReference,
    find_place,
    follow,
    misfits,
    references,
    with_stand_ins,
)
from skillpack.registry.schema_check import schema_problems
from skillpack.untrusted.file_access import read_bounded
from skillpack.untrusted.strict_yaml import decode, load_typed_mapping
from skillscript.envelope import SkillError
from skillscript.schema import find_faults
from sturdy.near_names import did_you_mean
from sturdy.strict_json import NotJsonError, parse_json, path_text, plain

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillpack.registry.declaration import ToolDeclaration, Tools

MAX_PIPELINE_BYTES = 1 << 18
_SHAPE = Path(__file__).parents[1] / "schemas" / "pipeline.schema.json"


@dataclass(frozen=True)
class Step:
    """One call of a pipeline.

    Attributes:
        id: Its name, by which later steps refer to its data.
        tool: The tool, as ``id`` or ``id@version``.
        params: Literals and references.
        timeout_s: Longest duration, or None for the runner's. [s]
        on_violation: Whether to go on when it reports a violation of the design.
    """

    id: str
    tool: str
    params: Mapping[str, Any]
    timeout_s: float | None = None
    on_violation: Literal["stop", "continue"] = "stop"


@dataclass(frozen=True)
class Pipeline:
    """A pipeline as written.

    Attributes:
        name: Its name.
        version: Its version, or "".
        description: What it does.
        inputs: JSON Schema of its inputs.
        steps: In the order they run.
        outputs: What it answers, literals and references by name.
    """

    name: str
    version: str
    description: str
    inputs: Mapping[str, Any]
    steps: tuple[Step, ...]
    outputs: Mapping[str, Any]


@dataclass(frozen=True)
class PipelineFindings:
    """What was found in a pipeline before it runs.

    Attributes:
        problems: What makes it impossible to run; each names its step and place.
        warnings: What may fail, depending on what the steps answer.
    """

    problems: tuple[str, ...]
    warnings: tuple[str, ...]


def load_pipeline(path: str | Path) -> Pipeline:
    """Return the pipeline in a file.

    Raises:
        PipelineError: If it cannot be read or does not have the shape of a pipeline.
    """
    try:
        return make_pipeline(plain(load_typed_mapping(decode(read_bounded(str(path), MAX_PIPELINE_BYTES)))))
    except FileNotFoundError as error:
        raise PipelineError([f"no such pipeline: {path}"]) from error
    except (FileRefusedError, SkillFileError, YamlError, NotJsonError) as error:
        raise PipelineError([f"{Path(path).name}: {error}"]) from error


def make_pipeline(document: Any) -> Pipeline:
    """Return the pipeline that a document describes.

    Raises:
        PipelineError: If it does not have the shape of a pipeline.
    """
    faults = find_faults(document, _shape())
    if faults:
        raise PipelineError([fault.message for fault in faults])
    inputs = {"type": "object", "additionalProperties": False, **document.get("inputs", {})}
    problems = [f"inputs: {problem}" for problem in schema_problems(inputs)]
    if problems:
        raise PipelineError(problems)
    return Pipeline(
        name=document["pipeline"],
        version=document.get("version", ""),
        description=document.get("description", ""),
        inputs=inputs,
        steps=tuple(Step(**{"params": {}, **step}) for step in document["steps"]),
        outputs=document.get("outputs", {}),
    )


def check_pipeline(pipeline: Pipeline, tools: Tools, inputs: Mapping[str, Any] | None = None) -> PipelineFindings:
    """Return everything that is certain to be wrong with a pipeline over ``tools``, without running it.

    Args:
        pipeline: What to check.
        tools: The tools there are.
        inputs: Valid inputs with which it is to run, which each step's schema judges too; None if not known yet.
    """
    checker = _Checker(pipeline, tools, inputs)
    for step in pipeline.steps:
        checker.check(step)
    checker.check_outputs()
    return PipelineFindings(tuple(checker.problems), tuple(checker.warnings))


@cache
def _shape() -> dict[str, Any]:
    """Return the JSON Schema of a pipeline."""
    shape: dict[str, Any] = parse_json(_SHAPE.read_bytes())
    return shape


class _Checker:
    """Checks one step after the other, with the output schemas of the earlier ones."""

    def __init__(self, pipeline: Pipeline, tools: Tools, inputs: Mapping[str, Any] | None) -> None:
        self._pipeline = pipeline
        self._inputs = inputs
        self._tools = tools
        self._answers: dict[str, SchemaPlace] = {}
        self._later = [step.id for step in pipeline.steps]
        self.problems: list[str] = []
        self.warnings: list[str] = []

    def check(self, step: Step) -> None:
        """Find what is wrong with one step."""
        where = f"step {step.id!r}"
        if step.id in self._answers:
            self.problems.append(f"{where}: there is an earlier step of that name")
        tool = self._tool(step, where)
        if tool is not None:
            self._check_params(step, tool, where)
        else:
            for path, reference in references(dict(step.params)):
                self._source(f"{where}: {path_text(path) or 'params'}", reference)
        self._later.remove(step.id)
        schema = True if tool is None else tool.output_schema
        self._answers[step.id] = SchemaPlace(schema, {} if tool is None else tool.output_schema)

    def check_outputs(self) -> None:
        """Find what is wrong with what the pipeline answers."""
        for path, reference in references(dict(self._pipeline.outputs)):
            label = f"outputs.{path_text(path)}"
            source = self._source(label, reference)
            if source is not None and isinstance(reference, StepReference):
                self._warn_of_missing(label, source, reference)

    def _tool(self, step: Step, where: str) -> ToolDeclaration | None:
        """Return the step's tool if it can be a step."""
        try:
            choice = choose(self._tools, step.tool)
        except SkillError as error:
            self.problems.append(f"{where}: {error.message}")
            return None
        tool = choice.tool
        if not tool.composable:
            self.problems.append(f"{where}: tool {tool.id} is declared as not composable")
        if not tool.script:
            self.problems.append(f"{where}: tool {tool.id} is declared without a script and cannot be called")
        if choice.migrated_from is not None:
            self.warnings.append(
                f"{where}: parameters for {step.tool} are carried over to {tool.version} and checked when it runs"
            )
            return None
        return tool

    def _check_params(self, step: Step, tool: ToolDeclaration, where: str) -> None:
        """Find what is wrong with the literals and references a step gives its tool."""
        schema = dict(tool.input_schema)
        target = SchemaPlace(schema, schema)
        for path, reference in references(dict(step.params)):
            label = f"{where}: {path_text(path) or 'params'}"
            wanted = find_place(target, path)
            if wanted.problem:
                self.problems.append(f"{label}: the tool has no such parameter: {wanted.problem}")
            source = self._source(label, reference)
            if source is not None and not wanted.problem:
                self._check_fit(label, source, wanted, reference)
        self._check_values(step, schema, where)

    def _check_values(self, step: Step, schema: dict[str, Any], where: str) -> None:
        """Find what is wrong with the values that are known before it runs: literals, inputs, defaults."""
        open_places: list[tuple[str | int, ...]] = []
        default_places: list[tuple[str | int, ...]] = []

        def stand_in(path: tuple[str | int, ...], reference: StepReference | ValueError) -> Any:
            if isinstance(reference, ValueError):
                open_places.append(path)
                return None
            if reference.steps[0] == "inputs" and self._inputs is not None:
                try:
                    return follow(reference, {"inputs": self._inputs})
                except LostReferenceError as error:
                    self.problems.append(f"{where}: {path_text(path) or 'params'}: {error}")
            elif reference.has_default:
                default_places.append(path)
                return reference.default
            open_places.append(path)
            return None

        values = with_stand_ins(dict(step.params), stand_in)
        for fault in find_faults(values, schema):
            if not _touches(fault.path, open_places):
                whose = "the default of a reference: " if _touches(fault.path, default_places) else ""
                self.problems.append(f"{where}: {whose}{fault.message}")

    def _check_fit(self, label: str, source: SchemaPlace, wanted: SchemaPlace, reference: Any) -> None:
        """Find why what a reference leads to does not fit, or may not be there."""
        pointer = reference.pointer
        self.problems += [f"{label}: {pointer} {problem}" for problem in misfits(source, wanted)]
        self._warn_of_missing(label, source, reference)

    def _warn_of_missing(self, label: str, source: SchemaPlace, reference: StepReference) -> None:
        if not source.certain and not reference.has_default and not reference.optional:
            pointer = reference.pointer
            self.warnings.append(f"{label}: {pointer} may be missing; give it a default or make it optional")

    def _source(self, label: str, reference: StepReference | ValueError) -> SchemaPlace | None:
        """Return the schema of what a reference leads to; None where that is wrong."""
        if isinstance(reference, ValueError):
            self.problems.append(f"{label}: {reference}")
            return None
        kind, name, *rest = reference.steps
        if kind == "inputs":
            start: SchemaPlace | None = find_place(SchemaPlace(self._pipeline.inputs, self._pipeline.inputs), [name])
            if start is not None and not start.certain:  # a default makes it certain
                given = isinstance(start.schema, dict) and "default" in start.schema
                start = SchemaPlace(start.schema, start.root, given, start.problem)
        else:
            start = self._answers.get(name)
        if start is None:
            late = " runs later" if name in self._later else f" does not exist{did_you_mean(name, self._answers)}"
            self.problems.append(f"{label}: {reference.pointer}: step {name!r}{late}")
            return None
        place = find_place(start, rest)
        if place.problem:
            self.problems.append(f"{label}: {reference.pointer}: {place.problem}")
            return None
        return place


def _touches(fault_path: str, reference_paths: list[tuple[str | int, ...]]) -> bool:
    """Return whether a fault of the literals may be due to a reference: it lies at, below or around one."""
    for path in reference_paths:
        text = path_text(path)
        if fault_path in ("", text) or _below(fault_path, text) or _below(text, fault_path):
            return True
    return False


def _below(inner: str, outer: str) -> bool:
    return inner.startswith((f"{outer}.", f"{outer}["))
