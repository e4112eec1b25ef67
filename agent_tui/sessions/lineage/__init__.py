"""How conversations are related: parents and forks of sessions, branches within one."""
