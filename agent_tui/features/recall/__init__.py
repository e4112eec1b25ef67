"""Originals that the context no longer contains, of this session and of earlier ones."""
