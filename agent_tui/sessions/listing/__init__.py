"""The facts that a list of sessions shows, read quickly and cached."""
