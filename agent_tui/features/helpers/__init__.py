"""Helpers that work for a conversation, and sessions in git worktrees."""
