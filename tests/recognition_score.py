"""How well recognition agrees with an engineer's labels: prints a table for a folder of labelled circuits.

    python tests/recognition_score.py [FOLDER] [-v]

Beside each netlist lies ``<netlist>.labels.yaml``: its supplies, its groups by kind (``must``: the circuit does not
work well where they are unmatched), what lies on its main axis, and pairs that only look matched. A group that was
found counts by the share of its devices that one labelled group backs, so that merging costs. An answer that is refused
counts as an empty one.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from layoutkit.errors import LayoutkitError
from layoutkit.tools.netlist_request import parse, parse_info, read_circuit, suggested_by_recognition

LABELLED = Path(__file__).parent / "layoutkit/circuit/labelled"
_PAIRS = ("differential_pair", "cross_coupled_pair", "cascode_pair", "load_pair", "switch_pair")

BACKS: dict[str, frozenset[str]] = {
    "differential_pair": frozenset({"differential_pair", "symmetric_pair"}),
    "cross_coupled_pair": frozenset({"cross_coupled_pair", "symmetric_pair"}),
    "current_mirror": frozenset({"current_mirror"}),
    "cascode_pair": frozenset({"cascode_pair", "symmetric_pair", "current_mirror"}),
    "load_pair": frozenset({"load_pair", "symmetric_pair", "current_mirror"}),
    "switch_pair": frozenset({"switch_pair", "symmetric_pair", "differential_pair", "load_pair"}),
    "symmetric_pair": frozenset({*_PAIRS, "symmetric_pair"}),
    "inverter": frozenset({"inverter"}),
    "ring_stage": frozenset({"ring_stage"}),
    "resistor_ratio": frozenset({"resistor_pair", "resistor_ratio"}),
    "capacitor_ratio": frozenset({"capacitor_pair", "capacitor_ratio"}),
    "bipolar_array": frozenset({"bipolar_array", "bipolar_pair"}),
}
"""Kind of a labelled group to the types of found groups that answer it."""
NOT_MATCHING = frozenset({"inverter", "ring_stage"})
"""Types of found groups that do not say that their devices match."""
FIELDS = ("pairs", "self_symmetric", "net_pairs")


@dataclass
class Share:
    """How much was found of how many."""

    found: float = 0.0
    of: int = 0

    def add(self, value: float) -> None:
        """Count one more."""
        self.found += value
        self.of += 1

    @property
    def share(self) -> float:
        """The share; 1 where there is nothing to find."""
        return self.found / self.of if self.of else 1.0


@dataclass
class Score:
    """What was counted on a folder of labels.

    Attributes:
        recall: By kind, over all labelled groups.
        must: By kind, over the labelled groups that must be found.
        precision: By type, over the groups that were found.
        other: Supplies, references of mirrors, what lies on the main axis, and tempting pairs that are explained.
        wrong: Pairs that only look matched and were found in one group.
        unanswered: Circuits without an answer.
        lines: What is missing or too much, by circuit.
        most_lines: Largest share of devices for which a line says why they are in no group.
    """

    recall: dict[str, Share] = field(default_factory=lambda: defaultdict(Share))
    must: dict[str, Share] = field(default_factory=lambda: defaultdict(Share))
    precision: dict[str, Share] = field(default_factory=lambda: defaultdict(Share))
    other: dict[str, Share] = field(default_factory=lambda: defaultdict(Share))
    wrong: list[str] = field(default_factory=list)
    unanswered: list[str] = field(default_factory=list)
    lines: dict[str, list[str]] = field(default_factory=dict)
    most_lines: float = 0.0

    def total(self, part: str) -> float:
        """Return the share over all kinds of ``recall``, ``must`` or ``precision``."""
        shares = getattr(self, part).values()
        return Share(sum(each.found for each in shares), sum(each.of for each in shares)).share


def score(folder: Path) -> Score:
    """Return how well recognition agrees with the labels in a folder."""
    result = Score()
    for path in sorted(folder.glob("*.labels.yaml")):
        label = yaml.safe_load(path.read_text(encoding="utf-8"))
        name = path.name.removesuffix(".labels.yaml")
        data = answer(folder / label["netlist"], label.get("top"))
        if data is None:
            result.unanswered.append(name)
        result.lines[name] = _Judge(result, name, label, data or {}).lines
    return result


def answer(netlist: Path, top: str | None) -> dict[str, Any] | None:
    """Return groups, supplies, near misses and symmetry of a netlist; None where it is refused."""
    params = {"netlist_path": str(netlist), **({"top": top} if top else {})}
    try:
        circuit = parse({**params, "format": "auto", "identify_modules": True})
        plan = suggested_by_recognition(read_circuit(params))
    except LayoutkitError:
        return None
    return {"groups": circuit.to_json()["modules"], "info": parse_info(circuit), "symmetry": plan["symmetry"]}


class _Judge:
    """Counts the answer on one circuit."""

    def __init__(self, result: Score, name: str, label: dict[str, Any], data: dict[str, Any]) -> None:
        self.result, self.name, self.label = result, name, label
        self.lines: list[str] = [] if data else ["no answer"]
        self.info = data.get("info", {})
        self.groups = [(group, _names(group["devices"])) for group in data.get("groups", ())]
        self._recall()
        self._precision()
        self._supplies()
        self._axis(data.get("symmetry", ()))

    def _recall(self) -> None:
        for group in self.label["groups"]:
            value = self._credit(group)
            self.result.recall[group["kind"]].add(value)
            if group["must"]:
                self.result.must[group["kind"]].add(value)
            if value < 1:
                must = " (must)" if group["must"] else ""
                self.lines.append(f"missed{must} {group['kind']} {' '.join(group['devices'])}: {value:.2f}")

    def _credit(self, group: dict[str, Any]) -> float:
        """Return how much of a labelled group is in one found group of a type that answers it, from 0 to 1."""
        found = [devices for each, devices in self.groups if each["type"] in BACKS[group["kind"]]]
        if group["kind"] == "ring_stage":
            stages = [_names(stage) for stage in group["stages"]]
            return sum(any(stage <= devices for devices in found) for stage in stages) / len(stages)
        if group["kind"] == "current_mirror":
            reference = _names([group["reference"]] if group.get("reference") else [])
            needed = _names(group.get("must_outputs") or group["outputs"][:1]) | reference
            holding = [each for each, devices in self.groups if each["type"] == "current_mirror" and needed <= devices]
            if reference and holding:
                told = [_names([each["properties"].get("reference")]) for each in holding]
                self.result.other["mirror reference"].add(float(reference in told))
            return float(bool(holding))
        wanted = _names(group["devices"])
        most = max((len(wanted & devices) for devices in found), default=0)
        return max(0, most - 1) / (len(wanted) - 1)

    def _precision(self) -> None:
        tempting = [frozenset(_names(pair)) for pair in self.label.get("not_matched") or ()]
        matched: set[frozenset[str]] = set()
        for group, devices in self.groups:
            inside = [pair for pair in tempting if group["type"] not in NOT_MATCHING and pair <= devices]
            matched.update(inside)
            value = 0.0 if inside else self._backed(group["type"], devices)
            self.result.precision[group["type"]].add(value)
            if value < 1:
                self.lines.append(f"too much {group['type']} {' '.join(group['devices'])}: {value:.2f}")
        told = [_words(line) for line in self.info.get("not_matched", ())]
        for pair in tempting:
            if pair in matched:
                self.result.wrong.append(f"{self.name}: {' '.join(sorted(pair))}")
                self.lines.append(f"WRONG pair {' '.join(sorted(pair))}")
            explained = any(pair <= words for words in told)
            self.result.other["tempting pairs explained"].add(float(explained))
            if not explained:
                self.lines.append(f"not explained {' '.join(sorted(pair))}")
        lines, devices = len(told), self.info.get("device_count", 1)
        self.result.most_lines = max(self.result.most_lines, lines / devices if devices else 0.0)

    def _backed(self, found: str, devices: set[str]) -> float:
        """Return the share of a found group's devices that one labelled group backs; 0 below two of them."""
        shared = [
            len((_names(group["devices"]) | _names(group.get("cascodes"))) & devices)
            for group in self.label["groups"]
            if found in BACKS[group["kind"]]
        ]
        most = max(shared, default=0)
        return most / len(devices) if most >= 2 else 0.0

    def _supplies(self) -> None:
        free = {net for kind in ("optional_supplies", "well_nets", "high_current_nets") for net in self._nets(kind)}
        for kind in ("power", "ground"):
            wanted, got = _names(self.label["supplies"][kind]), _names(self.info.get(f"{kind}_nets"))
            for net in wanted:
                self.result.other["supplies found"].add(float(net in got))
            for net in got - (free - wanted):
                self.result.other["supplies right"].add(float(net in wanted))
            self.lines += [f"{kind} missing: {net}" for net in sorted(wanted - got)]
            self.lines += [f"{kind} wrong: {net}" for net in sorted(got - wanted - free)]

    def _nets(self, kind: str) -> set[str]:
        return _names(self.label.get(kind))

    def _axis(self, symmetry: Any) -> None:
        for kind in FIELDS:
            wanted = [_item(each) for each in (self.label.get("symmetry") or {}).get(kind) or ()]
            got = {_item(each) for group in symmetry for each in group.get(kind) or ()}
            for item in wanted:
                self.result.other[f"axis {kind}"].add(float(item in got))
                if item not in got:
                    self.lines.append(f"axis {kind} missed: {' '.join(sorted(item))}")


