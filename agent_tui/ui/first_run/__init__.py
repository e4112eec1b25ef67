"""The ways to a first model, for somebody who has none set up."""
