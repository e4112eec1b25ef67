import subprocess

import pytest

from agent_tui.permissions.shell.quoting import ansi_c_text

TEXTS = [
    r"\x2eenv",
    r"\056env",
    r"\u002eenv",
    r"\U0000002eenv",
    r"a\tb\nc",
    r"\'\"\\",
    r"\x2",
    r"\60\061",
    "plain",
]


@pytest.mark.parametrize("text", TEXTS)
def test_escapes_are_what_bash_makes_of_them(text: str):
    printed = subprocess.run(
        ["bash", "-c", f"printf %s $'{text}'"], capture_output=True, text=True, check=True
    )
    assert ansi_c_text(text) == printed.stdout
