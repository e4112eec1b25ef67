"""Export a session as a document to keep or share."""
