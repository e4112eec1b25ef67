"""Writing a session file safely: lock, appending, migration, and reading parts of it."""
