"""Formats that sessions are exported in, and ``/export``."""
