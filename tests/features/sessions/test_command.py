import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from agent_tui.errors import SessionError, UsageError
from agent_tui.features.sessions.command import run_command
from agent_tui.messages import TextContent
from agent_tui.sessions.entries import ContextEditEntry, CustomEntry, Header, SessionInfoEntry
from agent_tui.sessions.log import SessionLog
from agent_tui.sessions.replay.changes import EditReport, report_entry, undo_mark
from agent_tui.sessions.store import SessionStore
from tests.sessions.importers import codex_lines, recordings
from tests.sessions.importers.recordings import write_database
from tests.support.session_values import conversation, entry, reply, user

FOLDER = Path(__file__).parents[3] / "sessions.example"


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SessionStore:
    """A session folder with one session of this folder and one of another."""
    monkeypatch.setenv("AGENT_TUI_SESSION_DIR", str(tmp_path / "sessions"))
    monkeypatch.setenv("AGENT_TUI_CONFIG_DIR", str(tmp_path / "config"))
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    store = SessionStore(tmp_path / "sessions", "none")
    for session_id, cwd, name in (("1111", work, "Here \x1b[31m!"), ("2222", tmp_path, "")):
        with store.create(Header(id=session_id, cwd=str(cwd), provider="p", model_id="m")) as log:
            log.append_many(conversation())
            if name:
                log.append(SessionInfoEntry(name=name))
    return store


