"""Commands about background jobs."""
