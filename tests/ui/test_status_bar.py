import time
from dataclasses import replace
from pathlib import Path

import pytest

from agent_tui.commands.core.short_words import short_count, short_path
from agent_tui.providers.rate_limits import RateLimit
from agent_tui.tokens import ContextUsage
from agent_tui.ui.status.status_bar import starting_line
from agent_tui.ui.status.status_line import StatusFields, git_branch, plan_text, status_line
from tests.support.rows import each_row

FIELDS = StatusFields(
    folder="~/proj",
    branch="main",
    model="anthropic/claude-sonnet",
    mode="ask",
    input_tokens=12_300,
    output_tokens=4_100,
    cost_usd=0.18,
    name="session name",
    usage=ContextUsage(144_000, 200_000, is_estimate=False),
    level="warn",
)


def test_the_whole_bar():
    line = status_line(FIELDS, 100).plain
    assert line.startswith(
        "~/proj (main) · claude-sonnet · ask · ↑12.3k ↓4.1k $0.18 · session name  "
    )
    assert line.endswith("[ctx: 72%]")


@pytest.mark.parametrize("width", [20, 40, 60, 80, 200])
def test_the_context_is_whole_at_every_width_and_the_bar_fits_exactly(width: int):
    line = status_line(FIELDS, width)
    assert line.plain.endswith("[ctx: 72%]")
    assert line.cell_length == width


def test_the_name_gives_way_first_then_the_totals():
    assert "session name" not in status_line(FIELDS, 70).plain
    assert "↑12.3k" in status_line(FIELDS, 70).plain
    assert "↑12.3k" not in status_line(FIELDS, 50).plain
    assert status_line(FIELDS, 40).plain == "~/proj · claude-sonnet · ask  [ctx: 72%]"


@pytest.mark.parametrize(
    ("level", "style"), [("normal", "$foreground-muted"), ("warn", "warning"), ("trigger", "error")]
)
def test_the_context_is_coloured_by_level(level, style: str):
    spans = status_line(replace(FIELDS, level=level), 80).spans
    assert style in str(spans[-1].style)


def test_background_jobs_are_counted_while_there_is_room():
    one, two = replace(FIELDS, jobs=1), replace(FIELDS, jobs=2)
    assert " · ask · 1 job · " in status_line(one, 100).plain
    assert " · ask · 2 jobs · " in status_line(two, 100).plain
    assert status_line(two, 40).plain == "claude-sonnet · ask · 2 jobs  [ctx: 72%]"
    assert "job" not in status_line(two, 30).plain


def test_a_wide_folder_name_does_not_push_the_context_out():
    line = status_line(replace(FIELDS, folder="~/" + "工" * 60), 60)
    assert line.plain.endswith("[ctx: 72%]")
    assert line.cell_length == 60


def test_a_session_name_cannot_steer_the_terminal():
    line = status_line(replace(FIELDS, name="x\x1b]0;owned\x07\n[red]y"), 200).plain
    assert "\x1b" not in line
    assert "\n" not in line
    assert "[red]y" in line


def test_nothing_spent_is_not_shown():
    assert "↑" not in status_line(replace(FIELDS, input_tokens=0, output_tokens=0), 120).plain
    assert "$" not in status_line(replace(FIELDS, cost_usd=0.0), 120).plain


@each_row(
    ("count", "text"),
    [
        (0, "0"),
        (950, "950"),
        (12_345, "12.3k"),
        (99_999, "100k"),
        (200_000, "200k"),
        (999_999, "1.0M"),
        (1_048_576, "1.0M"),
    ],
)
def test_counts_stay_short(count: int, text: str):
    assert short_count(count) == text


def test_the_branch_is_read_without_git(tmp_path: Path):
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_text("ref: refs/heads/fix/bar\n", encoding="utf-8")
    inside = tmp_path / "src"
    inside.mkdir()
    assert git_branch(inside) == "fix/bar"
    (tmp_path / ".git" / "HEAD").write_text("0123456789abcdef\n", encoding="utf-8")
    assert git_branch(inside) == "01234567"


def test_a_worktree_names_its_folder_in_a_file(tmp_path: Path):
    real = tmp_path / "real"
    real.mkdir()
    (real / "HEAD").write_text("ref: refs/heads/topic\n", encoding="utf-8")
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / ".git").write_text(f"gitdir: {real}\n", encoding="utf-8")
    assert git_branch(tree) == "topic"


def test_home_is_shortened():
    home = Path("/home/me")
    assert short_path(home / "proj", home) == "~/proj"
    assert short_path(home, home) == "~"
    assert short_path(Path("/srv/x"), home) == "/srv/x"


def test_while_it_starts_the_bar_says_where_and_keeps_its_width():
    for width in (20, 30, 60):
        line = starting_line("~/a/folder/with/a/name", width).plain
        assert len(line) == width
        assert line.endswith(" [ctx: …]")
    assert starting_line("~/a", 60).plain.startswith("~/a · starting…  ")


NOON_S = time.mktime((2026, 3, 1, 12, 0, 0, 0, 0, -1))


@each_row(
    ("left", "text", "level"),
    [
        (0.38, "5h: 38% left until 14:20", "normal"),
        (0.2, "5h: 20% left until 14:20", "warn"),
        (0.0, "5h: 0% left until 14:20", "trigger"),
    ],
)
def test_what_is_left_of_a_plan_and_until_when(left: float, text: str, level: str):
    limit = RateLimit("5h", left, NOON_S + 8_400, 18_000)
    assert plan_text(limit, NOON_S) == (text, level)
    line = status_line(replace(FIELDS, plan=text, name=""), 110).plain
    assert f"$0.18 · {text}  " in line


def test_without_a_plan_the_bar_says_nothing_about_it():
    assert plan_text(None, NOON_S) == ("", "normal")
    assert plan_text(RateLimit("5h", 0.5), NOON_S) == ("5h: 50% left", "normal")
