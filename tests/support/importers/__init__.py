"""Readers of what research agents recorded: long real sessions for tests and benchmarks."""
