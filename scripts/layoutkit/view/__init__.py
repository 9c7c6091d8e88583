"""Pictures, markers and metrics of a layout."""
