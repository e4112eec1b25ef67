"""The wall (sandbox) around the model's commands: what exists inside it, and how it is built."""
