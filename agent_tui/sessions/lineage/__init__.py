"""How conversations are related: parents and forks of sessions, and branches within one."""
