"""Budgets for a session and a day: what requests may cost."""
