"""The ways to make a context smaller; those without a summary plan every message's form."""
