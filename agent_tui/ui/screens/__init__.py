"""Screens that lie over the chat: pickers, pages, questions. Each is imported when first used."""
