"""Session formats of other packages: loaded, refused, and used from the shell."""

import asyncio
import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from agent_tui.agent.session.earlier import open_known
from agent_tui.agent.session.manager import TAKEN_OVER
from agent_tui.cli.plugins import load_plugins
from agent_tui.commands.core.plugin_kinds import IMPORTERS, TOOLS
from agent_tui.errors import SessionError
from agent_tui.events import Notice
from agent_tui.features.session_picker.command import PickableSessions
from agent_tui.sessions.entries import Header, MessageEntry
from agent_tui.sessions.importers.builder import ImportFormat
from agent_tui.sessions.importers.discovery import foreign_sessions
from agent_tui.sessions.importers.formats import FORMATS, read_foreign
from agent_tui.sessions.lineage.chain import PastSessions, SessionChain
from agent_tui.sessions.lineage.known_session import KnownSession
from agent_tui.sessions.store import SessionStore
from tests.support.packages import call_with_packages, make_package, run_with_packages
from tests.support.runtime import Stage
from tests.support.session_values import entry, user

CODE = """
import json
from agent_tui import (
    ForeignSession, ImportFormat, SessionBuilder, SessionFinder, SessionHead, tool,
)
from agent_tui.messages import TextContent

open("{marker}", "w").close()

def read(path):
    builder = SessionBuilder()
    for number, line in enumerate(path.read_text().splitlines(), 1):
        record = json.loads(line)
        if record["diarist"] == "me":
            builder.user([TextContent(text=record["text"])])
        elif record["diarist"] == "it":
            builder.reply([TextContent(text=record["text"])])
        else:
            builder.warn(number, "an unknown diarist")
    return builder.finish(path.stem)

def files(home, environ):
    return (home / ".diary").glob("*.jsonl")

def read_head(head: SessionHead, number, record):
    head.is_session = True
    head.prompt = head.prompt or record["text"]

def has_diarist(number, record):
    return "diarist" in record

DIARY = ImportFormat("diary", read, has_diarist, finder=SessionFinder("Diary", files, read_head))
CODEX = ImportFormat("codex", read, has_diarist)
UNTYPABLE = ImportFormat("my diary", read, has_diarist)

def fail(*_):
    raise KeyError("lighthouse")

def half_look(head, path):
    head.is_session = True
    raise KeyError("lighthouse")

def half_read(head, number, record):
    head.is_session = True
    fail()

NOWHERE = SessionFinder("Nowhere", fail, read_head)
FAULTY = ImportFormat(
    "faulty", fail, fail, fail, SessionFinder("Faulty", files, half_read, half_look), fail
)
NOTHING = ImportFormat("nothing", lambda path: None, lambda *_: False, finder=NOWHERE)

@tool
def weather(place: str) -> str:
    "Say what the weather is."
    return place
"""
NAMES = ("DIARY", "CODEX", "UNTYPABLE", "weather", "FAULTY", "NOTHING", "DIARY")
RECORDS = (
    {"type": "note", "diarist": "me", "text": "Where is the lighthouse?"},
    {"type": "note", "diarist": "it", "text": "On the northern cape."},
    {"type": "note", "diarist": "cat", "text": "!"},
)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of installed packages, one of which is ``diary-plugin``."""
    site = tmp_path / "site"
    code = CODE.replace("{marker}", str(tmp_path / "imported"))
    groups = {
        "agent_tui.importers": {f"n{number}": name for number, name in enumerate(NAMES)},
        "agent_tui.tools": {"weather": "weather"},
    }
    make_package(site, "diary-plugin", code, groups)
    monkeypatch.syspath_prepend(str(site))
    return site


@pytest.fixture
def diary(tmp_path: Path) -> Path:
    """A session that Diary keeps in the home folder ``tmp_path``."""
    file = tmp_path / ".diary" / "monday.jsonl"
    file.parent.mkdir()
    file.write_text("".join(json.dumps(record) + "\n" for record in RECORDS))
    return file


@pytest.mark.usefixtures("site")
def test_a_format_is_loaded_and_others_are_refused_with_their_reason(tmp_path: Path) -> None:
    found = load_plugins(["diary-plugin"], [tmp_path / "work"], (IMPORTERS,))
    known = found.of(IMPORTERS)
    assert known[: len(FORMATS)] == FORMATS
    assert [one.name for one in known[len(FORMATS) :]] == ["diary", "faulty", "nothing"]
    assert [problem.partition("not loaded: ")[2] for problem in found.problems] == [
        "codex exists already.",
        "its name 'my diary' is not a word of letters, digits, - and _.",
        next(p for p in found.problems if "weather" in p).partition("not loaded: ")[2],
        "diary exists already.",
    ]
    assert "weather was not made by agent_tui.ImportFormat" in found.problems[2]
    assert found.of(TOOLS) == ()


def test_a_format_where_commands_may_write_is_not_imported(site: Path, tmp_path: Path) -> None:
    found = load_plugins(["diary-plugin"], [site], (IMPORTERS,))
    assert found.of(IMPORTERS) == FORMATS
    assert "where the model's commands can write" in found.problems[0]
    assert not (tmp_path / "imported").exists()


@pytest.mark.usefixtures("site")
def test_a_faulty_format_hides_no_other_and_says_so_where_it_is_asked(
    tmp_path: Path, diary: Path
) -> None:
    formats = load_plugins(["diary-plugin"], [], (IMPORTERS,)).of(IMPORTERS)
    formats = (*formats[:-3], formats[-2], formats[-1], formats[-3])  # diary comes last
    assert len(read_foreign(diary, formats=formats).entries) == 2
    assert [file.agent for file in foreign_sessions(tmp_path, {}, formats)] == ["diary"]
    with pytest.raises(SessionError, match="the format faulty failed: KeyError: 'lighthouse'"):
        read_foreign(diary, "faulty", formats)
    with pytest.raises(SessionError, match="the format nothing returned no session"):
        read_foreign(diary, "nothing", formats)


@pytest.mark.usefixtures("site")
async def test_a_conversation_resumes_a_file_of_the_format_in_a_copy(
    tmp_path: Path, diary: Path
) -> None:
    stage = Stage(tmp_path)
    formats = load_plugins(["diary-plugin"], [], (IMPORTERS,)).of(IMPORTERS)
    runtime = stage.runtime([], formats=formats)
    events = await runtime.sessions.open(str(diary))
    notices = [event.text for event in events if isinstance(event, Notice)]
    assert TAKEN_OVER.format(count=2) in notices
    assert any("an unknown diarist" in text for text in notices)


@pytest.mark.usefixtures("site")
def test_recall_reads_a_parent_in_the_format_and_a_list_offers_its_sessions(
    tmp_path: Path, diary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    formats = load_plugins(["diary-plugin"], [], (IMPORTERS,)).of(IMPORTERS)
    stage = Stage(tmp_path)
    store = SessionStore(stage.sessions, "none", formats)
    with store.create(Header(id="1111", parent_session=str(diary))) as child:
        child.append(entry(user("And the harbour?")))
        entries = SessionChain(child, PastSessions(store)).entries()
        said = [one.message.text for one in entries if isinstance(one, MessageEntry)]
        assert said == ["And the harbour?", *(record["text"] for record in RECORDS[1::-1])]
        with open_known(known_session_of(diary, formats), store, tmp_path) as opened:
            assert opened.path != diary
    picked = asyncio.run(PickableSessions(stage.runtime([], formats=formats), ("diary",)).listing())
    assert [choice.value.path for choice in picked.choices] == [diary]


def known_session_of(path: Path, formats: Sequence[ImportFormat]) -> KnownSession:
    foreign = read_foreign(path, formats=formats)
    return KnownSession(foreign.header, path, foreign.entries)


def test_the_shell_lists_imports_and_compacts_it(site: Path, tmp_path: Path, diary: Path) -> None:
    def run(*argv: str, plugins: str = '["diary-plugin"]') -> subprocess.CompletedProcess[str]:
        return call_with_packages(site, tmp_path, *argv, plugins=plugins)

    listed = run("sessions", "list", "--all", "--from", "diary", "--json")
    assert [one["title"] for one in json.loads(listed.stdout)] == ["Where is the lighthouse?"]
    assert "codex exists already" in listed.stderr
    done = run("sessions", "import", str(diary), "--json")
    shown = run("sessions", "show", json.loads(done.stdout)["path"], "--json")
    assert "On the northern cape." in shown.stdout
    compacted = run("compact", str(diary), "--model", "none", "--dry-run")
    assert "Nothing to compact" in compacted.stderr
    without = run("sessions", "import", str(diary), "--from", "diary", plugins="[]")
    assert without.returncode == 2
    assert "invalid choice: 'diary'" in without.stderr


@pytest.mark.parametrize("line", ['"type": "note", ', ""])
def test_a_conversation_of_the_program_begins_with_such_a_file(
    site: Path, tmp_path: Path, diary: Path, line: str
) -> None:
    diary.write_text(diary.read_text().replace('"type": "note", ', line))
    argv = ("-p", "/export md lamp.md", "-r", str(diary))
    done = call_with_packages(site, tmp_path, *argv)
    assert TAKEN_OVER.format(count=2) in done.stderr
    assert "On the northern cape." in (tmp_path / "here" / "lamp.md").read_text()


def test_the_shell_imports_nothing_that_lies_in_its_folder(tmp_path: Path, diary: Path) -> None:
    code = CODE.replace("{marker}", str(tmp_path / "imported"))
    site = tmp_path / "here" / "site"
    make_package(site, "diary-plugin", code, {"agent_tui.importers": {"diary": "DIARY"}})
    done = run_with_packages(site, tmp_path, "sessions", "import", str(diary))
    assert done.returncode == 1
    assert "where the model's commands can write" in done.stderr
    assert not (tmp_path / "imported").exists()


def test_tab_offers_it(site: Path, tmp_path: Path) -> None:
    line = "agent-tui sessions list --from d"
    asked = {"_ARGCOMPLETE": "1", "COMP_LINE": line, "COMP_POINT": str(len(line))}
    done = run_with_packages(site, tmp_path, environ=asked)
    assert done.stdout.split() == ["diary"]
    assert done.stderr == ""
