"""Standard streams that can take whatever is printed, wherever they were left open or closed."""

import io
import os
import sys
from typing import cast


def settle_standard_streams() -> None:
    """Put the null device where a stream is closed, and make standard output UTF-8.

    A closed descriptor would be given to the next file that is opened, and what is printed
    would land in it. What we print may hold any character, whatever the locale says.
    """
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            null = os.open(os.devnull, os.O_RDWR)
            if null != number:
                os.dup2(null, number)
                os.close(null)
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8"))
    stdout: object = sys.stdout
    if isinstance(stdout, io.TextIOWrapper):
        cast("io.TextIOWrapper", stdout).reconfigure(encoding="utf-8", errors="replace")
