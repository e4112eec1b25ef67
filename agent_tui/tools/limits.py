"""Caps on what one tool call may give the model, whichever is reached first."""

MAX_OUTPUT_LINES = 2_000
MAX_OUTPUT_BYTES = 50_000
