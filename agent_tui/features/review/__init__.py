"""Review changes: see them, comment on lines, take hunks back, stage and commit."""
