"""Ways to compact besides the tiers: message by message, and with an agent."""
