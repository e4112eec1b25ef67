"""``agent-tui login`` and ``agent-tui logout``: accounts and keys for providers."""
