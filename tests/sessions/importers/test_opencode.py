import json
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from agent_tui.errors import SessionError
from agent_tui.features.importers import opencode_places
from agent_tui.messages import FileTouches, ImageContent, UserMessage
from agent_tui.sessions.entries import CompactionEntry, CustomEntry
from agent_tui.sessions.importers.discovery import foreign_sessions
from agent_tui.sessions.importers.formats import FORMATS, detect_format, read_foreign
from tests.sessions.importers.entry_checks import (
    assert_sound,
    calls,
    messages,
    notes,
    replies,
    results,
    said,
)
from tests.sessions.importers.recordings import (
    MAIN,
    opencode,
    opencode_2_rows,
    opencode_export,
    opencode_rows,
    opencode_storage,
    write_database,
)


def row_of(rows: list[dict[str, Any]], **wanted: str) -> dict[str, Any]:
    return next(r for r in rows if all(r["data"].get(k) == v for k, v in wanted.items()))


def test_a_database_with_several_sessions_asks_for_one(tmp_path: Path) -> None:
    rows = opencode_rows()
    other = {**rows["session"][0], "id": "ses_0009", "time_updated": 1_900_000_000_000}
    rows["session"].append(other)
    database = write_database(tmp_path / "opencode.db", rows)
    assert detect_format(database) == "opencode"
    with pytest.raises(SessionError, match=r"holds 2 sessions\. Name one of them: .*/ses_0009"):
        read_foreign(database)
    with pytest.raises(SessionError, match="has no session ses_0404"):
        read_foreign(database / "ses_0404")
    with pytest.raises(SessionError):
        read_foreign(database / "..")


def test_a_database_with_one_session_is_that_session(tmp_path: Path) -> None:
    path = opencode(tmp_path)
    assert read_foreign(path.parent) == read_foreign(path)


@pytest.mark.parametrize("name", ["a?b", "a#b", "a%20b", "a b", "ä&mode=rw"])
def test_a_path_is_never_read_as_options(tmp_path: Path, name: str) -> None:
    path = write_database(tmp_path / name / "o.db", opencode_rows()) / MAIN
    assert len(read_foreign(path).entries) == 47
    assert [file.name for file in path.parent.parent.iterdir()] == ["o.db"]


def test_a_session_being_written_is_read_and_nothing_is_put_beside_a_closed_one(
    tmp_path: Path,
) -> None:
    path = opencode(tmp_path)
    beside = sorted(path.parent.parent.iterdir())
    assert len(read_foreign(path).entries) == 47
    assert sorted(path.parent.parent.iterdir()) == beside
    with closing(sqlite3.connect(path.parent)) as running:
        running.execute("PRAGMA journal_mode = WAL")
        data = json.dumps({"role": "user", "time": {"created": 1}})
        running.execute("INSERT INTO message VALUES ('msg_9', ?, 1, 1, ?)", (MAIN, data))
        part = json.dumps({"type": "text", "text": "Just now."})
        running.execute("INSERT INTO part VALUES ('prt_9', 'msg_9', ?, 1, 1, ?)", (MAIN, part))
        running.commit()
        assert "Just now." in said(read_foreign(path))


def test_a_link_to_a_database_has_its_newest_messages(tmp_path: Path) -> None:
    path = opencode(tmp_path)
    link = tmp_path / "link.db"
    link.symlink_to(path.parent)
    with closing(sqlite3.connect(path.parent)) as running:
        running.execute("PRAGMA journal_mode = WAL")
        running.execute("UPDATE session SET title = 'Renamed' WHERE id = ?", (MAIN,))
        running.commit()
        assert read_foreign(link / MAIN) == read_foreign(path)
        assert "Renamed" in [getattr(e, "name", "") for e in read_foreign(link / MAIN).entries]


