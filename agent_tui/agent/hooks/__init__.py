"""How hooks are defined: in the settings, by plugins, and in files of a trusted project."""
