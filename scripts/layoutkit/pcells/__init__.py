"""The device generators as PCells: one library per technology, for KLayout's window and for scripts."""
