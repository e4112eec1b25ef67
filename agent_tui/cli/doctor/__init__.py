"""The checks behind ``agent-tui doctor``, one file for each thing that is looked at."""
