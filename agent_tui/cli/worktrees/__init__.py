"""``--worktree`` and ``agent-tui worktrees``: sessions in git worktrees of their own."""
