"""How models are spoken to: one module a wire, all in `table`."""
