"""Notifications for a user who looks elsewhere."""
