from agent_tui.plain.history import add_line, earlier_lines
from agent_tui.ui.prompt.history import PromptHistory
from agent_tui.ui.prompt.pastes import Draft


def test_the_history_is_the_screens(tmp_path):
    path = tmp_path / "project" / "history.jsonl"
    screen = PromptHistory(path)
    for draft in (Draft("one"), Draft("two"), Draft("[paste #1 ]", {1: "x"}), Draft("a\nb")):
        screen.add(draft)
    add_line(path, "one")
    assert earlier_lines(path) == ["two", "one"]
    reader = PromptHistory(path)
    reader.load()
    assert reader.drafts[-1] == Draft("one")
    assert path.stat().st_mode & 0o777 == 0o600


def test_lines_that_cannot_be_read_are_passed_over(tmp_path):
    path = tmp_path / "history.jsonl"
    path.write_bytes(b'{"text": "good"}\n{"text": 1}\n[]\n\xff\n' + b"[" * 100_000)
    assert earlier_lines(path) == ["good"]
    assert earlier_lines(tmp_path / "none") == []
