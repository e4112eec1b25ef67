"""``agent-tui login`` and ``agent-tui logout``: sign-ins and stored keys."""
