"""Which recorded change made each line of a file."""