def _names(items: Any) -> set[str]:
    return {str(item).strip().lower().replace("/", ".").replace(":", ".") for item in items or ()}


def _item(entry: Any) -> frozenset[str]:
    return frozenset(_names(entry if isinstance(entry, list) else [entry]))


def _words(line: str) -> set[str]:
    return _names(line.replace(",", " ").replace(";", " ").replace("'", " ").split())


def table(result: Score) -> str:
    """Return the score as a table."""
    rows = [f"{'labelled kind':<22}{'found':>16}{'of those that must be':>26}"]
    kinds = (kind for kind in BACKS if result.recall[kind].of)
    rows += [f"{kind:<22}{_cell(result.recall[kind]):>16}{_cell(result.must[kind]):>26}" for kind in kinds]
    rows += ["", f"{'found type':<22}{'backed':>16}"]
    rows += [f"{kind:<22}{_cell(share):>16}" for kind, share in sorted(result.precision.items())]
    rows += ["", *(f"{kind:<26}{_cell(share):>18}" for kind, share in sorted(result.other.items()))]
    shares = {"recall": "recall", "recall of what must be found": "must", "precision": "precision"}
    rows += [f"{words:<32}{100 * result.total(part):>9.1f} %" for words, part in shares.items()]
    rows.append(f"{'wrong pairs':<32}{len(result.wrong):>9}")
    rows.append(f"{'circuits without an answer':<32}{len(result.unanswered):>9} of {len(result.lines)}")
    return "\n".join(rows)


def _cell(share: Share) -> str:
    return f"{share.found:.1f}/{share.of} {100 * share.share:5.1f} %" if share.of else "-"


def main() -> int:
    """Print the table of a folder of labels."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", default=LABELLED)
    parser.add_argument("-v", action="store_true", help="list what is missing or too much, by circuit")
    given = parser.parse_args()
    result = score(given.folder)
    if not result.lines:
        print(f"no *.labels.yaml in {given.folder}", file=sys.stderr)
        return 2
    if given.v:
        told = ((name, lines) for name, lines in result.lines.items() if lines)
        print(*(text for name, lines in told for text in (name, *(f"    {line}" for line in lines))), sep="\n")
    print(table(result))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
