"""Tokens and dollars of a session."""
