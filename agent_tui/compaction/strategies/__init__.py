"""Other ways to make a context smaller than tier by tier; each turns entries into edits."""
