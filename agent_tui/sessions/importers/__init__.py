"""Reading the sessions of other agents, so that their work can go on here."""