def test_a_session_of_the_second_version_is_read_whole(tmp_path: Path) -> None:
    path = write_database(tmp_path / "o.db", opencode_2_rows()) / MAIN
    assert detect_format(path) == "opencode"
    session = read_foreign(path.parent)
    assert session == read_foreign(path)
    assert_sound(session)
    assert said(session) == ["Mend a.txt.", "Go on."]
    asked = messages(session)[0]
    assert isinstance(asked, UserMessage)
    assert asked.images == (ImageContent(data="QQ==", mime_type="image/png"),)
    assert notes(session) == ["Plan mode is on.", "The user ran `ls`:\n\na.txt"]
    assert [(r.thinking, r.text, r.stop_reason) for r in replies(session)] == [
        ("Hm.", "", "toolUse"),
        ("", "Mended.", "stop"),
        ("", "", "aborted"),
    ]
    assert (replies(session)[0].provider, replies(session)[0].model) == ("local", "m1")
    assert replies(session)[0].usage.context_tokens == 110
    assert [(r.tool_name, r.text, r.is_error) for r in results(session)] == [
        ("shell", "no\nExited with code 7.", True),
        ("write", "Created.", False),
        ("read", "No file.", True),
    ]
    ran, wrote, _ = (result.tool_details for result in results(session))
    assert ran.exit_code == 7
    assert wrote.files == FileTouches(written=("/home/someone/project/a.txt",))
    (compaction,) = [e for e in session.entries if isinstance(e, CompactionEntry)]
    assert (compaction.summary, compaction.reason) == ("All is well.", "manual")
    assert session.warnings == ()


def test_what_the_second_version_exports_is_the_same_session(tmp_path: Path) -> None:
    rows = opencode_2_rows()
    stored = read_foreign(write_database(tmp_path / "o.db", rows) / MAIN)
    listed = [
        {**row["data"], "id": row["id"], "type": row["type"]} for row in rows["session_message"]
    ]
    info = {"id": MAIN, "location": {"directory": rows["session_v2"][0]["directory"]}}
    exported = tmp_path / "export.json"
    exported.write_text(json.dumps({"info": info, "messages": listed}), "utf-8")
    assert read_foreign(exported) == stored


def test_both_versions_in_one_database_are_listed_each_session_once(tmp_path: Path) -> None:
    earlier, rows = opencode_rows(), opencode_2_rows()
    other = {**earlier["session"][0], "id": "ses_0009", "parent_id": None}
    earlier["session"].append(other)
    rows["session_v2"].append({**rows["session_v2"][0], "id": "ses_0008"})
    unmoved = {**earlier["message"][0], "id": "msg_x", "session_id": "ses_0008"}
    earlier["message"].append({**unmoved, "data": {"role": "user"}})
    part = {"id": "prt_x", "message_id": "msg_x", "session_id": "ses_0008"}
    said_before = {"type": "text", "text": "Before the move."}
    earlier["part"].append({**earlier["part"][0], **part, "data": said_before})
    data = tmp_path / ".local/share/opencode"
    database = write_database(data / "opencode.db", {**earlier, **rows})
    found = {file.path.name: file for file in foreign_sessions(tmp_path, {}, FORMATS)}
    assert sorted(found) == [MAIN, "ses_0008", "ses_0009"]
    assert (found[MAIN].title, str(found[MAIN].cwd)) == ("Mend a.txt.", "/home/someone/project")
    assert said(read_foreign(database / MAIN)) == ["Mend a.txt.", "Go on."]
    assert said(read_foreign(database / "ses_0008")) == ["Before the move."]
    assert found["ses_0008"].title == "Before the move."


def test_an_unknown_message_of_the_second_version_is_kept_and_said(tmp_path: Path) -> None:
    rows = opencode_2_rows()
    rows["session_message"][0]["type"] = "hologram"
    session = read_foreign(write_database(tmp_path / "o.db", rows) / MAIN)
    assert session.warnings == ("message msg_0001: unknown role 'hologram'; kept",)


def test_a_database_of_an_unknown_kind_is_named(tmp_path: Path) -> None:
    rows = opencode_2_rows()
    later = {"session_v3": rows["session_v2"], "session_event": rows["session_message"]}
    database = write_database(tmp_path / ".local/share/opencode/opencode.db", later)
    what = "a database of an unknown kind, with the tables session_event, session_v3"
    (found,) = foreign_sessions(tmp_path, {}, FORMATS)
    assert (found.path, found.title, found.problem) == (database, what, what)
    for written_by in (None, "opencode"):
        with pytest.raises(SessionError, match=what):
            read_foreign(database, written_by)


