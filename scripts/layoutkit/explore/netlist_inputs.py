"""The texts of netlists, their includes and technology files, for workers that do not share a disk with the client."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from layoutkit.circuit.readers.findings import Findings
from layoutkit.circuit.readers.source import NetlistText, read_text
from layoutkit.circuit.readers.spice_files import StatementReader

if TYPE_CHECKING:
    from collections.abc import Mapping

FOLDER = "netlist"


@dataclass(frozen=True)
class NetlistInputs:
    """The texts of a netlist.

    Attributes:
        main: Path of the netlist below the folder of its copy.
        texts: Every file by its path there, the netlist first.
    """

    main: str
    texts: Mapping[str, str]

    @classmethod
    def of(cls, netlist: str | NetlistText) -> NetlistInputs:
        """Return the texts of a netlist; includes lie in its own folder, all others are not read anyway.

        Raises:
            LayoutkitError: If it cannot be read.
        """
        if isinstance(netlist, NetlistText):
            name = f"{FOLDER}/{netlist.stem}.spice"
            return cls(name, {name: read_text(netlist)})
        path = Path(netlist).resolve()
        files = [Path(netlist)]
        if path.suffix.lower() != ".json":
            reader = StatementReader(Path(netlist), Findings())
            for _ in reader.statements():  # faults are reported where the circuit is read
                pass
            files += reader.included
        names = [f"{FOLDER}/{path.name}", *(f"{FOLDER}/{each.relative_to(path.parent)}" for each in files[1:])]
        return cls(names[0], {name: read_text(file) for name, file in zip(names, files, strict=True)})

    def save(self, folder: Path) -> Path:
        """Write the texts below ``folder`` and return the path of the netlist there."""
        from layoutkit.layout.files import make_folder, write_bytes

        for name, text in self.texts.items():
            path = folder / name
            make_folder(path.parent)
            write_bytes(path, text.encode("utf-8"))
        return folder / self.main


def technology_input(technology: str) -> tuple[str, dict[str, str]]:
    """Return what a job calls a technology, and its file among the job's inputs, none for a shipped one.

    Raises:
        LayoutkitError: If the file cannot be read.
    """
    from layoutkit.layout.files import read_bytes
    from layoutkit.technology import names

    if technology in names():
        return technology, {}
    name = f"technology/{Path(technology).name}"
    return name, {name: read_bytes(technology).decode("utf-8", "replace")}
