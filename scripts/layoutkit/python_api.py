"""Read, draw, build and check, from Python: ``layoutkit.technology``, ``circuit``, ``draw``, ``build`` and ``check``.

They do what the tools ``technology.describe``, ``netlist.parse``, ``flow.build_layout``, ``drc.run_check`` and
``lvs.run_check`` do, and draw what KLayout's PCells draw. What these raise is a ``layoutkit.errors.LayoutkitError``
whose message lists every fault.

They return objects that show themselves in Jupyter. Texts of files, such as
names of nets, are escaped before they become HTML.
"""

from __future__ import annotations

import os
import sys
from base64 import b64encode
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from layoutkit.errors import LayoutkitError, did_you_mean
from layoutkit.templates import rendered

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Literal

    import klayout.db as kdb

    from layoutkit.circuit import Circuit
    from layoutkit.lvs.lvs_result import LvsResult
    from layoutkit.pcells.fields import Value
    from layoutkit.technology import Technology
    from layoutkit.view.drawing_data import Marker

    WidthPer = Literal["auto", "device", "finger"]


def technology(name_or_path: str | os.PathLike[str]) -> Technology:
    """Return a process: its layers, rules, devices and routing stack.

    Args:
        name_or_path: ``generic``, ``sky130A``, ``gf180mcuD``, ``sg13g2``, or the path of a technology file.

    Raises:
        TechnologyError: If there is no such process, or the file does not describe one.
    """
    from layoutkit.technology.technology_reader import load

    return load(os.fspath(name_or_path))


def circuit(
    netlist: str | os.PathLike[str],
    *,
    top: str | None = None,
    parameters: Mapping[str, str | float] | None = None,
    width_per: WidthPer = "auto",
    black_boxes: Iterable[str] = (),
    device_map: Mapping[str, str] | None = None,
) -> Netlist:
    """Return a netlist with its devices, nets and the matched groups that are recognised in it.

    Args:
        netlist: Path of a SPICE, CDL, Spectre or JSON netlist, or the netlist itself: a text of several lines.
        top: Subcircuit; None for the netlist's own top.
        parameters: Values of parameters that the netlist leaves open or sets itself, such as ``{"w0": "2u"}``.
        width_per: Whether ``W`` is of a whole ``device`` or of one ``finger``; ``auto``: of one finger where no other
            reading fits the whole netlist, else of the device.
        black_boxes: Empty or undefined subcircuits to keep as black boxes, neither drawn nor compared.
        device_map: Model -> device of the process it is built in or checked for that takes its place.

    Raises:
        LayoutkitError: If it cannot be read.
    """
    from layoutkit.circuit import given_netlist, read_netlist

    is_text = isinstance(netlist, str) and "\n" in netlist
    given = {"netlist_text" if is_text else "netlist_path": os.fspath(netlist)}
    boxes = tuple(black_boxes)
    read = read_netlist(given_netlist(given), top=top, parameters=parameters, black_boxes=boxes)
    reading = {"top": top, "parameters": parameters, "width_per": width_per, "black_boxes": boxes}
    reading["device_map"] = device_map
    return Netlist(read, {**given, **reading})


def draw(kind: str, technology: str | Technology, **values: Value) -> Layout:
    """Return the drawing of one device or matched group, as KLayout's PCell of the same name draws it.

    Args:
        kind: ``nmos``, ``pmos``, ``nmos_pair``, ``pmos_pair``, ``nmos_mirror``, ``pmos_mirror``, ``resistor``,
            ``capacitor``, ``mos_capacitor``, ``diode`` or ``pnp``, where the process has it.
        technology: The process, or its name.
        values: Parameters of the PCell that differ from its defaults; lengths in um. ``w`` is the total gate width of
            one unit over its ``nf`` fingers. The error on an unknown one lists them all.

    Raises:
        LayoutkitError: If the process has no such device, or a value is not allowed; all faults at once.
    """
    import klayout.db as kdb

    from layoutkit.pcells.fields import checked_values
    from layoutkit.pcells.registration import generators

    process = _technology(technology)
    known = {each.name: each for each in generators(process)}
    if kind not in known:
        raise LayoutkitError(
            f"{process.name} draws no {kind!r}{did_you_mean(kind, known)}; it draws {', '.join(known)}",
            details={"param_name": "kind", "provided_value": kind, "allowed": list(known)},
        )
    declared = known[kind].fields(process)
    if unknown := sorted(set(values) - {field.name for field in declared}):
        allowed = ", ".join(f"{field.name} ({field.description})" for field in declared)
        raise LayoutkitError(f"{kind} has no parameter {', '.join(unknown)}; it has {allowed}")
    drawing, notes = known[kind].prepared(process, checked_values(declared, values))
    layout = kdb.Layout()
    layout.dbu = process.dbu_um
    module = drawing(layout)
    module.cell.name = kind
    return Layout(layout, module.cell, process, warnings=(*notes, *module.warnings))


