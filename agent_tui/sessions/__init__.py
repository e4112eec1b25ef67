"""Session files: an append-only log and the pure projection the model sees."""
