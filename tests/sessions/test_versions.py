"""Old session files open for ever: a file of each format and of each released version is kept."""

import json
import shutil
from pathlib import Path

import pytest

from agent_tui import __version__
from agent_tui.sessions.context import build_context
from agent_tui.sessions.entries import FORMAT_VERSION
from agent_tui.sessions.log import SessionLog
from agent_tui.sessions.store import SessionStore
from tests.support.session_values import entry, user

FOLDER = Path(__file__).with_name("versions")
FILES = sorted(FOLDER.glob("*.jsonl"))
SEEN = {
    "format-1": ["tally.py imports csv.", "Never edit data/.", "Continue."],
    "format-2": ["tally.py imports csv.", "Never edit data/.", "Continue."],
    "0.1.0": ["Print a warning for such a month."],
}


def format_of(file: Path) -> int:
    return json.loads(file.read_text("utf-8").partition("\n")[0]).get("version", 1)


def test_there_is_a_file_of_each_format_and_of_this_version():
    assert {format_of(file) for file in FILES} == set(range(1, FORMAT_VERSION + 1))
    assert __version__ in {file.stem for file in FILES}
    assert {file.stem for file in FILES} == set(SEEN)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_each_opens_and_the_model_sees_what_it_saw(file: Path):
    log = SessionLog.open(file, read_only=True)
    assert log.warnings == ()
    context = build_context(log.path_entries(), carryover=log.header.compaction)
    texts = [item.message.text for item in context.messages]
    at = [next(n for n, text in enumerate(texts) if said in text) for said in SEEN[file.stem]]
    assert at == sorted(at)
    assert context.compaction is not None


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_each_is_listed_continued_and_nothing_of_it_is_lost(file: Path, tmp_path: Path):
    copy = tmp_path / "sessions/p" / file.name
    copy.parent.mkdir(parents=True)
    shutil.copy(file, copy)
    (found,) = SessionStore(tmp_path / "sessions").list()
    with SessionLog.open(copy) as log:
        before = log.entries
        assert found.id == log.header.id
        log.append(entry(user("and now")))
    after = SessionLog.open(copy, read_only=True)
    assert after.header.version == FORMAT_VERSION
    assert after.entries[:-1] == before
    if format_of(file) == FORMAT_VERSION:
        assert copy.read_bytes().startswith(file.read_bytes())
    else:
        (original,) = copy.parent.glob("*.bak")
        assert original.read_bytes() == file.read_bytes()
