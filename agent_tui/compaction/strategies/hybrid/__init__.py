"""The strategy ``hybrid``: metadata for tool results, fewer words for old messages."""
