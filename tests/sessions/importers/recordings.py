"""Sessions recorded from Gemini CLI, opencode, Kimi Code and Kimi CLI, laid out as they keep them.

A scripted model answered each program, which ran in a project with one file. Paths, ids and times
are neutral; what a program says to its model (system prompt, descriptions of tools, reminders) and
copies of messages are cut: ``[cut]``. Versions: Gemini CLI 0.61.0 (``.json``: 0.22.4), opencode
1.18.33 (``opencode_storage``: 1.1.65), Kimi Code 2.1.0, Kimi CLI 1.45.0.
"""

import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

RECORDED = Path(__file__).parent / "recorded"
PROJECT = "/home/someone/project"
MAIN = "ses_0002"
"""The session of opencode that is not a subagent's, in the database."""


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def write_lines(path: Path, lines: list[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    return path


def gemini(home: Path, name: str = "gemini") -> Path:
    """A session with a subagent, a cancelled turn, an image, and a turn that was taken back."""
    chats = home / ".gemini/tmp/project/chats"
    lines = lines_of(RECORDED / f"{name}.jsonl")
    path = write_lines(chats / "session-2026-11-27T21-57-00000000.jsonl", lines)
    (chats.parent / ".project_root").write_text(PROJECT)
    calls = [call for line in lines for call in line.get("toolCalls", ())]
    if agents := {call["agentId"] for call in calls if "agentId" in call}:
        folder = chats / lines[0]["sessionId"]
        folder.mkdir()
        shutil.copy(RECORDED / f"{name}_subagent.jsonl", folder / f"{agents.pop()}.jsonl")
    return path


def gemini_compressed(home: Path) -> Path:
    """A session with a summary, below which a turn was kept, and a turn that was taken back."""
    return gemini(home, "gemini_compressed")


def gemini_document(home: Path) -> Path:
    """A session as Gemini CLI wrote it before 0.40: one document, below a hash of the folder."""
    document = RECORDED / "gemini_document.json"
    folder = home / ".gemini/tmp" / json.loads(document.read_bytes())["projectHash"] / "chats"
    folder.mkdir(parents=True)
    return Path(shutil.copy(document, folder / "session-2026-11-27T22-10-00000000.json"))


def opencode_rows() -> dict[str, list[dict[str, Any]]]:
    """The rows of the database, by table; ``data`` is decoded."""
    return json.loads((RECORDED / "opencode_rows.json").read_bytes())


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


def opencode(home: Path) -> Path:
    """A session with a subagent, a patch, an image, failed and cancelled turns, and a summary."""
    return write_database(home / ".local/share/opencode/opencode.db", opencode_rows()) / MAIN


def opencode_storage(home: Path) -> Path:
    """A session of the versions that kept JSON files."""
    storage = home / ".local/share/opencode/storage"
    files = json.loads((RECORDED / "opencode_storage.json").read_bytes())
    for name, content in files.items():
        path = storage / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content, indent=2), encoding="utf-8")
    sessions = (name for name, content in files.items() if "directory" in content)
    return storage / next(name for name in sessions if "parentID" not in files[name])


def opencode_export(home: Path) -> Path:
    """What ``opencode export`` writes of the session in the database."""
    rows = opencode_rows()
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
    path = home / "export.json"
    whole = {"info": {**info, "revert": json.loads(row["revert"])}, "messages": messages}
    path.write_text(json.dumps(whole), encoding="utf-8")
    return path


def kimi_code(home: Path) -> Path:
    """A session with a subagent, a cancelled turn, a summary, and a turn that was taken back."""
    folder = home / ".kimi-code/sessions/wd_project/session_1"
    shutil.copytree(RECORDED / "kimi_code", folder)
    return folder / "agents/main/wire.jsonl"


def kimi_cli(home: Path) -> Path:
    """A session with a subagent, a cancelled turn, and a summary below which a turn was kept."""
    shutil.copytree(RECORDED / "kimi_cli", home / ".kimi")
    return next((home / ".kimi/sessions").glob("*/*/wire.jsonl"))


LAID_OUT: dict[str, Callable[[Path], Path]] = {
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
