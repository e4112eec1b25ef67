"""Files of instructions: show, change and write them."""
