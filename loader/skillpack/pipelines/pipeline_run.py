"""Run a pipeline step by step; record each envelope, and resume from the state file after a failure."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skillpack.exceptions import FileRefusedError, PipelineError
from skillpack.execution.runner import choose
from skillpack.pipelines.pipeline import check_pipeline
from skillpack.pipelines.references import LostReferenceError, resolve
from skillpack.untrusted.file_access import read_bounded
from skillscript.envelope import ErrorCode, SkillError, SkillResult
from skillscript.schema import find_faults, validate
from sturdy.atomic_files import replace_file
from sturdy.strict_json import NotJsonError, parse_json, plain

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from skillpack.execution.runner import Runner
    from skillpack.pipelines.pipeline import Pipeline, Step
    from sturdy.bounded_run import Cancellation

STATE_FORMAT = 1
MAX_STATE_BYTES = 64 << 20
_DONE, _VIOLATED, _FAILED, _REUSED, _NOT_RUN = "done", "violated", "failed", "reused", "not_run"


@dataclass(frozen=True)
class RunOptions:
    """How a pipeline is run.

    Attributes:
        context: The context every step gets (S1.2).
        state_path: File that is written after each step; None writes none.
        resume: Whether to skip steps that the state file records as done with the same request.
        on_step: Called with id and status when a step begins ("running") and when it has ended.
        on_stderr: Called with what the steps' tools write to stderr.
        cancellation: Kills the step under way when cancelled.
    """

    context: Mapping[str, Any] | None = None
    state_path: Path | None = None
    resume: bool = False
    on_step: Callable[[str, str], None] | None = None
    on_stderr: Callable[[bytes], None] | None = None
    cancellation: Cancellation | None = None


def run_pipeline(pipeline: Pipeline, inputs: Any, runner: Runner, options: RunOptions | None = None) -> SkillResult:
    """Return the result of a run; no outcome is an exception.

    Its data is ``{pipeline, version, status, steps: [{id, tool, version, status, envelope}], outputs, warnings}``, of
    a failed run too. A step that reports a violation of the design ends the run with ``status`` violated (exit
    code 1), unless it has ``on_violation: continue``.

    Args:
        pipeline: What to run.
        inputs: Its inputs; defaults are filled in.
        runner: Calls the tools.
        options: How to run it.
    """
    chosen = options or RunOptions()
    try:
        _check(pipeline, runner)
        values = validate(plain(inputs), dict(pipeline.inputs))
        _check(pipeline, runner, values)
        run = _Run(pipeline, values, runner, chosen)
        run.open_state()
    except SkillError as error:
        return SkillResult.failure(error)
    except PipelineError as error:
        return SkillResult.failure(SkillError(ErrorCode.INVALID_PARAM, str(error), error.details))
    except NotJsonError as error:
        return SkillResult.failure(SkillError(ErrorCode.INVALID_PARAM, f"inputs: {error}"))
    return run.all_steps()


def _check(pipeline: Pipeline, runner: Runner, inputs: Mapping[str, Any] | None = None) -> None:
    """Raise PipelineError if the pipeline cannot run; what may be missing is reported when the step runs."""
    findings = check_pipeline(pipeline, runner.all_tools, inputs)
    if findings.problems:
        raise PipelineError(list(findings.problems))


@dataclass
class _Run:
    """One run under way."""

    pipeline: Pipeline
    inputs: dict[str, Any]
    runner: Runner
    options: RunOptions
    warnings: list[str] = field(default_factory=list)
    known: dict[str, Any] = field(default_factory=dict)
    report: dict[str, dict[str, Any]] = field(default_factory=dict)
    recorded: dict[str, Any] = field(default_factory=dict)
    files_at_start: dict[str, str] = field(default_factory=dict)
    duration_ms: int = 0

    def __post_init__(self) -> None:
        self.known = {"inputs": self.inputs, "steps": {}}
        self.files_at_start = _digests(self.inputs)

    def open_state(self) -> None:
        """Read what an earlier run recorded, if this one resumes; its steps count only while all they saw is the same.

        Raises:
            SkillError: INVALID_PARAM if the state file is another pipeline's or none at all.
        """
        path = self.options.state_path
        if path is None or not self.options.resume:
            return
        try:
            state = parse_json(read_bounded(str(path), MAX_STATE_BYTES), limit=MAX_STATE_BYTES)
        except FileNotFoundError:
            return
        except (FileRefusedError, NotJsonError) as error:
            raise _bad_state(path, f"cannot be read: {error}") from error
        if (
            not isinstance(state, dict)
            or state.get("format") != STATE_FORMAT
            or not isinstance(state.get("steps"), dict)
        ):
            raise _bad_state(path, "is not a state of a pipeline")
        if state.get("pipeline") != self.pipeline.name:
            raise _bad_state(path, f"is the state of the pipeline {state.get('pipeline')!r}")
        if state.get("input_files") == self.files_at_start:
            self.recorded = state["steps"]
        else:
            self.warnings.append("an input file has changed since the recorded run: every step is run again")

    def all_steps(self) -> SkillResult:
        """Return the result of running every step, or those that are left."""
        for step in self.pipeline.steps:
            failure = self._step(step)
            self._write_state()
            if failure is not None:
                return SkillResult.failure(failure, self.duration_ms)
            if self.report[step.id]["status"] == _VIOLATED and step.on_violation == "stop":
                return SkillResult.success(self._data("violated", {}), self.duration_ms, violated=True)
        try:
            outputs = resolve(dict(self.pipeline.outputs), self.known)
        except LostReferenceError as error:
            message = f"the pipeline's outputs: {error}"
            error_with_data = SkillError(ErrorCode.INVALID_PARAM, message, None, self._data(_FAILED, {}))
            return SkillResult.failure(error_with_data, self.duration_ms)
        violated = any(entry.get("violated") for entry in self.report.values())
        return SkillResult.success(self._data(_DONE, outputs), self.duration_ms, violated=violated)

    def _step(self, step: Step) -> SkillError | None:
        """Run or reuse one step; return the error it ended with."""
        try:
            params = resolve(dict(step.params), self.known)
        except LostReferenceError as error:
            self.report[step.id] = {"status": _FAILED, "envelope": None}
            return self._failure(step, SkillError(ErrorCode.INVALID_PARAM, str(error)))
        tool = choose(self.runner.all_tools, step.tool).tool
        request = _digest([tool.id, tool.version, step.tool, params, self.options.context or {}, str(Path.cwd())])
        entry = self._reused(step, request, tool.output_schema)
        if entry is None:
            self.recorded = {}  # what comes after a step that ran may depend on what it did
            self._notify(step.id, "running")
            call = self.runner.run(
                step.tool,
                params,
                context=self.options.context,
                timeout=step.timeout_s,
                on_stderr=self.options.on_stderr,
                cancellation=self.options.cancellation,
            )
            self.duration_ms += call.result.duration_ms
            self.warnings += [f"step {step.id!r}: {note}" for note in call.notes]
            status = _FAILED if call.result.error else _VIOLATED if call.result.violated else _DONE
            entry = {"status": status, "violated": call.result.violated, "envelope": call.envelope}
        self.report[step.id] = {"version": tool.version, "request": request, **entry}
        self._notify(step.id, entry["status"])
        envelope = entry["envelope"]
        if envelope["error"] is not None:
            return self._failure(step, SkillResult.from_dict(envelope).error)
        self.known["steps"][step.id] = envelope["data"]
        return None

    def _reused(self, step: Step, request: str, output_schema: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the report of a step that was done before with the same request, or None if it must run."""
        entry = self.recorded.get(step.id)
        if not isinstance(entry, dict) or entry.get("request") != request:
            return None
        violated = bool(entry.get("violated"))
        if violated and step.on_violation == "stop":
            return None
        try:
            result = SkillResult.from_dict(entry["envelope"])
        except (KeyError, TypeError, ValueError):
            return None
        if result.error is not None or find_faults(result.data, dict(output_schema)):
            return None
        return {"status": _REUSED, "violated": violated, "envelope": result.to_dict()}

    def _failure(self, step: Step, error: SkillError | None) -> SkillError:
        """Return the error of the run for the error of a step."""
        failure = error or SkillError(ErrorCode.INTERNAL_ERROR, "no answer")
        details = {"step": step.id, "tool": step.tool, "error_details": failure.details}
        message = f"step {step.id!r} ({step.tool}): {failure.message}"
        return SkillError(failure.code, message, details, self._data(_FAILED, {}))

    def _data(self, status: str, outputs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the report of the run."""
        empty = {"status": _NOT_RUN, "envelope": None}
        steps = []
        for step in self.pipeline.steps:
            entry = self.report.get(step.id, empty)
            facts = {key: entry.get(key) for key in ("version", "status", "envelope")}
            steps.append({"id": step.id, "tool": step.tool.partition("@")[0], **facts})
        return {
            "pipeline": self.pipeline.name,
            "version": self.pipeline.version,
            "status": status,
            "steps": steps,
            "outputs": dict(outputs),
            "warnings": list(self.warnings),
        }

    def _write_state(self) -> None:
        """Write what has been done so far, beside the file and renamed."""
        path = self.options.state_path
        if path is None:
            return
        state = {
            "format": STATE_FORMAT,
            "pipeline": self.pipeline.name,
            "version": self.pipeline.version,
            "inputs": self.inputs,
            "input_files": {**_digests(self.inputs), **self.files_at_start},
            "steps": self.report,
        }
        text = (json.dumps(state, ensure_ascii=False, indent=1) + "\n").encode()
        if len(text) > MAX_STATE_BYTES:
            self._warn_once(f"the state file {path.name} would be longer than {MAX_STATE_BYTES} bytes: left as it was")
            return
        try:
            replace_file(path, text)
        except OSError as error:
            self._warn_once(f"the state file {path.name} cannot be written: {error.strerror}")

    def _warn_once(self, text: str) -> None:
        if text not in self.warnings:
            self.warnings.append(text)

    def _notify(self, step_id: str, status: str) -> None:
        if self.options.on_step is not None:
            self.options.on_step(step_id, status)


def _bad_state(path: Path, reason: str) -> SkillError:
    return SkillError(ErrorCode.INVALID_PARAM, f"the state file {path.name} {reason}; name another or do not resume")


def _digest(value: Any) -> str:
    """Return the SHA-256 of a JSON value."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def _digests(inputs: Any) -> dict[str, str]:
    """Return the SHA-256 of every regular file that an input names."""
    found: dict[str, str] = {}
    texts = [inputs]
    while texts:
        value = texts.pop()
        if isinstance(value, (list, dict)):
            texts.extend(value.values() if isinstance(value, dict) else value)
        elif isinstance(value, str) and os.path.isfile(value):  # noqa: PTH113 - false for a text that cannot be a path
            with Path(value).open("rb") as file:
                digest = hashlib.sha256()
                while chunk := file.read(1 << 20):
                    digest.update(chunk)
            found[value] = digest.hexdigest()
    return dict(sorted(found.items()))
