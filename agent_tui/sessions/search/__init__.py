"""Full-text search over all sessions."""
