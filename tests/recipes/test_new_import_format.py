"""New import format: one file in ``features/importers/`` and its name in ``feature.py``."""

import json

import pytest

from tests.recipes.program_copy import ProgramCopy

MODULE = '''\
"""Sessions of Diary (``~/.diary/*.jsonl``): who said what, a line each."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from agent_tui.errors import SessionError
from agent_tui.messages import JsonObject, TextContent
from agent_tui.sessions.importers.builder import ForeignSession, SessionBuilder
from agent_tui.sessions.importers.fields import as_object, text_at
from agent_tui.sessions.importers.builder import ImportFormat, SessionFinder, SessionHead
from agent_tui.features.importers.values import id_from_content
from agent_tui.sessions.importers.fields import json_lines


def read_diary(path: Path) -> ForeignSession:
    """The whole session in `path`.

    Raises:
        SessionError: The file cannot be read, or holds no message.
    """
    builder = SessionBuilder()
    for _, value in json_lines(path, builder.warnings):
        record = as_object(value)
        builder.in_folder(text_at(record, "folder"))
        match text_at(record, "diarist"):
            case "me":
                builder.user([TextContent(text=text_at(record, "text"))])
            case "it":
                builder.reply([TextContent(text=text_at(record, "text"))])
            case _:
                pass
    if not builder.last_id:
        raise SessionError(f"{path}: holds no message of a Diary session.")
    return builder.finish(id_from_content(path))


def _is_diary(_number: int, record: JsonObject) -> bool:
    return "diarist" in record


def _files(home: Path, _environ: Mapping[str, str]) -> Iterator[Path]:
    return (home / ".diary").glob("*.jsonl")


def _read_head(head: SessionHead, _number: int, record: JsonObject) -> None:
    head.is_session = head.is_session or "diarist" in record
    head.cwd = head.cwd or text_at(record, "folder")
    if text_at(record, "diarist") == "me":
        head.prompt = head.prompt or text_at(record, "text")


DIARY: Final = ImportFormat(
    "diary", read_diary, _is_diary, finder=SessionFinder("Dear Diary", _files, _read_head)
)
'''
FEATURE = "agent_tui/features/importers/feature.py"


@pytest.fixture
def copy(tmp_path) -> ProgramCopy:
    made = ProgramCopy(tmp_path, "New import format")
    made.add_file("agent_tui/features/importers/diary.py", MODULE)
    name = '            "agent_tui.features.importers.diary:DIARY",\n'
    made.insert_before(FEATURE, "        )\n    },", name)
    return made


@pytest.fixture
def diary(copy):
    """A session that Diary keeps on this machine."""
    records = (
        {"diarist": "me", "text": "Where is the lighthouse?", "folder": str(copy.work)},
        {"diarist": "it", "text": "On the northern cape."},
    )
    file = copy.home / ".diary" / "monday.jsonl"
    file.parent.mkdir()
    file.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return file


@pytest.mark.thorough
def test_a_shell_lists_what_the_agent_keeps_and_imports_it_by_its_content(copy, diary):
    listed = copy.run("sessions", "list", "--from", "diary", "--json")
    (found,) = json.loads(listed.stdout)
    assert found["title"] == "Where is the lighthouse?"
    done = copy.run("sessions", "import", str(diary), "--json")
    assert done.returncode == 0, done.stderr
    shown = copy.run("sessions", "show", json.loads(done.stdout)["path"], "--json").stdout
    assert "On the northern cape." in shown


@pytest.mark.thorough
def test_a_damaged_file_is_read_by_the_name_of_the_format(copy, diary):
    diary.write_text("{}\n" * 300 + diary.read_text("utf-8"), encoding="utf-8")
    refused = copy.run("sessions", "import", str(diary))
    assert refused.returncode == 1
    assert "opencode, kimi, diary" in refused.stderr
    assert copy.run("sessions", "import", "--from", "diary", str(diary)).returncode == 0


@pytest.mark.thorough
def test_a_file_of_it_can_be_compacted(copy, diary):
    diary.write_text(diary.read_text("utf-8") * 200, encoding="utf-8")
    done = copy.run("compact", str(diary), "--model", "none", "--window", "8000", "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["tokens_after"] < report["tokens_before"]


@pytest.mark.thorough
def test_the_screen_finds_it_and_goes_on_with_it(copy, diary):
    with copy.typing("--demo") as screen:
        screen.wait_for("scripted tour")
        screen.send("/resume --from diary\r")
        screen.wait_for("Where is the lighthouse?")
        screen.wait_for("Dear Diary")
        screen.send("\r")
        screen.wait_for("On the northern cape.")


@pytest.mark.thorough
def test_plain_finds_it_and_goes_on_with_it(copy, diary):
    with copy.typing("--demo", "--plain") as person:
        person.wait_for("] > ")
        person.send("/resume --from diary\r")
        person.wait_for("1. Where is the lighthouse?")
        person.wait_for("for none: ")
        person.send("1\r")
        person.wait_for("On the northern cape.")
