"""Schematic and layout side by side: the same test bench on the netlist and on what was extracted from its layout."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

from layoutkit.circuit.spice_writer import write_spice
from layoutkit.errors import LayoutkitError, TimeLimitError, sentences
from layoutkit.simulate.amplifier import measure_amplifier, measure_mirror, measure_oscillator, quiet_output
from layoutkit.simulate.bench_values import BenchValues, choose_values, judge, limits_of, value_faults
from layoutkit.simulate.comparator import measure_comparator
from layoutkit.simulate.device_models import DeviceModels, ModelCards, NoModelsError, find_models
from layoutkit.simulate.fixture import Fixture, Measurement, measure_deck, measure_operating_point, read_deck
from layoutkit.simulate.ngspice import (
    DEFAULT_TIMEOUT_S,
    NGSPICE,
    CardNetlist,
    SimulationError,
    Start,
    called_models,
    ngspice_version,
    read_cards,
)
from layoutkit.simulate.port_roles import OPERATING_POINT, find_port_roles
from layoutkit.technology.parasitic_data import TYPICAL

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from layoutkit.circuit.circuit import Circuit
    from layoutkit.technology import Technology

    _Measured = dict[str, Measurement]

MEASURE: dict[str, Callable[[Fixture], _Measured]] = {
    "amplifier": measure_amplifier,
    "comparator": measure_comparator,
    "oscillator": measure_oscillator,
    "mirror": measure_mirror,
    OPERATING_POINT: measure_operating_point,
}
ENOUGH_GAIN_DB, MORE_GAIN_DB = 40.0, 20.0
"""An amplifier with less gain is tried at ``COMMON_MODES``, and one is taken that gives so much more."""
COMMON_MODES = (0.3, 0.5, 0.7)
"""Parts of the supply."""
SCHEMATIC, EXTRACTED = "schematic", "extracted"
MAX_SAMPLES = 1000


@dataclass(frozen=True)
class Request:
    """What to simulate.

    Attributes:
        circuit: The circuit as drawn, mapped to the technology, with its modules.
        technology: Its process.
        extracted: SPICE with a subcircuit of the same ports, extracted from the layout.
        models: Folder of the models; None for those below ``$PDK_ROOT``.
        bench: Test bench; empty to choose one.
        deck: A deck of the user, instead of a test bench; empty for none.
        values: Values of the bench, over the defaults.
        corners: Corners of the models, each compared by itself.
        samples: Runs with random differences between devices, on the extracted netlist; 0 for none.
        seed: Seed of the first of them.
        limits: What each measurement has to keep, as ``limits_of`` reads it.
        jobs: Simulations at the same time.
        timeout_s: Longest time of one simulation. [s]
    """

    circuit: Circuit
    technology: Technology
    extracted: str
    models: str | None = None
    bench: str = ""
    deck: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)
    corners: Sequence[str] = (TYPICAL,)
    samples: int = 0
    seed: int = 1
    limits: Mapping[str, Any] = field(default_factory=dict)
    jobs: int = 1
    timeout_s: float = DEFAULT_TIMEOUT_S


@dataclass(frozen=True)
class _Run:
    """One simulation to make: which netlist, at which corner, and the seed of its random differences, 0 for none."""

    netlist: str
    corner: str
    seed: int = 0


def compare_post_layout(request: Request) -> dict[str, Any]:
    """Return each measurement on schematic and layout, its change and the verdicts on the limits, as JSON data.

    ``unchecked`` says what was not measured and why; ``faults`` which limits are broken or could not be checked.

    Raises:
        MissingProgramError: If ngspice is not installed.
        LayoutkitError: If a netlist, the deck, a value, a limit or a corner cannot be used.
    """
    return _Comparison(request).run()


def measurements_of(circuit: Circuit, technology: Technology) -> list[str]:
    """Return what the test bench of a circuit measures on its netlist, with the typical models below ``$PDK_ROOT``.

    Raises:
        MissingProgramError: If ngspice is not installed.
        LayoutkitError: If models are missing, or the netlist cannot be simulated.
    """
    comparison = _Comparison(Request(circuit, technology, write_spice(circuit, technology)))
    return list(comparison.measure_schematic())


class _Comparison:
    def __init__(self, request: Request) -> None:
        self.request = request
        self.limits = limits_of(request.limits)
        self.roles = find_port_roles(request.circuit, request.bench)
        faults = [*value_faults(request.circuit, self.roles, request.values), *_corner_faults(request)]
        if faults:
            raise LayoutkitError(sentences(faults), details={"faults": faults})
        self.values = choose_values(request.circuit, request.technology, self.roles, request.values)
        self.program = ngspice_version(NGSPICE.path())
        schematic = write_spice(_with_junctions(request.circuit), request.technology)
        declared = request.technology.simulation
        ignored = () if declared is None else declared.ignored_parameters
        drawn = read_cards(schematic, "the circuit's netlist", ignored=ignored)
        extracted = read_cards(request.extracted, "the extracted netlist", drawn.cell, ignored)
        self.netlists = {SCHEMATIC: drawn, EXTRACTED: extracted}
        self.deck = read_deck(request.deck, self.netlists[SCHEMATIC].cell) if request.deck else None
        self.models = self._called()
        self.unchecked: list[str] = []
        self.outputs_v: dict[str, float | None] = {}

    def run(self) -> dict[str, Any]:
        """Return the answer."""
        found: dict[_Run, _Measured] = {}
        source = ""
        try:
            models = find_models(self.request.technology, self.request.models)
            source = "generic" if models.declared.generic else str(models.folder)
            found = self._measure_all(models)
        except NoModelsError as error:
            self.unchecked.append(error.message)
        self.unchecked += self._biases_beyond(found)
        corners = [self._corner(corner, found) for corner in self.request.corners]
        judged, faults = judge(corners, self.limits)
        return {
            "bench": self._bench(),
            "models": {"source": source, "simulator": self.program},
            "corners": judged,
            **self._statistics(found),
            "unchecked": list(dict.fromkeys(self.unchecked)),
            "faults": faults,
        }

    def measure_schematic(self) -> _Measured:
        """Return the measurements of the netlist as it was given."""
        cards = find_models(self.request.technology, self.request.models).cards(self.models)
        return MEASURE[self.roles.bench](self._fixture(self.netlists[SCHEMATIC], cards, 0))

    def _bench(self) -> dict[str, Any]:
        if self.deck is not None:
            return {"name": "deck", "reason": "a deck was given", "values": {}}
        roles = self.roles
        ports = {
            "inputs": list(roles.inputs), "outputs": list(roles.outputs), "clock": roles.clock,
            "inverse_clocks": [port for port, inverse in roles.more_clocks.items() if inverse],
            "more_clocks": [port for port, inverse in roles.more_clocks.items() if not inverse],
            "supplies": list(roles.power), "high": [port for port, high in roles.levels.items() if high],
            "low": [port for port, high in roles.levels.items() if not high], "open": list(roles.open),
        }  # fmt: skip
        told = {name: value for name, value in ports.items() if value}
        return {"name": roles.bench, "reason": roles.reason, "ports": told, "values": self.values.to_json()}

    def _measure_all(self, models: DeviceModels) -> dict[_Run, _Measured]:
        """Return the measurements of every run that finished."""
        request = self.request
        fixtures: dict[_Run, Fixture] = {}
        for corner in request.corners:
            cards = models.cards(self.models, corner)
            if corner == request.corners[0]:
                self._suit_common_mode(cards)
            for name, netlist in self.netlists.items():
                fixtures[_Run(name, corner)] = self._fixture(netlist, cards, 0)
            self._keep_output(fixtures, corner)
        if request.samples:
            try:
                random = models.cards(self.models, request.corners[0], random=True)
            except NoModelsError as error:
                self.unchecked.append(error.message)
            else:
                for seed in range(request.seed, request.seed + min(request.samples, MAX_SAMPLES)):
                    run = _Run(EXTRACTED, request.corners[0], seed)
                    level = fixtures[_Run(EXTRACTED, request.corners[0])].values
                    fixtures[run] = replace(self._fixture(self.netlists[EXTRACTED], random, seed), values=level)
        with ThreadPoolExecutor(max(1, request.jobs)) as pool:
            outcomes = list(pool.map(self._measured, fixtures, fixtures.values()))
        self.unchecked += [told for _, told in outcomes if told]  # in the runs' order, whichever ended first
        return {run: found for run, (found, _) in zip(fixtures, outcomes, strict=True) if found is not None}

    def _called(self) -> frozenset[str]:
        """Return the models that the netlists, the copies for bias and the deck call."""
        if self.deck is None:
            return frozenset().union(*(netlist.models for netlist in self.netlists.values()))
        texts = [netlist.text for netlist in self.netlists.values()]
        return called_models([*(card for text in texts for card in text.splitlines()), *self.deck[0]])

    def _fixture(self, netlist: CardNetlist, models: ModelCards, seed: int) -> Fixture:
        request = self.request
        start = Start(models.osdi, seed, request.timeout_s)
        return Fixture(request.circuit, request.technology, self.roles, self.values, netlist, models.text, start)

    def _suit_common_mode(self, models: ModelCards) -> None:
        """Take another common mode than the usual one where the schematic amplifies far more, unless one is given."""
        if self.deck is not None or self.roles.bench != "amplifier" or "common_mode_v" in self.request.values:
            return
        usual = self.values
        least = self._gain(usual, models)
        if least >= ENOUGH_GAIN_DB:
            return
        for part in COMMON_MODES:
            given = {**self.request.values, "common_mode_v": round(part * usual.supply_v, 3)}
            values = choose_values(self.request.circuit, self.request.technology, self.roles, given)
            gain = self._gain(values, models)
            if gain >= least + MORE_GAIN_DB:
                self.values, least = values, gain
        if self.values is not usual:
            taken, left = self.values.common_mode_v, usual.common_mode_v
            more = f"common mode {taken:g} V, because it amplifies far less at {left:g} V"
            self.roles = replace(self.roles, reason=f"{self.roles.reason}; {more}")

    def _gain(self, values: BenchValues, models: ModelCards) -> float:
        """Return the gain of the schematic, 0 dB where it is not in its operating range."""
        fixture = replace(self._fixture(self.netlists[SCHEMATIC], models, 0), values=values)
        try:
            level = quiet_output(fixture) if values.output_v is None else values.output_v
            return measure_amplifier(replace(fixture, values=replace(values, output_v=level)))["dc_gain"].value
        except (SimulationError, TimeLimitError):
            return 0.0

    def _keep_output(self, fixtures: dict[_Run, Fixture], corner: str) -> None:
        """Hold the amplifiers' outputs at the voltage that the schematic's has at this corner with equal inputs."""
        if self.deck is not None or self.roles.bench != "amplifier" or self.values.output_v is not None:
            return
        try:
            level = quiet_output(fixtures[_Run(SCHEMATIC, corner)])
        except (SimulationError, TimeLimitError):
            return  # the measurement itself reports it
        for run in [run for run in fixtures if run.corner == corner]:
            fixtures[run] = replace(fixtures[run], values=replace(self.values, output_v=level))
        self.outputs_v[corner] = level

    def _measured(self, run: _Run, fixture: Fixture) -> tuple[_Measured | None, str]:
        """Return the measurements of a run, and in words what it did not measure."""
        try:
            if self.deck is not None:
                return self._by_deck(run, fixture, *self.deck)
            return MEASURE[self.roles.bench](fixture), ""
        except (SimulationError, TimeLimitError) as error:
            sample = f", sample {run.seed}" if run.seed else ""
            return None, f"{run.netlist}, {run.corner}{sample}: {error.message}"

    def _by_deck(
        self, run: _Run, fixture: Fixture, cards: Sequence[str], names: Sequence[str]
    ) -> tuple[_Measured, str]:
        found = measure_deck(fixture, cards, names)
        missing = [name for name in names if name not in found]
        if not missing or run.seed:
            return found, ""
        return found, f"{run.netlist}, {run.corner}: the deck did not measure {', '.join(missing)}"

    def _corner(self, corner: str, found: Mapping[_Run, _Measured]) -> dict[str, Any]:
        sides = {name: found.get(_Run(name, corner), {}) for name in self.netlists}
        names = dict.fromkeys([*sides[SCHEMATIC], *sides[EXTRACTED]])
        level = self.outputs_v.get(corner)
        told = {} if level is None else {"output_v": level}
        return {"corner": corner, **told, "measurements": [_side_by_side(name, sides) for name in names]}

    def _biases_beyond(self, found: Mapping[_Run, _Measured]) -> list[str]:
        """Return the bias ports that the bench's current puts beyond the supplies of the schematic, in words."""
        told = []
        driven = [port for port in self.roles.currents if port in self.values.currents_a and self.deck is None]
        for run, measured in found.items():
            for port in driven if run.netlist == SCHEMATIC else ():
                level = measured.get(f"v({port})")
                if level is not None and not 0.0 <= level.value <= self.values.supply_v:
                    told.append(
                        f"{run.corner}: {self.values.currents_a[port]:g} A put {port} at {level.value:.2f} V, beyond "
                        "the supplies, so the figures are those of another bias; give one in values.currents_a"
                    )
        return told

    def _statistics(self, found: Mapping[_Run, _Measured]) -> dict[str, Any]:
        """Return mean and standard deviation of each measurement over the samples."""
        if not self.request.samples:
            return {}
        samples = [measured for run, measured in found.items() if run.seed]
        names = dict.fromkeys(name for measured in samples for name in measured)
        told = []
        for name in names:
            values = [measured[name].value for measured in samples if name in measured]
            unit = next(measured[name].unit for measured in samples if name in measured)
            sigma = stdev(values) if len(values) > 1 else 0.0
            told.append({"name": name, "unit": unit, "mean": fmean(values), "sigma": sigma, "samples": len(values)})
        asked = min(self.request.samples, MAX_SAMPLES)
        if samples and len(samples) < asked:
            self.unchecked.append(f"{asked - len(samples)} of {asked} samples did not finish")
        return {"monte_carlo": told}


