"""What all questions share: answers as rows, and what becomes of keys that are typed too early."""

QUIET_S = 1.0
"""So long nothing must have been typed before a question takes a key: what was meant for the
prompt must not trust a folder or start a program."""

SCROLL_KEYS = frozenset("jk")
"""Keys that scroll the question, and therefore are not text either."""
