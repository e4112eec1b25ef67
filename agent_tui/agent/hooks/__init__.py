"""Commands of the person's that are run at certain moments of a conversation."""
