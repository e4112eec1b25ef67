"""The wall around the model's commands: what exists inside it, and what stands it up."""
