"""Asks models from within the program: HTTP, the accounts of clouds, requests under way."""
