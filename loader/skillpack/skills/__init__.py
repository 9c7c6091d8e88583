"""SKILL.md: reading, catalog, loading, prompt text, search, validation and scaffolding."""
