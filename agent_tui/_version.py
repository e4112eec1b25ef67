"""The one place that says the version; `--version` and the package page follow."""

__version__ = "0.1.0"
