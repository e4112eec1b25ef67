"""What a folder offers may be a pipe, a device, a socket or a folder; no reader waits for it."""

import ast
import os
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

import agent_tui
from agent_tui.agent.compaction.compactor import read_working_file
from agent_tui.agent.prompt.context_files import text_of
from agent_tui.agent.prompt.prompt_files import read_prompt_bytes
from agent_tui.drafts.history import PromptHistory
from agent_tui.errors import AgentTuiError
from agent_tui.features.hooks.files import read_hook_file
from agent_tui.features.local.gguf import read_gguf
from agent_tui.features.mcp.server_files import read_server_file
from agent_tui.permissions.trust import TrustFile
from agent_tui.regular_files import NotRegularFileError, open_regular_file, read_regular_file
from agent_tui.sessions.file.writer import session_status
from agent_tui.sessions.importers.formats import detect_format
from agent_tui.sessions.listing import read_summary
from agent_tui.sessions.log import SessionLog
from agent_tui.sessions.newest_entries import newest_entries
from agent_tui.tools.files.images import read_image
from tests.support.patience import PATIENCE_S

pytestmark = pytest.mark.timeout(PATIENCE_S)


def make_pipe(path: Path) -> None:
    os.mkfifo(path)


def make_socket(path: Path) -> None:
    here = Path.cwd()
    os.chdir(path.parent)  # the address of a socket is short
    try:
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind(path.name)
    finally:
        os.chdir(here)


def link_to_zero(path: Path) -> None:
    path.symlink_to("/dev/zero")


@pytest.mark.parametrize(
    ("make", "kind"),
    [(make_pipe, "named pipe"), (make_socket, "socket"), (link_to_zero, "device")],
)
def test_a_refusal_says_what_stands_there(
    tmp_path: Path, make: Callable[[Path], None], kind: str
) -> None:
    path = tmp_path / "x"
    make(path)
    with pytest.raises(NotRegularFileError) as refused:
        open_regular_file(path)
    assert refused.value.strerror == f"Is a {kind}, not a regular file"
    assert refused.value.filename == str(path)


def test_files_links_and_the_null_device_are_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"one\ntwo\n")
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "off").symlink_to(os.devnull)
    assert read_regular_file(tmp_path / "link") == b"one\ntwo\n"
    assert read_regular_file(tmp_path / "off") == b""
    with open_regular_file(tmp_path / "file", buffering=0) as file:
        assert os.get_blocking(file.fileno())
        assert file.read(3) == b"one"
    with pytest.raises(IsADirectoryError):
        open_regular_file(tmp_path)
    with pytest.raises(FileNotFoundError):
        open_regular_file(tmp_path / "none")
    with pytest.raises(OSError, match="symbolic links"):
        open_regular_file(tmp_path / "link", follow_links=False)


def test_a_refused_file_is_closed(tmp_path: Path) -> None:
    make_pipe(tmp_path / "pipe")
    before = psutil.Process().num_fds()
    for _ in range(5):
        with pytest.raises(NotRegularFileError):
            open_regular_file(tmp_path / "pipe")
    assert psutil.Process().num_fds() == before


READERS: dict[str, Callable[[Path], object]] = {
    "context file": text_of,
    "command or skill": read_prompt_bytes,
    "hooks": read_hook_file,
    "servers": read_server_file,
    "image": read_image,
    "model": read_gguf,
    "session": lambda path: SessionLog.open(path, read_only=True),
    "summary of a session": read_summary,
    "status of a session": session_status,
    "end of a session": lambda path: next(newest_entries(path)),
    "foreign session": detect_format,
    "history": lambda path: PromptHistory(path).load(),
    "trust": lambda path: TrustFile(path).read(),
    "changed file": lambda path: read_working_file(path.parent, path.name),
}


@pytest.mark.parametrize("make", [make_pipe, link_to_zero], ids=["pipe", "endless"])
@pytest.mark.parametrize("reader", READERS)
def test_no_reader_waits_for_a_pipe_or_reads_on_for_ever(
    tmp_path: Path, reader: str, make: Callable[[Path], None]
) -> None:
    path = tmp_path / "x.jsonl"
    make(path)
    with suppress(AgentTuiError, OSError):
        READERS[reader](path)


_READING = {"read_text", "read_bytes"}
_ELSEWHERE = {
    "agent_tui/features/memory/command.py": "a file of the package",
    "agent_tui/cli/own_files.py": "a file of a package",
    "agent_tui/features/clean/removal.py": "/proc",
    "agent_tui/features/print/piped_input.py": "/proc",
    "agent_tui/harbor/table.py": "named by the person",
    "agent_tui/features/print/answer_schema.py": "named by the person: <(command) is a pipe",
    "agent_tui/installation.py": "a file of a package",
    "agent_tui/features/local/pull.py": "what was just fetched",
    "agent_tui/secret_text.py": "a file of the package",
    "agent_tui/features/google/account.py": "named by the person",
    "agent_tui/providers/table.py": "a file of a package",
    "agent_tui/features/export/documents.py": "a file of the package",
    "agent_tui/text_editor.py": "in a folder of its own",
    "agent_tui/tools/processes/keeper_process.py": "/proc",
    "agent_tui/tools/processes/output.py": "made by the program",
    "agent_tui/features/sandbox/landlock_launcher.py": "/proc",
    "agent_tui/features/sandbox/named_sockets.py": "/proc",
    "agent_tui/features/sandbox/kept_home.py": "a folder of the program",
    "agent_tui/features/sandbox/wall.py": "/proc",
    "agent_tui/features/sandbox/made_sockets.py": "/proc",
    "agent_tui/features/sandbox/mounts.py": "/proc",
    "agent_tui/features/sandbox/ports.py": "/proc",
}


def test_files_are_opened_for_reading_by_the_one_helper() -> None:
    root = Path(agent_tui.__file__).parent
    found = {
        str(path.relative_to(root.parent))
        for path in root.rglob("*.py")
        if any(map(_is_reading, ast.walk(ast.parse(path.read_text("utf-8")))))
    }
    assert found == set(_ELSEWHERE)


def _is_reading(node: ast.AST) -> bool:
    """Whether this is ``x.read_text()``, ``x.read_bytes()``, or ``x.open()`` of bytes to read."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    if node.func.attr in _READING:
        return True
    first = node.args[0] if node.args else None
    is_mode = isinstance(first, ast.Constant) and first.value in ("r", "rb")
    return node.func.attr == "open" and (is_mode or not node.args)
