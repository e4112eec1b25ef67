"""Starts a program in a pseudo-terminal and waits for words on its screen.

``python -m tests.support.first_paint WORDS PROGRAM [ARGUMENT ...]``
"""

import sys

from tests.support.pty_program import PtyProgram

_WITHIN_S = 120.0
"""Seconds; the first start of a new installation compiles all of it."""


def main() -> None:
    """Wait, and say how long it took."""
    words, *argv = sys.argv[1:]
    with PtyProgram(argv) as program:
        painted_at = program.wait_for(words, _WITHIN_S)
        print(f"{words!r} is on the screen after {painted_at - program.started_at:.1f} s")


if __name__ == "__main__":
    main()
