"""Summarize a scope, such as a loop, when it ends: its entries as text, and the request."""
