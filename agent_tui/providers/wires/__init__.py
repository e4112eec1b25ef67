"""How models are called: one module per wire, all in `table`."""
