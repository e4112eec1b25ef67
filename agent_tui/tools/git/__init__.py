"""Git for the tools and the user: one command, a folder's status, what a call changed."""
