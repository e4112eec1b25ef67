import os
import pty
import select
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from agent_tui.messages import UserMessage
from agent_tui.ui.options import UiOptions
from agent_tui.ui.terminal.run import farewell
from agent_tui.ui.terminal.state import title_sequence
from tests.support.models import listed_services
from tests.support.patience import PATIENCE_S
from tests.support.runtime import Stage
from tests.ui.app_support import asking, said

PROGRAM = """
import sys
from pathlib import Path
from agent_tui.ui.options import UiOptions
from agent_tui.ui.terminal.run import run_ui
from tests.support.models import listed_services
from tests.support.runtime import Stage
from tests.ui.app_support import asking
options = UiOptions(asking(Stage(Path(sys.argv[1]))), listed_services())
sys.exit(run_ui(lambda: options).exit_code)
"""


def test_a_title_cannot_end_its_own_sequence():
    assert title_sequence("a\x07b\x1b]52;c;x\x07") == "\x1b]2;a␇b␛]52;c;x␇\x07"
    assert len(title_sequence("x" * 1_000)) < 100


def test_the_way_back_is_told_when_something_was_said(tmp_path: Path):
    runtime = asking(Stage(tmp_path))
    options = UiOptions(runtime, listed_services())
    assert farewell(options) == ""
    said(runtime, UserMessage(content="hi"))
    runtime.sessions.rename("work")
    short_id = runtime.conversation.log.header.id[:8]
    assert farewell(options) == (
        f"Session {short_id} (work) is saved. Resume it with: agent-tui -r {short_id}\n"
    )


def test_the_way_back_to_a_session_outside_the_folder_of_sessions_is_its_file(tmp_path: Path):
    runtime = asking(Stage(tmp_path))
    options = UiOptions(runtime, listed_services())
    said(runtime, UserMessage(content="hi"))
    path = runtime.conversation.log.path
    assert path is not None
    runtime.services.store.root = tmp_path / "my sessions"
    assert farewell(options).endswith(f"agent-tui -r {path}\n")


def test_the_way_back_names_the_folder_of_sessions_that_was_given(tmp_path: Path):
    runtime = said(asking(Stage(tmp_path)), UserMessage(content="hi"))
    options = UiOptions(runtime, listed_services(), session_dir="my sessions")
    short_id = runtime.conversation.log.header.id[:8]
    assert farewell(options).endswith(f"agent-tui --session-dir 'my sessions' -r {short_id}\n")


def read_until(master: int, wanted: bytes, seen: bytes, timeout_s: float) -> bytes:
    deadline = time.monotonic() + timeout_s
    while wanted not in seen and time.monotonic() < deadline:
        if select.select([master], [], [], 0.1)[0]:
            try:
                seen += os.read(master, 65_536)
            except OSError:
                break
    return seen


def start(folder: Path) -> tuple[subprocess.Popen[bytes], int, bytes]:
    """The program in a terminal; its process, the terminal's other end, what it wrote."""
    master, slave = pty.openpty()
    environ = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "80", "LINES": "24"}
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(PROGRAM), str(folder)],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env=environ,
        cwd=Path(__file__).parents[2],
        start_new_session=True,
    )
    os.close(slave)
    seen = read_until(master, b"agent-tui", b"", PATIENCE_S)
    return process, master, read_until(master, b"Ask anything", seen, PATIENCE_S)


@pytest.mark.parametrize("is_told", [True, False], ids=["told", "below su"])
def test_a_closed_terminal_ends_the_program(tmp_path: Path, is_told: bool):
    process, master, _ = start(tmp_path)
    try:
        os.close(master)
        if is_told:
            process.send_signal(signal.SIGHUP)
            process.send_signal(signal.SIGCONT)  # the kernel sends both
        ended = process.wait(timeout=PATIENCE_S)
        late = -signal.SIGHUP  # the signal came when Python had put its handlers away
        assert ended in ((128 + signal.SIGHUP, late) if is_told else (128 + signal.SIGHUP,))
    finally:
        process.kill()
        process.wait()


@pytest.mark.thorough
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_leaves_the_terminal_as_it_was(tmp_path: Path, number: signal.Signals):
    process, master, seen = start(tmp_path)
    try:
        process.send_signal(number)
        seen = read_until(master, b"\x1b[?1049l", seen, PATIENCE_S)
        assert process.wait(timeout=PATIENCE_S) == 128 + number
    finally:
        process.kill()
        process.wait()
        os.close(master)
    for switch in (b"\x1b[?1049", b"\x1b[?1000", b"\x1b[?1003", b"\x1b[?2004"):
        assert switch + b"h" in seen
        assert seen.rindex(switch + b"l") > seen.rindex(switch + b"h")
