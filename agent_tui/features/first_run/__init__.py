"""Ways to a first model, for users who have none set up."""
