"""The keys of vi in the prompt."""
