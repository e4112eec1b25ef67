"""Calls models from within the program: HTTP, cloud accounts, requests in progress."""
