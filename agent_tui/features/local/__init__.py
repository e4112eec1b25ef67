"""Models on this machine: downloaded or added files, and llama.cpp's server that runs them."""