def test_unknown_parts_and_roles_are_kept_and_said(tmp_path: Path) -> None:
    rows = opencode_rows()
    row_of(rows["part"], type="text")["data"].update(type="hologram", weight=3)
    row_of(rows["message"], role="user")["data"]["role"] = "ghost"
    rows["part"][3]["data"] = "not json"
    path = write_database(tmp_path / "o.db", rows) / MAIN
    session = read_foreign(path)
    kept = [e.data for e in session.entries if isinstance(e, CustomEntry)]
    assert "hologram" in json.dumps(kept)
    assert any("unknown role 'ghost'; kept" in warning for warning in session.warnings)
    assert any("not a JSON object; left out" in warning for warning in session.warnings)


def test_what_a_subagent_changed_is_in_the_result_of_its_call(tmp_path: Path) -> None:
    rows = opencode_rows()
    done = row_of(rows["part"], tool="write")
    helper = next(r for r in rows["session"] if r["parent_id"] == MAIN)["id"]
    message = next(r for r in rows["message"] if r["session_id"] == helper)
    rows["part"].append(
        {**done, "id": "prt_9999", "message_id": message["id"], "session_id": helper}
    )
    path = write_database(tmp_path / "o.db", rows) / MAIN
    (task,) = [r for r in results(read_foreign(path)) if r.tool_name == "task"]
    assert "+++ /home/someone/project/notes.txt" in (task.tool_details.diff or "")


def test_what_a_resumed_subagent_changed_is_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = opencode_rows()
    task, done = row_of(rows["part"], tool="task"), row_of(rows["part"], tool="write")
    helper = next(r for r in rows["session"] if r["parent_id"] == MAIN)["id"]
    message = next(r for r in rows["message"] if r["session_id"] == helper)
    inside = {"message_id": message["id"], "session_id": helper}
    rows["part"].append({**done, "id": "prt_9999", **inside})
    for number in range(5):
        again = {**task, "data": {**task["data"], "callID": f"again{number}"}}
        rows["part"].append({**again, "id": f"{task['id']}_{number}"})
        rows["part"].append({**again, "id": f"prt_9998_{number}", **inside})
    path = write_database(tmp_path / "o.db", rows) / MAIN
    read: list[str] = []
    read_rows = opencode_places._read_rows

    def note_read(database: Any, file: Path, session_id: str, warnings: Any) -> Any:
        read.append(session_id)
        return read_rows(database, file, session_id, warnings)

    monkeypatch.setattr(opencode_places, "_read_rows", note_read)
    told = [r for r in results(read_foreign(path)) if r.tool_name == "task"]
    assert len(told) == 6
    assert [(one.tool_details.diff or "").count("+++ ") for one in told] == [1, 0, 0, 0, 0, 0]
    assert read == [MAIN, helper]


def test_subagents_that_call_each_other_in_a_circle_come_to_an_end(tmp_path: Path) -> None:
    rows = opencode_rows()
    task = row_of(rows["part"], tool="task")
    helper = next(r for r in rows["session"] if r["parent_id"] == MAIN)["id"]
    message = next(r for r in rows["message"] if r["session_id"] == helper)
    again = {**task, "id": "prt_9999", "message_id": message["id"], "session_id": helper}
    rows["part"].append(again)
    path = write_database(tmp_path / "o.db", rows) / MAIN
    assert len(read_foreign(path).entries) == 47


@pytest.mark.parametrize("wanted", ["../../../../etc/passwd", "..", "a/b", "", "x" * 200])
def test_ids_that_are_paths_read_no_other_file(tmp_path: Path, wanted: str) -> None:
    path = opencode_storage(tmp_path)
    info = json.loads(path.read_bytes())
    path.write_text(json.dumps({**info, "id": f"ses_/{wanted}"}))
    with pytest.raises(SessionError, match="no opencode session"):
        read_foreign(path, "opencode")
    path.write_text(json.dumps(info))
    folder = path.parent.parent.parent / "message" / info["id"]
    first = min(folder.iterdir())
    told = json.loads(first.read_bytes())
    first.write_text(json.dumps({**told, "id": wanted}))
    session = read_foreign(path)
    assert f"message {wanted[:40]!r}: not an id; left out" in session.warnings


