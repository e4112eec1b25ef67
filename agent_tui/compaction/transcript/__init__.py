"""A conversation as labelled text for a model that describes it."""
