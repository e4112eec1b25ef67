"""Features: each folder can be deleted, and the rest of the program still works."""
