"""Pictures, markers, metrics and the report page of a layout."""
