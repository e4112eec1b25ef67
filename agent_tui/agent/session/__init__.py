"""The session of a conversation: beginning, opening, forking, going back, undoing."""
