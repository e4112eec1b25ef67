"""Freeing context without a model: what the model need not see again, shortened or described."""
