"""Measuring with Harbor, which runs agents on many tasks; only `agent` needs it installed."""
