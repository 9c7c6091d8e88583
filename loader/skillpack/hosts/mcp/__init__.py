"""The MCP server: ``skillpack mcp``, over standard input and output or streamable HTTP."""
