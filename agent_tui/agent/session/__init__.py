"""Which session a conversation is in: beginning, opening, forking, going back, undoing."""
