"""Git for the tools and the person: one command, a folder's status, what a call changed."""
