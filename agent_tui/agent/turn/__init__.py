"""One turn: what the person said, replies, and the calls in them, until nothing is left to do."""
