"""Models on this machine, run by llama.cpp's server in a separate process."""
