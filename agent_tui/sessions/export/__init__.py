"""A session as a document to keep or pass on."""
