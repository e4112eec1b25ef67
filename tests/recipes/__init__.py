"""The recipes of CONTRIBUTING, each followed literally in a copy of the program."""
