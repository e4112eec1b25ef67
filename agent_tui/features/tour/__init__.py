"""The scripted tour: a conversation in a scratch folder that needs no model."""
