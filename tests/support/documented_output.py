"""The output of the commands that the documents show, in blocks marked ``console``.

python -m tests.support.documented_output    # writes it into the documents
"""

import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCUMENTS = tuple((ROOT / "docs/pages").glob("*.md"))
_BLOCK = re.compile(r"(?ms)^(`{3,})console\n\$ (agent-tui [^\n]*)\n.*?^\1$")


def with_output(text: str) -> str:
    """The document with what its commands print now; messages on standard error are left out."""
    return _BLOCK.sub(lambda block: _shown(*block.groups()), text)


def _shown(fence: str, command: str) -> str:
    argv = [sys.executable, "-m", "agent_tui", *shlex.split(command)[1:]]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=True)
    lines = done.stdout.replace(f"{ROOT}/", "").rstrip().splitlines()
    output = "\n".join(line.rstrip() for line in lines)
    return f"{fence}console\n$ {command}\n{output}\n{fence}"


if __name__ == "__main__":
    for document in DOCUMENTS:
        document.write_text(with_output(document.read_text("utf-8")), "utf-8")
