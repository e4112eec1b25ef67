"""One conversation, without a screen."""
