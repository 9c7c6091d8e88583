"""Calling a tool: in a process of its own, or in this one for a registered function."""
