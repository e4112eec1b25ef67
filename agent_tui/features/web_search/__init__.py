"""Searches of the web, by the model's provider or a search server of the user's."""
