"""vLLM, a kind of model server."""
