"""Drawing MOS structures: fingers in rows, rows in tap rings; single, paired and mirrored transistors on them."""
