"""Read the sessions of other agents, so that their work can continue here."""
