"""Self-contained copies of skills: the modules that scripts import, their headers and locks, the manifest."""