def build(
    circuit: Netlist | str | os.PathLike[str],
    technology: str | Technology | None = None,
    workspace: str | os.PathLike[str] | None = None,
    *,
    progress: Callable[[str], None] | None = None,
    **options: Any,
) -> Build:
    """Return the placed, routed and checked layout of a netlist, with its report; ``flow.build_layout`` does the work.

    Every file is written into the workspace, whether the layout is clean or not.

    Args:
        circuit: The netlist, its path or its text.
        technology: The process, or its name; None for the workspace's.
        workspace: Folder that receives every file; None for ``workspace``, or the one that the environment names.
        progress: Receives a line as each stage begins, and a summary; None writes them to standard error.
        options: Further parameters of ``flow.build_layout``, such as ``seed=3``, ``effort=8``, ``outline="60x40"``,
            ``constraints="constraints.json"`` or ``until="place"``.

    Raises:
        LayoutkitError: If an option is unknown, or the netlist cannot be read, mapped or drawn.
    """
    from layoutkit.tools.whole_flow import build as build_whole

    netlist = _netlist(circuit)
    params = {**netlist.request, **_known_options(options)}
    if technology is not None:
        params["technology"] = _name_of(technology)
    if workspace is not None:
        params["workspace"] = os.fspath(workspace)
    report, faults = build_whole(params, progress or _print_progress)
    return Build(netlist, report, tuple(faults))


def check(
    layout: Layout | str | os.PathLike[str],
    circuit: Netlist | str | os.PathLike[str] | None = None,
    technology: str | Technology | None = None,
    *,
    waived_layers: Iterable[str] = (),
) -> Check:
    """Return the verdict of DRC and, if a circuit is given, of LVS.

    Args:
        layout: The layout, or the path of a GDSII or OASIS file.
        circuit: The netlist that the layout is compared with, its path or its text; None for DRC alone.
        technology: The process of a layout file; None for the one that its workspace records.
        waived_layers: Layers that DRC need not judge and LVS need not read.

    Raises:
        LayoutkitError: If the layout or the netlist cannot be read.
    """
    from layoutkit.drc.check import Options, check

    judged = layout if isinstance(layout, Layout) else _read_layout(layout, technology)
    waived = tuple(waived_layers)
    drc = check(judged.layout, judged.cell, judged.technology, Options(waived_layers=waived))
    lvs = None if circuit is None else _compared(judged, _netlist(circuit), waived).to_json()
    return Check(judged, drc.summary(), lvs)


def _technology(given: str | Technology) -> Technology:
    return technology(given) if isinstance(given, str) else given


def _name_of(given: str | Technology) -> str:
    """Return the name of a process of the pack, else the path of its file."""
    from layoutkit.layout.workspace_record import DrawnIn

    return given if isinstance(given, str) else DrawnIn.of(given).source


def _netlist(given: Netlist | str | os.PathLike[str]) -> Netlist:
    return given if isinstance(given, Netlist) else circuit(given)


def _known_options(options: Mapping[str, Any]) -> dict[str, Any]:
    from layoutkit.flow.design import LayoutRequest

    inner = {"first_stage": "from", "last_stage": "until"}
    own = {"netlist_path", "netlist_text", "technology", "workspace"}
    known = sorted({inner.get(field.name, field.name) for field in fields(LayoutRequest)} - own)
    if unknown := sorted(set(options) - set(known)):
        raise LayoutkitError(f"build has no option {', '.join(unknown)}; it has {', '.join(known)}")
    return dict(options)


def _read_layout(path: str | os.PathLike[str], given: str | Technology | None) -> Layout:
    from layoutkit.layout.cells import choose_cell
    from layoutkit.tools.current_layout import CurrentLayout

    name = {} if given is None else {"technology": _name_of(given)}
    current = CurrentLayout({"layout_path": os.fspath(path), **name})
    process, layout = current.technology(), current.read()
    return Layout(layout, choose_cell(layout), process, Path(path), tuple(current.warnings))


def _compared(layout: Layout, netlist: Netlist, waived_layers: tuple[str, ...]) -> LvsResult:
    from layoutkit.circuit import MapOptions, ModelNames, map_circuit
    from layoutkit.circuit.passive_map import without_parasitics
    from layoutkit.extract.extractor import extract
    from layoutkit.lvs.compare import compare

    options = MapOptions(width_per=netlist.request["width_per"])
    named = ModelNames(layout.technology, netlist.request.get("device_map")).applied(netlist.circuit)
    named = without_parasitics(named, layout.technology)
    mapped = map_circuit(named, layout.technology, options)
    made = layout.technology.made_for(device.model for device in mapped.devices)
    extraction = extract(layout.layout, layout.cell, made, waived_layers=waived_layers)
    return compare(extraction, mapped)


def _print_progress(text: str) -> None:
    sys.stderr.write(f"{text}\n")


PICTURE_SIDE = 900
"""Longer side of a picture. [pixels]"""


