"""The tree of a session's messages: go back, fork, label and mark."""
