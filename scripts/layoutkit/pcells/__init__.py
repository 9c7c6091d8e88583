"""The device generators as PCells: libraries for KLayout's window and for scripts, one a technology."""
