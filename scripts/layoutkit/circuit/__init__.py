"""Circuits: reading netlists, recognising modules, mapping to a technology, writing SPICE.

Nothing heavy is imported here or below.
"""

from layoutkit.circuit.circuit import Circuit, Connection, Device, RecognisedModule, resized
from layoutkit.circuit.device_map import MapOptions, map_circuit
from layoutkit.circuit.readers.netlist import read_netlist
from layoutkit.circuit.readers.source import given_netlist
from layoutkit.circuit.recognise import recognise
from layoutkit.circuit.replaced_devices import ModelNames
from layoutkit.circuit.roles import Roles, find_roles, recognised
from layoutkit.circuit.spice_writer import longer_sides_first, write_spice
from layoutkit.circuit.supplies import Supplies
from layoutkit.circuit.taps import join_taps
from layoutkit.circuit.widths import check_junctions, narrow_warnings, read_widths

__all__ = [
    "Circuit",
    "Connection",
    "Device",
    "MapOptions",
    "ModelNames",
    "RecognisedModule",
    "Roles",
    "Supplies",
    "check_junctions",
    "find_roles",
    "given_netlist",
    "join_taps",
    "longer_sides_first",
    "map_circuit",
    "narrow_warnings",
    "read_netlist",
    "read_widths",
    "recognise",
    "recognised",
    "resized",
    "write_spice",
]
