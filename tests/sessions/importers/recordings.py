"""Sessions recorded from Gemini CLI, opencode, Kimi Code and Kimi CLI, laid out as they keep them.

A scripted model answered each program, which ran in a project with one file. Paths, ids and times
are neutral; what a program says to its model (system prompt, descriptions of tools, reminders) and
copies of messages are cut: ``[cut]``. Versions: Gemini CLI 0.61.0 (``.json``: 0.22.4), opencode
1.18.33 (``opencode_storage``: 1.1.65), Kimi Code 2.1.0, Kimi CLI 1.45.0.
"""

import hashlib
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

RECORDED = Path(__file__).parent / "recorded"
PROJECT = "/home/someone/project"
MAIN = "ses_0002"
"""The session of opencode that is not a subagent's, in the database."""


def _text(name: str, project: str) -> str:
    """A recorded file, with the folder of the project renamed."""
    return (RECORDED / name).read_text("utf-8").replace(PROJECT, project)


def _copy(name: str, folder: Path, project: str) -> None:
    """Copy all files of a recorded folder."""
    for file in (RECORDED / name).rglob("*"):
        if file.is_file():
            put(folder / file.relative_to(RECORDED / name), _text(str(file), project))


def put(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def write_lines(path: Path, lines: list[dict[str, Any]]) -> Path:
    return put(path, "".join(f"{json.dumps(line)}\n" for line in lines))


def gemini(home: Path, project: str = PROJECT, name: str = "gemini") -> Path:
    """A session with a subagent, a cancelled turn, an image, and a turn that was taken back."""
    chats = home / ".gemini/tmp/project/chats"
    text = _text(f"{name}.jsonl", project)
    path = put(chats / "session-2026-11-27T21-57-00000000.jsonl", text)
    put(chats.parent / ".project_root", project)
    lines = lines_of(path)
    calls = [call for line in lines for call in line.get("toolCalls", ())]
    if agents := {call["agentId"] for call in calls if "agentId" in call}:
        folder = chats / lines[0]["sessionId"]
        put(folder / f"{agents.pop()}.jsonl", _text(f"{name}_subagent.jsonl", project))
    return path


def gemini_compressed(home: Path, project: str = PROJECT) -> Path:
    """A session with a summary, below which a turn was kept, and a turn that was taken back."""
    return gemini(home, project, "gemini_compressed")


def gemini_document(home: Path, project: str = PROJECT) -> Path:
    """A session as earlier versions wrote it: one document, below a hash of the folder."""
    digest = hashlib.sha256(project.encode()).hexdigest()
    document = json.loads(_text("gemini_document.json", project))
    text = json.dumps({**document, "projectHash": digest}, indent=2)
    return put(home / ".gemini/tmp" / digest / "chats/session-2026-11-27T22-10-0.json", text)


def opencode_rows(project: str = PROJECT) -> dict[str, list[dict[str, Any]]]:
    """The rows of the database, by table; ``data`` is decoded."""
    return json.loads(_text("opencode_rows.json", project))


def write_database(path: Path, tables: dict[str, list[dict[str, Any]]]) -> Path:
    """A database with `tables`; its columns are those of the first row of each."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path)) as database, database:
        for table, rows in tables.items():
            columns = list(rows[0])
            database.execute(f"CREATE TABLE {table} ({', '.join(columns)})")
            values = [
                [json.dumps(v) if isinstance(v, dict) else v for v in row.values()] for row in rows
            ]
            marks = ", ".join("?" * len(columns))
            database.executemany(f"INSERT INTO {table} VALUES ({marks})", values)
    return path


def opencode(home: Path, project: str = PROJECT) -> Path:
    """A session with a subagent, a patch, an image, failed and cancelled turns, and a summary."""
    return write_database(home / ".local/share/opencode/opencode.db", opencode_rows(project)) / MAIN


def opencode_2_rows(project: str = PROJECT) -> dict[str, list[dict[str, Any]]]:
    """The rows of a database of 2.x, by table, in the form of version 2.0.25."""
    when = 1_791_319_625_000
    model = {"id": "m1", "providerID": "local"}

    def message(seq: int, kind: str, **data: Any) -> dict[str, Any]:
        times = {"time_created": when + seq, "time_updated": when + seq}
        told = {"time": {"created": when + seq}, **data}
        row = {"id": f"msg_{seq:04}", "session_id": MAIN, "type": kind, "seq": seq}
        return {**row, **times, "data": told}

    def reply(seq: int, *content: dict[str, Any], **data: Any) -> dict[str, Any]:
        tokens = {"input": 90, "output": 7, "reasoning": 3, "cache": {"read": 10, "write": 0}}
        facts = {"agent": "build", "model": model, "tokens": tokens}
        return message(seq, "assistant", content=list(content), **facts, **data)

    def tool(name: str, given: dict[str, Any], status: str, **state: Any) -> dict[str, Any]:
        whole = {"status": status, "input": given, **state}
        times = {"created": when, "completed": when + 900}
        return {"type": "tool", "id": f"call_{name}", "name": name, "state": whole, "time": times}

    ran = tool(
        "shell",
        {"command": "exit 7"},
        "completed",
        content=[{"type": "text", "text": "no"}, {"type": "text", "text": "Exited with code 7."}],
        metadata={"exit": 7},
    )
    wrote = tool(
        "write",
        {"path": f"{project}/a.txt", "content": "hi"},
        "completed",
        content=[{"type": "text", "text": "Created."}],
    )
    failed = tool(
        "read", {"path": f"{project}/b.txt"}, "error", error={"type": "x", "message": "No file."}
    )
    image = {"uri": "data:image/png;base64,QQ==", "mime": "image/png", "name": "a.png"}
    return {
        "session_v2": [
            {
                "id": MAIN,
                "parent_id": None,
                "directory": project,
                "title": None,
                "revert": None,
                "time_created": when,
                "time_updated": when + 5_000,
            }
        ],
        "session_message": [
            message(1, "system", text="Today is Monday."),
            message(2, "user", text="Mend a.txt.", files=[image]),
            reply(3, {"type": "reasoning", "text": "Hm."}, ran, wrote, failed, finish="tool-calls"),
            message(4, "synthetic", text="Plan mode is on."),
            reply(5, {"type": "text", "text": "Mended."}, finish="stop"),
            message(6, "idle", outcome="succeeded"),
            message(7, "shell", command="ls", output={"output": "a.txt"}),
            message(8, "compaction", status="completed", reason="manual", summary="All is well."),
            message(9, "user", text="Go on."),
            reply(10, error={"type": "aborted", "message": "stopped"}),
        ],
    }


def opencode_storage(home: Path, project: str = PROJECT) -> Path:
    """A session of the versions that kept JSON files."""
    storage = home / ".local/share/opencode/storage"
    files = json.loads(_text("opencode_storage.json", project))
    for name, content in files.items():
        put(storage / name, json.dumps(content, indent=2))
    sessions = (name for name, content in files.items() if "directory" in content)
    return storage / next(name for name in sessions if "parentID" not in files[name])


def opencode_export(home: Path, project: str = PROJECT) -> Path:
    """What ``opencode export`` writes of the session in the database."""
    rows = opencode_rows(project)
    messages = [
        {
            "info": {**message["data"], "id": message["id"]},
            "parts": [p["data"] for p in rows["part"] if p["message_id"] == message["id"]],
        }
        for message in rows["message"]
        if message["session_id"] == MAIN
    ]
    (row,) = [row for row in rows["session"] if row["id"] == MAIN]
    info = {"id": MAIN, "directory": row["directory"], "title": row["title"]}
    whole = {"info": {**info, "revert": json.loads(row["revert"])}, "messages": messages}
    return put(home / "export.json", json.dumps(whole))


def kimi_code(home: Path, project: str = PROJECT) -> Path:
    """A session with a subagent, a cancelled turn, a summary, and a turn that was taken back."""
    folder = home / ".kimi-code/sessions/wd_project/session_1"
    _copy("kimi_code", folder, project)
    return folder / "agents/main/wire.jsonl"


def kimi_cli(home: Path, project: str = PROJECT) -> Path:
    """A session with a subagent, a cancelled turn, and a summary below which a turn was kept."""
    digest = hashlib.md5(project.encode(), usedforsecurity=False).hexdigest()
    folder = home / ".kimi/sessions" / digest / "00000000-0000-4000-8000-000000000001"
    _copy("kimi_cli", folder, project)
    put(home / ".kimi/kimi.json", json.dumps({"work_dirs": [{"path": project, "kaos": "local"}]}))
    return folder / "wire.jsonl"


LAID_OUT: dict[str, Callable[..., Path]] = {
    laid_out.__name__: laid_out
    for laid_out in (
        gemini,
        gemini_compressed,
        gemini_document,
        opencode,
        opencode_storage,
        opencode_export,
        kimi_code,
        kimi_cli,
    )
}
"""Each lays out a session below a home folder; returns its path."""

FORMAT_OF = {name: name.partition("_")[0] for name in LAID_OUT}
