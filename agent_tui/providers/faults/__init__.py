"""Failed requests: what a failure means, and what the user is told."""
