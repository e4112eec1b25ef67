"""What fills the context window, and what a request would send."""