def printed(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    assert run_command(argv) == 0
    return capsys.readouterr().out


def test_the_list_is_of_this_folder_unless_all_are_asked_for(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    here = printed(capsys, "list")
    assert printed(capsys) == here
    assert "1111" in here
    assert "Here !" in here
    assert "2222" not in here
    everywhere = printed(capsys, "list", "--all")
    assert "look at both files" in everywhere
    assert str(tmp_path / "work") in everywhere


def test_the_list_as_json_has_all_that_is_known(capsys: pytest.CaptureFixture[str]) -> None:
    (found,) = json.loads(printed(capsys, "list", "--json"))
    assert found["id"] == "1111"
    assert found["cwd"] == str(Path.cwd())
    assert found["firstPrompt"] == "look at both files"
    assert found["messageCount"] == 7
    assert found["model"] == "p/m"
    assert found["contextTokens"] == 0
    assert Path(found["path"]).stat().st_size == found["sizeBytes"]


def test_a_session_stands_below_the_one_it_goes_on_from(
    capsys: pytest.CaptureFixture[str], store: SessionStore
) -> None:
    with store.create(Header(id="3333", cwd=str(Path.cwd()), parent_session="1111")) as log:
        log.append_many(conversation())
    before, below = printed(capsys, "list").splitlines()
    assert before.startswith("1111")
    assert below.startswith("3333")
    assert "└─ look at both files" in below


def test_an_empty_list_says_where_it_looked(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert "--all" in printed(capsys, "list", "--session-dir", str(tmp_path / "none"))
    assert (
        json.loads(printed(capsys, "list", "--json", "--session-dir", str(tmp_path / "none"))) == []
    )


def test_show_prints_header_entries_and_warnings_as_json(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    torn = tmp_path / "torn.jsonl"
    torn.write_bytes((FOLDER / "1-tools.jsonl").read_bytes()[:-10])
    shown = json.loads(printed(capsys, "show", str(torn), "--json"))
    assert shown["header"]["cwd"] == "/home/sam/tally"
    assert len(shown["entries"]) == 14
    assert shown["entries"][0]["message"]["role"] == "user"
    assert shown["entries"][1]["parentId"] == shown["entries"][0]["id"]
    assert "line 16: cut off in the middle" in shown["warnings"][1]


def test_show_prints_one_line_for_each_entry_and_no_control_characters(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = printed(capsys, "show", "1111")
    assert "Here !" in text
    assert "assistant: Reading." in text
    assert "  read: " in text
    assert "\x1b" not in text
    assert "\u2028" not in text


def test_show_says_what_changed_in_the_context(
    capsys: pytest.CaptureFixture[str], store: SessionStore
) -> None:
    report = EditReport(
        batch="b", tokens_before=150_000, tokens_after=62_000, freed={2: 9_000}, messages={2: 40}
    )
    cut = (TextContent(text="short"),)
    with store.create(Header(id="3333", cwd=str(Path.cwd()))) as log:
        log.append_many(conversation())
        target = log.entries[0].id
        edits = [
            ContextEditEntry(target_id=target, replacement=replacement, tier=tier, batch="b")
            for tier, replacement in ((0, None), (1, cut), (2, "one line"))
        ]
        log.append_many([*edits, report_entry(report)])
        log.append_many([undo_mark(("x",)), CustomEntry(custom_type="scope", data={})])
    told = printed(capsys, "show", "3333").splitlines()[-6:]
    for line, words in zip(
        told,
        (
            f"tier 0: {target} as nothing",
            f"tier 1: {target} as short",
            f"tier 2: {target} as one line",
            "150,000 -> 62,000 tokens: - 40 messages: old outputs reduced to one line each",
            "The compaction was undone.",
            "scope",
        ),
        strict=True,
    ):
        assert words in line


def test_show_works_while_the_session_is_open_elsewhere(
    capsys: pytest.CaptureFixture[str], store: SessionStore
) -> None:
    with store.open("1111", Path.cwd()):
        assert "look at both files" in printed(capsys, "show", "1111")


@pytest.mark.parametrize(
    ("kind", "start"), [("md", "# Here !"), ("html", "<!doctype html>"), ("jsonl", '{"type":"se')]
)
def test_export_prints_or_writes_each_format(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, kind: str, start: str
) -> None:
    text = printed(capsys, "export", "1111", "--format", kind)
    assert text.startswith(start)
    output = tmp_path / f"out.{kind}"
    assert str(output) in printed(capsys, "export", "1111", "--output", str(output))
    assert output.read_text(encoding="utf-8") == text
    with pytest.raises(UsageError, match="already exists"):
        run_command(["export", "1111", "--output", str(output)])
    with pytest.raises(UsageError, match="Cannot write"):
        run_command(["export", "1111", "--output", str(tmp_path / "none" / "x.md")])


def test_an_exported_session_opens_again(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, store: SessionStore
) -> None:
    copy = tmp_path / "copy.jsonl"
    printed(capsys, "export", "1111", "-o", str(copy))
    original = store.open("1111", Path.cwd(), read_only=True)
    assert SessionLog.open(copy, read_only=True).entries == original.entries


def test_a_session_that_is_not_there_is_an_error_that_names_it() -> None:
    with pytest.raises(SessionError, match='no session "9999"'):
        run_command(["show", "9999"])


def test_reading_changes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    copy = tmp_path / "copy.jsonl"
    copy.write_bytes((FOLDER / "1-tools.jsonl").read_bytes()[:-10])
    before = sorted(tmp_path.iterdir()), copy.read_bytes()
    printed(capsys, "show", str(copy))
    printed(capsys, "export", str(copy))
    assert (sorted(tmp_path.iterdir()), copy.read_bytes()) == before


ASK = """
import sys
from agent_tui.features.sessions.command import run_command
run_command(["list", "--all"])
run_command(["show", sys.argv[1]])
run_command(["export", sys.argv[1], "--format", "html"])
print(*sys.modules)
"""


def test_neither_screen_nor_provider_libraries_are_loaded() -> None:
    example = str(FOLDER / "1-tools.jsonl")
    done = subprocess.run(
        [sys.executable, "-c", ASK, example], capture_output=True, text=True, check=True
    )
    loaded = {name.partition(".")[0] for name in done.stdout.splitlines()[-1].split()}
    assert "agent_tui" in loaded
    assert loaded.isdisjoint({"textual", "rich", "litellm"})


class Terminal(io.StringIO):
    """Standard input at which a person sits."""

    def isatty(self) -> bool:
        return True


def codex_file(folder: Path) -> Path:
    path = folder / "rollout-1.jsonl"
    return codex_lines.write(
        path,
        *(codex_lines.head(), codex_lines.turn(), codex_lines.said("Fix it.")),
        codex_lines.call("c1", "shell", command=["ls"]),
        codex_lines.output("gone", "x"),
    )


def test_import_tells_where_the_new_session_is(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, store: SessionStore
) -> None:
    told = json.loads(printed(capsys, "import", str(codex_file(tmp_path)), "--json"))
    assert sorted(told) == ["entries", "id", "path", "warnings"]
    assert told["entries"] == 2
    assert told["warnings"] == ["line 5: a result without an open tool call; left out"]
    with store.open(told["id"], Path.cwd(), read_only=True) as log:
        assert str(log.path) == told["path"]
        assert log.header.cwd == codex_lines.CWD
        assert log.header.model_id == "gpt-5-codex"


def test_import_takes_the_first_entries_and_another_folder_of_sessions(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    other = tmp_path / "elsewhere"
    given = ("--until", "1", "--from", "codex", "--session-dir", str(other), "--json")
    told = json.loads(printed(capsys, "import", str(codex_file(tmp_path)), *given))
    assert told["entries"] == 1
    assert Path(told["path"]).is_relative_to(other)


def test_import_tells_a_person_how_to_go_on(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert run_command(["import", str(codex_file(tmp_path))]) == 0
    told = capsys.readouterr()
    assert told.out.startswith("Imported 2 entries as ")
    assert "agent-tui --resume" in told.out
    assert "warning: line 5:" in told.err


def test_import_of_nothing_known_names_the_file(tmp_path: Path) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text("hello")
    with pytest.raises(SessionError, match=r"notes\.txt is not a session"):
        run_command(["import", str(notes)])
    for count in ("0", "-1", "x", "9" * 20):
        with pytest.raises(SystemExit):
            run_command(["import", str(notes), "--until", count])


def test_rename_gives_a_name_that_finds_the_session(
    capsys: pytest.CaptureFixture[str], store: SessionStore
) -> None:
    assert printed(capsys, "rename", "2222", "New \x1b[31mname") == "Renamed to New name\n"
    assert store.open("New name", Path.cwd(), read_only=True).header.id == "2222"
    with pytest.raises(UsageError, match="name is empty"):
        run_command(["rename", "2222", " "])


def test_delete_moves_to_the_trash_and_says_where(
    capsys: pytest.CaptureFixture[str], store: SessionStore
) -> None:
    path = store.find("1111", Path.cwd())
    told = json.loads(printed(capsys, "delete", "1111", "--json"))
    assert (told["id"], told["path"]) == ("1111", str(path))
    assert Path(told["trashedTo"]).is_file()
    assert not path.exists()
    with pytest.raises(SessionError, match="not one of the sessions"):
        run_command(["delete", told["trashedTo"]])


@pytest.mark.parametrize(
    ("answer", "flags", "is_gone"),
    [
        ("\n", [], False),
        ("n\n", [], False),
        ("", [], False),
        ("Y\n", [], True),
        ("", ["--yes"], True),
    ],
)
def test_delete_asks_a_person_first(
    capsys: pytest.CaptureFixture[str],
    store: SessionStore,
    monkeypatch: pytest.MonkeyPatch,
    answer: str,
    flags: list[str],
    is_gone: bool,
) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal(answer))
    path = store.find("1111", Path.cwd())
    assert run_command(["delete", "1111", *flags]) == (0 if is_gone else 1)
    assert path.exists() is not is_gone
    assert ("Delete Here !? [y/N]" in capsys.readouterr().err) is not bool(flags)


def test_what_is_open_elsewhere_is_neither_deleted_nor_renamed(store: SessionStore) -> None:
    with store.open("1111", Path.cwd()) as log:
        for argv in (["delete", "1111"], ["rename", "1111", "x"]):
            with pytest.raises(SessionError, match="is open in another"):
                run_command(argv)
        assert log.path is not None
        assert log.path.is_file()


def test_files_of_others_are_neither_deleted_nor_renamed(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs.jsonl"
    theirs.write_bytes((FOLDER / "1-tools.jsonl").read_bytes())
    for argv in (["delete", str(theirs)], ["rename", str(theirs), "x"]):
        with pytest.raises(SessionError, match="not one of the sessions in"):
            run_command(argv)
    assert theirs.read_bytes() == (FOLDER / "1-tools.jsonl").read_bytes()


def test_a_database_of_an_unknown_kind_is_listed_in_every_folder(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    path = write_database(
        tmp_path / ".local/share/opencode/opencode.db", {"session_v3": [{"id": "ses_1"}]}
    )
    listed = printed(capsys, "list", "--from", "opencode")
    assert "a database of an unknown kind, with the tables sessi" in listed
    assert str(path) in listed


def test_sessions_of_other_agents_are_listed_by_folder(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("CODEX_HOME", raising=False)
    folder = tmp_path / ".codex/sessions/2026/01/27"
    folder.mkdir(parents=True)
    path = codex_file(folder)
    (found,) = json.loads(printed(capsys, "list", "--from", "codex", "--all", "--json"))
    assert sorted(found) == ["agent", "cwd", "modified", "path", "sizeBytes", "title"]
    assert (found["path"], found["title"], found["cwd"]) == (str(path), "Fix it.", "/repo/app")
    assert "Fix it." in printed(capsys, "list", "--from", "codex", "--all")
    assert "No codex sessions in" in printed(capsys, "list", "--from", "codex")


def test_a_search_lists_the_sessions_that_hold_the_words(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = json.loads(printed(capsys, "list", "--search", "zwei", "--json"))
    assert [(hit["id"], hit["matches"]) for hit in found] == [("1111", 1)]
    assert "zwei" in found[0]["snippet"]
    everywhere = printed(capsys, "list", "--search", "zwei", "--all")
    assert "1111" in everywhere
    assert "2222" in everywhere
    assert "No session contains" in printed(capsys, "list", "--search", "nowhere")


def test_show_tells_what_was_typed_and_what_a_reply_says(
    capsys: pytest.CaptureFixture[str], store: SessionStore
) -> None:
    asked = 'See @a.py\n\n<file path="a.py">\nx\n</file>'
    with store.create(Header(id="3333", cwd=str(Path.cwd()))) as log:
        log.append_many([entry(user(asked)), entry(reply("## Found\n\nThe **parser** is slow."))])
    lines = printed(capsys, "show", "3333").splitlines()
    assert lines[-2].endswith("user: See @a.py")
    assert lines[-1].endswith("assistant: Found The parser is slow.")


@pytest.mark.parametrize(("no_color", "start", "end"), [("", "\x1b[1m", "\x1b[0m"), ("1", "", "")])
def test_a_terminal_marks_what_is_searched(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    no_color: str,
    start: str,
    end: str,
) -> None:
    monkeypatch.setenv("NO_COLOR", no_color)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    found = printed(capsys, "list", "--search", "BOTH files")
    assert found.splitlines()[-1] == f"          look at {start}both{end} {start}files{end}"


def test_one_session_of_a_database_is_listed_imported_and_compacted(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    place = str(recordings.opencode(tmp_path))
    (found,) = json.loads(printed(capsys, "list", "--from", "opencode", "--all", "--json"))
    assert (found["path"], found["agent"]) == (place, "opencode")
    imported = json.loads(printed(capsys, "import", place, "--json"))
    assert (imported["entries"], imported["warnings"]) == (47, [])
    with pytest.raises(SessionError, match="has no session ses_0404"):
        run_command(["import", f"{Path(place).parent}/ses_0404"])
    with pytest.raises(SessionError, match=r"opencode\.db/ses_0002/x: could not be read"):
        run_command(["import", f"{place}/x"])
