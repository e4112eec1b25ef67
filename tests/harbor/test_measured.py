from pathlib import Path

from agent_tui.harbor.measured import measure_newest
from agent_tui.messages import Cost, Usage
from agent_tui.sessions.entries import CompactionDetails, CompactionEntry
from agent_tui.sessions.log import SessionLog
from agent_tui.sessions.replay.changes import EditReport, report_entry
from tests.support.session_values import entry, header, reply, user

USAGE = Usage(input=100, output=7, cache_read=30, cache_write=20, cost=Cost(total=0.25))


def write(path: Path, *entries) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    SessionLog.write(path, header(), entries).close()


def test_a_run_is_measured_by_its_session(tmp_path: Path) -> None:
    spent = entry(reply("one").model_copy(update={"usage": USAGE}))
    report = EditReport(batch="b", tokens_before=9, tokens_after=5, freed={}, messages={})
    details = CompactionDetails(batch="c")
    summary = CompactionEntry(summary="s", first_kept_entry_id="1", usage=USAGE, details=details)
    own = (entry(user("key hunter22")), spent, report_entry(report), spent, summary)
    write(tmp_path / "-w" / "2026-03-02_a.jsonl", *own)
    write(tmp_path / "-w" / "2026-03-01_older.jsonl", entry(user("older")))
    write(tmp_path / "-w" / "explored" / "x" / "2026-03-03_h.jsonl", entry(user("a helper")))
    measured = measure_newest(tmp_path, ["hunter22"])
    assert measured is not None
    assert (measured.input_tokens, measured.cached_tokens) == (450, 90)
    assert (measured.output_tokens, measured.cost_usd) == (21, 0.75)
    assert (measured.replies, measured.compactions) == (2, 2)
    assert measured.trajectory["steps"][0]["message"] == "key [key removed]"


def test_where_nothing_was_written_nothing_is_measured(tmp_path: Path) -> None:
    assert measure_newest(tmp_path) is None
