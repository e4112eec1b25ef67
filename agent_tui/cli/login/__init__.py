"""``agent-tui login`` and ``agent-tui logout``: the accounts whose models to use."""
