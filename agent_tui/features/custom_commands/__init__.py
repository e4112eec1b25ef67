"""Slash commands from prompt files and skills."""
