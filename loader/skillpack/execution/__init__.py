"""Call a tool: in a separate process, or in this one for a registered function."""
