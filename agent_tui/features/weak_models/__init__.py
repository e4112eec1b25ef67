"""Tools for models that do not call them the way their server expects."""
