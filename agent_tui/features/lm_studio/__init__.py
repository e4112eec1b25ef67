"""LM Studio, a kind of model server."""
