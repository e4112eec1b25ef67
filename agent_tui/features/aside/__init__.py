"""Side questions."""
