"""Sessions as they travel between clones of a project: what goes, what is taken, how they join."""