def _corner_faults(request: Request) -> list[str]:
    """Return the corners that the technology does not have, in words."""
    declared = request.technology.simulation
    known = (TYPICAL,) if declared is None else declared.corners
    strange = [f"'{corner}'" for corner in request.corners if corner not in known]
    return [f"there is no corner {', '.join(strange)}; the technology has {', '.join(known)}"] if strange else []


def _with_junctions(circuit: Circuit) -> Circuit:
    """Return the circuit with the areas and perimeters that its netlist states among the devices' parameters."""
    devices = (
        replace(device, params={**device.params, **device.junctions})
        for device in (each.as_written for each in circuit.devices)
    )
    return replace(circuit, devices=tuple(devices))


def _side_by_side(name: str, sides: Mapping[str, _Measured]) -> dict[str, Any]:
    """Return a measurement on schematic and layout, and the change where both are known."""
    values = {side: measured[name].value for side, measured in sides.items() if name in measured}
    unit = next(measured[name].unit for measured in sides.values() if name in measured)
    told: dict[str, Any] = {"name": name, "unit": unit, **values}
    if len(values) == 2:
        told["change"] = values[EXTRACTED] - values[SCHEMATIC]
        if abs(values[SCHEMATIC]) > 1e-15 and unit != "dB" and name != "offset":
            told["change_percent"] = 100 * told["change"] / abs(values[SCHEMATIC])
    return told


_TOLD = ("devices", "value", "unit", "unchecked")


def offsets_apart(answer: Mapping[str, Any], groups: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the offset by its causes: what the layout adds, what its figures predict, and what is random.

    Args:
        answer: Of ``compare_post_layout``.
        groups: The matched groups of a build's ``matching``.
    """
    told: dict[str, Any] = {}
    layout = [each for each in answer["corners"][0]["measurements"] if each["name"] == "offset" and "change" in each]
    random = [each for each in answer.get("monte_carlo", ()) if each["name"] == "offset"]
    predicted = [
        {**{name: offset[name] for name in _TOLD if name in offset}, **_sigma(offset)}
        for group in groups
        for offset in group.get("predicted_offsets", ())
    ]
    if layout:
        told["layout"] = layout[0]["change"]
    if random:
        told["random_sigma"] = random[0]["sigma"]
    if predicted:
        told["predicted"] = predicted
    return {"offset": told} if told else {}


def _sigma(offset: Mapping[str, Any]) -> dict[str, float]:
    """Return the random part that the technology states, in the unit of the offset."""
    random = offset.get("random_sigma")
    return {} if random is None or "value" not in random else {"random_sigma": random["value"]}
