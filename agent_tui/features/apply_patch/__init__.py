"""The `apply_patch` tool, for models trained on the V4A format."""
