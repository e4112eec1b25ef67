"""A change of a file as coloured rows."""
