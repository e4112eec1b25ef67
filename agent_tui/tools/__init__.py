"""What the model can do: one tool a file, its model-facing text beside it."""
