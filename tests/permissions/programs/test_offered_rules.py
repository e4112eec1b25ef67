from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_tui.config import PermissionMode, PermissionSettings
from agent_tui.permissions.engine import PermissionEngine
from agent_tui.permissions.programs.offered_rules import rules_for_part
from agent_tui.permissions.rules import parse_rule
from agent_tui.permissions.shell.parts import split_command
from agent_tui.permissions.verdict import Verdict
from agent_tui.tools.base import Intent
from tests.permissions.programs.parts import part_of
from tests.support.rows import each_row

_WORKSPACE = Path("/ws/project")


def _judged(command: str, *allow: str, mode: PermissionMode = "ask", **rules: str) -> Verdict:
    settings = PermissionSettings(allow=allow, **{kind: (text,) for kind, text in rules.items()})
    engine = PermissionEngine(
        mode=mode,
        rules=settings,
        workspace=_WORKSPACE,
        project_rules_file=Path("/nowhere/permissions.toml"),
        scratch_folders=(Path("/scratch"),),
    )
    assert not engine.book.problems
    return engine.judge("bash", Intent(command, "execute", command=command))


def _offered(command: str) -> list[str]:
    return list(rules_for_part(part_of(command), _WORKSPACE, is_fed=False))


@each_row(
    ("command", "prefix"),
    [
        ("python tally.py a b", "python tally.py"),
        (".venv/bin/python3.12 src/x.py", ".venv/bin/python3.12 src/x.py"),
        ("python -m pytest -q", "python -m pytest"),
        ("bash scripts/build.sh fast", "bash scripts/build.sh"),
        ("pytest -q tests", "pytest"),
        (".venv/bin/pytest -q", ".venv/bin/pytest"),
        ("./run.sh now", "./run.sh"),
        ("git commit -m 'x y'", "git commit"),
        ("npm run build -- --x", "npm run build"),
        ("npm test", "npm test"),
        ("make all", "make all"),
        ("cargo test", "cargo test"),
        ("go run ./cmd/x a", "go run ./cmd/x"),
        ("uv run pytest -q", "uv run pytest"),
        ("uv run python x.py a", "uv run python x.py"),
        ("uv run x.py a", "uv run x.py"),
        ("poetry run python -m mypy .", "poetry run python -m mypy"),
        ("npx tsc --noEmit", "npx tsc"),
        ("timeout 60 pytest -q", "pytest"),
        ("time nice python x.py", "python x.py"),
    ],
)
def test_the_prefix_of_a_part_ends_with_the_word_that_decides(command: str, prefix: str):
    assert _offered(command)[0] == f"bash({prefix} *)"


@each_row(
    "command",
    [
        "python -c 'print(1)'",
        "node -e 1",
        "python -m http.server",
        "uv run python -c 1",
        "uv run sometool x",
        "npx cowsay hi",
        "npx somebody/tool.js x",
        "go run example.com/tool x",
        "docker run image ls",
        "kubectl exec pod -- ls",
        "git push origin main",
        "git evil x",
        "npm install left-pad",
        "npm run sh x",
        "gh api x",
        "make O=../x",
        "rm -rf build",
        "cp a b",
        "bin/console x",
        "A=1 pytest",
        "nice -n 5 ssh host ls",
        "python src/../y.py a",
    ],
)
def test_without_a_sensible_prefix_the_part_itself_is_the_rule(command: str):
    (rule,) = _offered(command)
    assert not rule.endswith(" *)")
    assert _judged(part_of(command).source, rule).decision == "allow"


@each_row(
    "command",
    [
        "python",
        "python -",
        "python -i x.py",
        "python /dev/stdin",
        "python <(echo 1)",
        "uv run python",
        "docker exec -i c sh",
        "bash -s x",
        "bash -lc 'make all'",
        "eval 'make all'",
        "sudo -s",
        "python <<E\nprint(1)\nE",
        "echo 1 | psql -h x db",
        "make $TARGET",
        "rm *",
        "cmd foo:*",
        "python -c 'a\nb'",
        "$CMD x",
    ],
)
def test_what_its_words_do_not_fix_gets_no_rule(command: str):
    assert _judged(f"make all && {command}").part_rules == ()


def test_of_a_compound_command_the_asking_parts_are_offered():
    command = "cd x && python tally.py a | sort && npm run build > out.txt"
    verdict = _judged(command)
    assert verdict.part_rules == (
        "bash(python tally.py *)",
        "bash(npm run build *)",
        "write(out.txt)",
        "write(x/out.txt)",
    )
    assert verdict.session_rule == f"bash(= {command})"
    again = command.replace("tally.py a", "tally.py 'b c' --all")
    assert _judged(again, *verdict.part_rules).decision == "allow"
    assert _judged(again, *verdict.part_rules[1:]).decision == "ask"


