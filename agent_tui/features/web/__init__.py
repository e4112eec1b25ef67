"""Reads web pages: checks addresses, downloads pages, converts them to text."""
