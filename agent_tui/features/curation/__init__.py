"""The conversation's model chooses what a compaction keeps; code checks its answer."""
