"""What may run without asking: shown, checked and changed."""
