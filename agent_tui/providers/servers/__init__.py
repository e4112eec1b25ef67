"""Model servers that the user runs: finding them, and what they say about their models."""