@dataclass(frozen=True)
class Netlist:
    """A netlist that has been read.

    Attributes:
        circuit: Its devices, nets, ports and recognised modules.
        request: Where it comes from and how it is read, as parameters of ``flow.build_layout``.
    """

    circuit: Circuit
    request: Mapping[str, Any]

    def _repr_html_(self) -> str:
        """Return tables of the recognised groups and of the devices."""
        return rendered("results.html", netlist=self.circuit, png="")


@dataclass(frozen=True)
class Layout:
    """A layout in memory.

    Attributes:
        layout: KLayout's object, which owns the cell.
        cell: The cell that was drawn or built.
        technology: Its process.
        path: The file it was read from; None for one that was drawn.
        warnings: What was rounded or changed, and other warnings.
    """

    layout: kdb.Layout
    cell: kdb.Cell
    technology: Technology
    path: Path | None = None
    warnings: tuple[str, ...] = ()

    @property
    def size_um(self) -> tuple[float, float]:
        """Width and height of all that is drawn. [um]"""
        box = self.cell.dbbox()
        return box.width(), box.height()

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the layout as GDSII or OASIS, by the name of the file, and return the path.

        Raises:
            FileError: If nothing can be written there.
        """
        from layoutkit.layout.files import write_layout

        write_layout(self.layout, path)
        return Path(path)

    def picture(self, layers: Sequence[int | str] | None = None, *, markers: Sequence[Marker] = ()) -> bytes:
        """Return a PNG picture in the process's colours.

        Args:
            layers: Layers to show: names of the process or GDS numbers; None for all.
            markers: Places to mark, such as violations.
        """
        from layoutkit.view.render import ViewOptions, render

        width, height = self.size_um
        ratio = min(max(width / max(height, 1e-9), 0.5), 2.0)
        sides = round(PICTURE_SIDE * min(ratio, 1)), round(PICTURE_SIDE / max(ratio, 1))
        return render(self.cell, self.technology, ViewOptions(*sides, layers=layers), markers).png

    def _repr_png_(self) -> bytes:
        return self.picture()


@dataclass(frozen=True)
class Check:
    """The verdict of DRC and of LVS.

    Attributes:
        layout: What was judged.
        drc: Verdict, violations and what could not be checked, as ``drc`` in the report of ``flow.build_layout``.
        lvs: Data of ``lvs.run_check``; None where no circuit was given.
    """

    layout: Layout
    drc: Mapping[str, Any]
    lvs: Mapping[str, Any] | None

    @property
    def ok(self) -> bool:
        """Whether every check that ran is complete and found nothing; without a circuit this says nothing about LVS."""
        return not self.faults

    @cached_property
    def faults(self) -> tuple[str, ...]:
        """One sentence for each fault."""
        from layoutkit.flow.summary import faults

        return tuple(faults({"drc": self.drc} | ({} if self.lvs is None else {"lvs": self.lvs})))

    def _repr_html_(self) -> str:
        """Return the verdicts, and a picture with the places of the violations."""
        from layoutkit.view.drawing_data import markers_at

        markers = markers_at(self.drc["violations"])
        return rendered("results.html", check=self, png=b64encode(self.layout.picture(markers=markers)).decode())


@dataclass(frozen=True)
class Build:
    """A layout built from a netlist, and the report on it.

    Attributes:
        netlist: What was built.
        report: Data of ``flow.build_layout``: placement, routing, checks, matching and metrics.
        faults: One sentence for each fault; none if the layout is clean.
    """

    netlist: Netlist
    report: Mapping[str, Any]
    faults: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether all stages ran, every net is routed, DRC and LVS are clean and complete, and currents are carried."""
        return not self.faults and not self.report["remaining_stages"]

    @property
    def files(self) -> Mapping[str, str]:
        """Paths of the files in the workspace, by what they are: ``gds``, ``png``, ``drc_report`` and so on."""
        return dict(self.report["files"])

    @cached_property
    def layout(self) -> Layout:
        """The finished layout, read from the workspace.

        Raises:
            LayoutkitError: If the build stopped before there was one, or the file has changed since.
        """
        from layoutkit.layout.cells import choose_cell
        from layoutkit.tools.current_layout import CurrentLayout

        if "gds" not in self.files:
            stages = ", ".join(self.report["remaining_stages"])
            raise LayoutkitError(f"the build stopped before the layout was written; still to run: {stages}")
        current = CurrentLayout({"layout_path": self.files["gds"]})
        layout = current.read()
        if current.sha256 != self.report["layout_sha256"]:
            raise LayoutkitError(f"{current.path} has changed since it was built; build it again")
        return Layout(layout, choose_cell(layout), current.technology(), current.path, tuple(self.report["warnings"]))

    def _repr_html_(self) -> str:
        """Return the verdicts, some figures and the picture of the build, and where its whole report is."""
        png = Path(self.files["png"]).read_bytes() if "png" in self.files else b""
        return rendered("results.html", build=self, png=b64encode(png).decode())
