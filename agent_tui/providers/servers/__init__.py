"""Model servers that the person runs: finding them, and what they say of their models."""
