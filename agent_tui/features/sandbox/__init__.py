"""The sandbox of the model's commands: what exists inside it, and how it is built."""
