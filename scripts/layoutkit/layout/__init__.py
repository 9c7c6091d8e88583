"""Layout files, cells, the workspace and export."""
