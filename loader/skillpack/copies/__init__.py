"""Self-contained copies of skills: what a script imports of its distribution, its header, its lock, its manifest."""
