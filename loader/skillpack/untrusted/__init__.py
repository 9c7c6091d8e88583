"""Read what strangers wrote: files of a folder, YAML, and texts that may imitate others."""
