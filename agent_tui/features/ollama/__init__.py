"""Ollama, a kind of model server."""
