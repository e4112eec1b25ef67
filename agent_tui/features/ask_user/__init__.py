"""Questions of the model to the user, with answers to choose from."""
