"""Free context without a model: shorten or describe what the model need not see again."""
