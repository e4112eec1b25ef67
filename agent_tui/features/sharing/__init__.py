"""Sessions that clones of a project share: what goes, what is taken, how they travel by git."""
