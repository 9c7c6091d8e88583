"""Servers over a skill pack: MCP (``skillpack mcp``) and HTTP (``skillpack http``).

What is served comes from files read as data. Nothing of a skill is executed by scanning, listing, serving or
validating it; only a call runs a tool, in a process of its own.
"""
