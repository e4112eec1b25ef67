"""Shared by the file tools: reading and writing text, walking folders, images, diffs."""
