"""The user's input: a draft with its pastes and images, and the history of sent drafts."""
