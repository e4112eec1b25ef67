"""Commands that notices give the user name each file exactly, on one line."""

import os
import subprocess

from hypothesis import given
from hypothesis import strategies as st

from agent_tui.features.sandbox.tracked_files import quote_name


@given(st.binary(min_size=1, max_size=12).filter(lambda name: b"\0" not in name))
def test_a_shell_reads_a_quoted_name_as_it_is(name: bytes):
    quoted = quote_name(os.fsdecode(name))
    assert len(quoted.splitlines()) == 1
    argv = ["bash", "-c", f"printf %s {quoted}"]
    printed = subprocess.run(argv, capture_output=True, env={"LC_ALL": "C.UTF-8"}, check=True)
    assert printed.stdout == name
