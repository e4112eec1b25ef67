"""What is known of single programs: which only look, and which do harm."""
