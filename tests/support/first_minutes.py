"""Records the first five minutes of an ordinary user as a moving picture, in a real terminal.

    python -m tests.support.first_minutes CHECKOUT PICTURE

Run it as that user, with tmux and uv on ``PATH``, a home folder without agent-tui, and a repository
at ``~/src/x`` with a ``greet.py``. The program is installed from CHECKOUT as README.md says; the
model's replies are scripted, all else is real.
"""

import io
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path

from rich.console import Console
from rich.text import Text

from tests.support.moving_picture import moving
from tests.support.openai_server import Call, OpenAiServer, Reply

_COLUMNS, _ROWS = 100, 30
_WITHIN_S = 180.0
_STILL_S = 1.0
_FIXED = 'def greet(name):\n    return f"Hello, {name}!"\n'
_TRIED = (
    "python3 -c 'from greet import *; print(greet(\"Ada\"))' && "
    "git commit -qam 'Greet by name' && git log --oneline && ls ~"
)
_INSTALL = re.compile(r"^    (UV_LINK_MODE=copy uv tool install .*?)(?:  +#.*)?$", re.MULTILINE)


class _Terminal:
    """A terminal of tmux, and the pictures taken of it."""

    def __init__(self) -> None:
        self.frames: list[str] = []
        self._tmux("kill-server", check=False)
        size = ["-x", str(_COLUMNS), "-y", str(_ROWS)]
        self._tmux("new-session", "-d", *size, "env COLORTERM=truecolor bash --norc")
        self._tmux("set-option", "-g", "status", "off")
        self.type("PS1='\\w$ '; cd ~/src/x; clear")

    def type(self, text: str) -> None:
        """Enter a line."""
        self._tmux("send-keys", "-l", text)
        self._tmux("send-keys", "Enter")

    def press(self, *keys: str) -> None:
        """Press keys by tmux's names."""
        self._tmux("send-keys", *keys)

    def take(self, words: str) -> None:
        """Take a picture once `words` are on the screen and nothing moves any more."""
        deadline, before = time.monotonic() + _WITHIN_S, ""
        while words not in (now := self._screen()) or now != before:
            if time.monotonic() > deadline:
                raise SystemExit(f"{words!r} does not appear:\n{now}")
            before = now
            time.sleep(_STILL_S)
        console = Console(width=_COLUMNS, height=_ROWS, record=True, file=io.StringIO())
        console.print(Text.from_ansi(now), end="")
        self.frames.append(console.export_svg(title="~/src/x", unique_id=f"f{len(self.frames)}"))

    def close(self) -> None:
        """End the terminal and what runs in it."""
        self._tmux("kill-server")

    def _screen(self) -> str:
        return self._tmux("capture-pane", "-p", "-e")

    def _tmux(self, *words: str, check: bool = True) -> str:
        argv = ["tmux", "-L", "first-minutes", *words]
        ran = subprocess.run(argv, check=check, stdout=subprocess.PIPE, text=True)
        return ran.stdout


_REPLIES = (
    Reply("Let me look at the code.", tool_calls=(Call("read", {"path": "greet.py"}),)),
    Reply(
        "The name is ignored. I fix that.",
        tool_calls=(Call("write", {"path": "greet.py", "content": _FIXED}),),
    ),
    Reply("Now I try it, and commit it.", tool_calls=(Call("bash", {"command": _TRIED}),)),
    Reply("It greets by name now; the change is committed."),
)


def record(checkout: Path, server: OpenAiServer) -> list[str]:
    """What the user sees from the installation to the continued session, as SVG."""
    terminal = _Terminal()
    try:
        _install_and_tour(terminal, checkout)
        _work(terminal, server)
    finally:
        terminal.close()
    return terminal.frames


def _install_and_tour(terminal: _Terminal, checkout: Path) -> None:
    install = _INSTALL.search((checkout / "README.md").read_text("utf-8"))
    assert install is not None
    terminal.type(f"(cd {shlex.quote(str(checkout))} && {install[1]} 2>&1 | tail -2)")
    terminal.take("Installed")
    terminal.type("clear; agent-tui --demo")
    terminal.take("Tour 1/5")
    terminal.press("Enter")
    for question in ("Run this command?", "Make this change?", "Run this command?"):
        terminal.take(question)
        terminal.press("y")
    terminal.take("Tour 3/5")
    terminal.press("Enter")
    terminal.take("Tour 4/5")
    terminal.press("C-d")
    terminal.take("x$")


def _work(terminal: _Terminal, server: OpenAiServer) -> None:
    server.play(*_REPLIES)
    url = f"--base-url {server.base_url}"
    terminal.type(f"clear; OPENAI_API_KEY=none agent-tui -m scripted {url}")
    terminal.take("ctx:")
    terminal.type("greet() ignores the name: fix it, try it, and commit")
    terminal.take("Make this change?")
    terminal.press("y")
    terminal.take("Run this command?")
    terminal.press("y")
    terminal.take("It greets by name now")
    terminal.press("C-d")
    terminal.take("x$")
    terminal.type("clear; git log --oneline; OPENAI_API_KEY=none agent-tui -c")
    terminal.take("It greets by name now")


def main() -> None:
    """Record, and write the picture."""
    checkout, picture = (Path(word).resolve() for word in sys.argv[1:])
    with OpenAiServer() as server:
        picture.write_text(moving(record(checkout, server)), "utf-8")


if __name__ == "__main__":
    main()
