"""Failed requests: what a failure means, and how the person is told."""
