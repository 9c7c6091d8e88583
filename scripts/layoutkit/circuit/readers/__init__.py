"""Netlist readers: SPICE and JSON."""
