"""The command about skills."""
