"""Carries sessions through refs of a project's git remote."""
