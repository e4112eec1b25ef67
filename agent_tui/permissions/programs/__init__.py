"""What is known about individual programs: which only read, and which do harm."""
