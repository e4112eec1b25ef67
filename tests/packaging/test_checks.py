"""What `.ci/run` names is there: a wrong path fails only at the end of a whole run."""

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_checks_name_tests_that_are_there() -> None:
    script = (ROOT / ".ci" / "run").read_text()
    named = re.findall(r"\btests/[\w./{},]+", script)
    assert named
    expanded = subprocess.run(
        ["bash", "-c", f"printf '%s\\n' {' '.join(named)}"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert [path for path in expanded if not (ROOT / path).exists()] == []
