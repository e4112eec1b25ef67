"""``/loop`` runs a prompt repeatedly; a scope of the model's is summarised at its end."""
