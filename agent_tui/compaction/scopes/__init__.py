"""Summing up a scope (a loop, say) when it ends: its entries as text, and the request for it."""