@pytest.mark.parametrize(
    "kind", ["view", "virtual", "generated", "stored", "text", "pipe", "folder", "loop"]
)
def test_what_only_looks_like_a_database_is_refused(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "opencode.db"
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n"
    if kind == "text":
        path.write_bytes(b"SQLite format 3\0" + b"x" * 5_000)
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "loop":
        path.symlink_to(path)
    elif kind in ("generated", "stored"):
        rows = opencode_rows()
        session = rows.pop("session")
        write_database(path, rows)
        computed = f"x GENERATED ALWAYS AS (1) {'STORED' if kind == 'stored' else 'VIRTUAL'}"
        with closing(sqlite3.connect(path)) as database, database:
            database.execute(f"CREATE TABLE session ({', '.join(session[0])}, {computed})")
    else:
        rows = opencode_rows()
        session = rows.pop("session")
        write_database(path, rows)
        columns = ", ".join(f"1 AS {column}" for column in session[0])
        with closing(sqlite3.connect(path)) as database, database:
            if kind == "view":
                database.execute(f"CREATE VIEW session AS SELECT {columns} FROM ({endless})")
            else:
                database.execute("CREATE VIRTUAL TABLE session USING fts5(id, directory)")
    assert not opencode_places.is_database(path)
    with pytest.raises(SessionError):
        read_foreign(path / MAIN, "opencode")


@pytest.mark.parametrize("computed", ["session_v2", "session_message"])
def test_what_is_computed_is_no_table_of_the_second_version(tmp_path: Path, computed: str) -> None:
    rows = opencode_2_rows()
    columns = ", ".join(f"1 AS {column}" for column in rows.pop(computed)[0])
    path = write_database(tmp_path / "o.db", rows)
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(f"CREATE VIEW {computed} AS SELECT {columns}")
    assert not opencode_places.is_database(path)
    with pytest.raises(SessionError, match="of an unknown kind"):
        read_foreign(path)


def test_a_query_that_takes_too_long_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = opencode_rows()
    rows["part"] = [{**rows["part"][0], "id": f"prt_{n:06}"} for n in range(20_000)]
    path = write_database(tmp_path / "o.db", rows) / MAIN
    monkeypatch.setattr(opencode_places, "_MOST_STEPS", 100_000)
    with pytest.raises(SessionError, match=r"o\.db: interrupted"):
        read_foreign(path)


@pytest.mark.parametrize("lay_out", [opencode, opencode_storage])
def test_a_session_that_is_too_large_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lay_out: Callable[[Path], Path]
) -> None:
    path = lay_out(tmp_path)
    monkeypatch.setattr(opencode_places, "MAX_DOCUMENT_BYTES", 9_000)
    with pytest.raises(SessionError, match=f"{MAIN}.* is larger than 9,000 bytes"):
        read_foreign(path)


def test_values_of_other_types_are_read_as_nothing(tmp_path: Path) -> None:
    rows = opencode_rows()
    for row in rows["session"]:
        row.update(title=7, directory=None, revert="[]", time_created="x")
    path = write_database(tmp_path / "o.db", rows) / MAIN
    session = read_foreign(path)
    assert session.header.cwd == ""
    assert said(session)[0] == '"Please follow plan alpha"'


def test_sessions_are_found_where_the_environment_says(tmp_path: Path) -> None:
    opencode(tmp_path)
    moved = tmp_path / "data"
    (tmp_path / ".local/share").rename(moved)
    assert foreign_sessions(tmp_path, {}, FORMATS) == []
    (found,) = foreign_sessions(tmp_path, {"XDG_DATA_HOME": str(moved)}, FORMATS)
    assert found.path == moved / "opencode/opencode.db" / MAIN
    (moved / "opencode/opencode.db").rename(moved / "mine.sqlite")
    named = {"XDG_DATA_HOME": str(moved), "OPENCODE_DB": str(moved / "mine.sqlite")}
    assert len(foreign_sessions(tmp_path, named, FORMATS)) == 1


def test_sessions_that_opencode_moved_to_its_database_are_listed_once(tmp_path: Path) -> None:
    opencode(tmp_path)
    storage = opencode_storage(tmp_path)
    assert storage.stem == MAIN
    (found,) = foreign_sessions(tmp_path, {}, FORMATS)
    assert found.path.parent.name == "opencode.db"


def test_an_export_is_the_same_session(tmp_path: Path) -> None:
    exported, stored = read_foreign(opencode_export(tmp_path)), read_foreign(opencode(tmp_path))
    assert [reply.text for reply in replies(exported)] == [reply.text for reply in replies(stored)]
    assert calls(exported) == calls(stored)
