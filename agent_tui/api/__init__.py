"""What other programs import: see ``agent_tui`` for the names and ``docs/pages/library.md``."""
