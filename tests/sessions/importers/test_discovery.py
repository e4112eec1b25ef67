import os
from pathlib import Path

import pytest

from agent_tui.features.importers.claude_code import CLAUDE_CODE
from agent_tui.sessions.importers.discovery import ForeignFile, foreign_sessions
from agent_tui.sessions.importers.formats import FORMATS
from tests.sessions.importers import claude_lines, codex_lines
from tests.support.session_values import conversation, header, session_bytes


def put(path: Path, when: int = 1_000) -> Path:
    """Give an existing file a time, in seconds since 1970."""
    os.utime(path, (when, when))
    return path


def made(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def write_pi(home: Path, when: int = 1_000) -> Path:
    path = made(home / ".pi/agent/sessions/--w--/2026_a.jsonl")
    path.write_bytes(session_bytes(conversation()))
    return put(path, when)


def write_claude(home: Path, name: str = "a.jsonl", when: int = 1_000) -> Path:
    path = made(home / ".claude/projects/-w" / name)
    claude_lines.write(
        path,
        {"type": "file-history-snapshot", "snapshot": {}},
        claude_lines.said("u0", None, "<bash-stdout>x</bash-stdout>", cwd="/w"),
        claude_lines.said("u1", "u0", "Mend it.", cwd="/w"),
    )
    return put(path, when)


def write_codex(home: Path, when: int = 1_000) -> Path:
    path = made(home / ".codex/sessions/2026/01/27/rollout-2026-a.jsonl")
    codex_lines.write(
        path,
        codex_lines.head(base_instructions={"text": "x" * 50_000}),
        codex_lines.said("rules", "developer"),
        codex_lines.said("<environment_context>\n</environment_context>"),
        codex_lines.said("Build it."),
    )
    return put(path, when)


def told(files: list[ForeignFile]) -> list[tuple[str, str, str]]:
    return [(file.agent, str(file.cwd), file.title) for file in files]


def test_the_sessions_of_every_agent_are_found_newest_first(tmp_path: Path) -> None:
    write_pi(tmp_path, 3_000)
    write_claude(tmp_path, when=1_000)
    codex = write_codex(tmp_path, 2_000)
    found = foreign_sessions(tmp_path, {}, FORMATS)
    assert told(found) == [
        ("pi", "/w", "look at both files"),
        ("codex", "/repo/app", "Build it."),
        ("claude", "/w", "Mend it."),
    ]
    assert (found[1].path, found[1].size_bytes) == (codex, codex.stat().st_size)
    assert found[1].modified.timestamp() == 2_000
    assert told(foreign_sessions(tmp_path, {}, (CLAUDE_CODE,))) == [("claude", "/w", "Mend it.")]


def test_each_agents_variable_leads_to_another_folder(tmp_path: Path) -> None:
    write_pi(tmp_path / "p")
    write_claude(tmp_path / "c")
    write_codex(tmp_path / "x")
    environ = {
        "PI_CODING_AGENT_DIR": str(tmp_path / "p/.pi/agent"),
        "CLAUDE_CONFIG_DIR": "~/c/.claude",
        "CODEX_HOME": str(tmp_path / "x/.codex"),
    }
    assert {file.agent for file in foreign_sessions(tmp_path, environ, FORMATS)} == {
        "pi",
        "claude",
        "codex",
    }
    assert foreign_sessions(tmp_path, {}, FORMATS) == []


def test_a_session_of_claude_code_is_called_by_its_title(tmp_path: Path) -> None:
    path = write_claude(tmp_path)
    titles = '{"type": "ai-title", "aiTitle": "A"}\n{"type": "custom-title", "customTitle": "B"}\n'
    path.write_text(titles + path.read_text())
    assert told(foreign_sessions(tmp_path, {}, FORMATS)) == [("claude", "/w", "B")]


def test_files_of_subagents_are_no_sessions(tmp_path: Path) -> None:
    write_claude(tmp_path, "agent-1a2b.jsonl")
    side = claude_lines.said("u1", None, "Search.", isSidechain=True)
    claude_lines.write(made(tmp_path / ".claude/projects/-w/b.jsonl"), side)
    assert foreign_sessions(tmp_path, {}, FORMATS) == []


@pytest.mark.parametrize(
    "damage", [b"", b"\0" * 5_000, b"{torn", b"[" * 200_000, b"x" * 600_000, b'{"type":7}\n"x"\n']
)
def test_a_bad_file_hides_no_other(tmp_path: Path, damage: bytes) -> None:
    for path in (write_pi(tmp_path), write_claude(tmp_path), write_codex(tmp_path)):
        path.with_name(path.name.replace("a.jsonl", "b.jsonl")).write_bytes(damage)
    (tmp_path / ".claude/projects/-w/folder.jsonl").mkdir()
    (tmp_path / ".claude/projects/-w/gone.jsonl").symlink_to(tmp_path / "nowhere")
    assert len(foreign_sessions(tmp_path, {}, FORMATS)) == 3


def test_broken_lines_are_passed_over(tmp_path: Path) -> None:
    path = write_pi(tmp_path)
    first, second = path.read_bytes().split(b"\n", 1)
    path.write_bytes(first + b"\n{broken\n\xff\xfe\n" + second)
    assert told(foreign_sessions(tmp_path, {}, FORMATS)) == [("pi", "/w", "look at both files")]


def test_only_the_beginning_of_a_file_is_looked_at(tmp_path: Path) -> None:
    path = made(tmp_path / ".pi/agent/sessions/--w--/a.jsonl")
    long = header(note="x" * 300_000)
    path.write_bytes(session_bytes((), header()) + session_bytes(conversation(), long))
    assert told(foreign_sessions(tmp_path, {}, FORMATS)) == [("pi", "/w", "")]


def test_looking_writes_nothing(tmp_path: Path) -> None:
    write_pi(tmp_path)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    foreign_sessions(tmp_path, {}, FORMATS)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before
