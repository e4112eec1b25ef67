"""Carry out compactions of a conversation: on request, when the context is full, and in advance."""