@pytest.mark.parametrize(
    "command",
    [
        "pytest -q && eval $X",
        "make all < commands && patch -p1 < x",
        "rm -rf / && make all",
        "ls",
    ],
)
def test_rules_are_offered_for_all_asking_parts_or_none(command: str):
    assert _judged(command).part_rules == ()


def test_no_rules_are_offered_against_an_ask_rule_and_where_nobody_is_asked():
    assert _judged("make all && pytest", ask="bash(make *)").part_rules == ()
    assert _judged("make all && pytest", mode="plan").part_rules == ()
    assert _judged("make all && pytest", "bash(make *)").part_rules == ("bash(pytest *)",)


_WORD = st.text("abx-_./=:'\"*?$;&|> \\~\t", min_size=1, max_size=6)
_PROGRAMS = st.sampled_from(
    """
    python|python x.py|python -c|python -m|python -m pytest|node|node x.js|bash|bash x.sh|sh -c
    perl -e|sudo|env|env A=1|xargs|nice|timeout 5|uv run|uv run python|npx|poetry run bash
    docker exec c|ssh host|make|npm run|npm run build|npm exec|git commit|git push|pytest|./run.sh
    find . -exec|eval|command|nohup python x.py|sed -i|rm|tee|cp|A=1 make|cargo run|go run|psql
    """.strip()
    .replace("\n    ", "|")
    .split("|")
)
_PARTS = st.builds(
    lambda program, words: " ".join((program, *words)), _PROGRAMS, st.lists(_WORD, max_size=3)
)
_JOINED = st.lists(
    st.tuples(_PARTS, st.sampled_from((" && ", " | ", "; ", " || ", " > o; ", "\n"))),
    min_size=1,
    max_size=4,
).map(lambda pairs: "".join(f"{part}{joint}" for part, joint in pairs) + "true")
_RUNNERS = (
    """
    python|python3|node|bash|sh|perl|uv run python|poetry run bash|env python|nohup python
    timeout 5 node|nice bash|xargs python|uv run|npx|npm exec|docker exec c|go run|ssh host
""".strip()
    .replace("\n    ", "|")
    .split("|")
)
_SCRIPTS = ("evil.py", "-c evil", "-m evil", "evil", "- evil", "./evil", "-lc evil")
_OTHERS = (
    *(f"{runner} {script}" for runner in _RUNNERS for script in _SCRIPTS),
    *("sudo evil", "env evil", "xargs evil", "eval evil", "command evil", "psql evil"),
)


def _assert_offer_is_right(command: str) -> None:
    verdict = _judged(command)
    if verdict.part_rules:
        assert verdict.decision == "ask"
        assert _judged(command, *verdict.part_rules).decision == "allow"
        for other in _OTHERS:
            rule = _allowing(verdict.part_rules, other)
            assert not rule, (other, rule)


def _allowing(rules: Sequence[str], command: str) -> list[str]:
    """The rules that cover a part of `command`, whatever else may ask about it."""
    parts = split_command(command).commands
    return [
        text
        for text in rules
        if (rule := parse_rule(text, "allow")).tool == "bash"
        for part in parts
        if rule.matches_part(part) == "yes"
    ]


@settings(max_examples=40, deadline=None)
@given(command=_JOINED)
def test_with_the_offered_rules_the_same_command_runs_and_no_other_script(command: str):
    _assert_offer_is_right(command)


@pytest.mark.thorough
@settings(max_examples=2_000, deadline=None)
@given(command=_JOINED)
def test_so_it_is_of_very_many_commands(command: str):
    _assert_offer_is_right(command)


def test_most_everyday_compound_commands_can_be_allowed_by_rules():
    """The property above would hold of a program that offers nothing."""
    tests = ("pytest -q", "uv run pytest", "python -m pytest", "cargo test", "npm test", "make t")
    for one in tests:
        for other in ("git add -A", "python tally.py a", "npm run build", "./run.sh", "cp a b"):
            command = f"cd x && {one} 2>&1 | tail -5 && {other}"
            rules = _judged(command).part_rules
            assert len(rules) == 2, command
            assert _judged(command, *rules).decision == "allow"


@pytest.mark.parametrize("command", ["uv run " * 500 + "pytest", "npx " * 3000 + "tsc"])
def test_very_many_runners_break_nothing(command: str):
    assert _judged(command).fault is None
