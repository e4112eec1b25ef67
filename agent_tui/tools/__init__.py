"""What the model can do: one tool per file, with its model-facing text."""
