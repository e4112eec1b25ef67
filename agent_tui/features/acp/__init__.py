"""Editors as a front: the Agent Client Protocol over standard input and output."""
