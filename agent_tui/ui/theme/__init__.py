"""Colours: our themes, contrast that can be read, palettes of rows; classes by size."""
