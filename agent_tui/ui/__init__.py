"""The screen: the only room that knows Textual and Rich."""
