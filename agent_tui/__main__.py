"""Entry point: ``agent-tui`` and ``python -m agent_tui``."""

import sys


def main() -> int:
    """Run the program with the process's arguments and return its exit code."""
    from agent_tui.cli.main import run

    return run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
