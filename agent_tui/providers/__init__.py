"""Models: one Protocol, and the wires that reach them."""
