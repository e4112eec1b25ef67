"""llama.cpp, a kind of model server."""
