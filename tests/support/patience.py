"""How long tests wait for what happens in seconds, also on a slow machine."""

PATIENCE_S = 120.0
"""A limit for hangs alone: only a failure takes it up, however many programs run beside it."""
