"""The strategy ``agent``: a model compresses a copy of the context with four tools."""
