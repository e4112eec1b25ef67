"""What a command runs on what, and which commands only show something."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_tui.compaction.sections.commands import (
    PassedRuns,
    Runs,
    is_looking_around,
    runs_of,
    without_folder,
)
from tests.support.rows import each_row


@each_row(
    ("command", "words", "targets"),
    [
        ("pytest", "pytest", set()),
        ("pytest -q tests/a.py", "pytest", {"tests/a.py"}),
        ("set -e; source .venv/bin/activate; cd sub && pytest", "pytest", set()),
        ("FOO=1 timeout 60 python3 -m pytest a.py", "timeout pytest", {"a.py"}),
        ("sudo /usr/bin/make -j 4 install 2>&1 | tail -5", "make install", set()),
        ("npx tsc --noEmit", "npx tsc", set()),
        ("git commit -m 'x'", "git commit", set()),
        ("git commit -m 'x and y'", "git commit", {"-"}),
        ("python - <<'EOF'\nimport a.b\nEOF", "python", {"-"}),
        ("python <<'EOF'\nimport a.b\nEOF", "python", {"-"}),
    ],
)
def test_a_run_is_told_by_its_words_and_targets(
    command: str, words: str, targets: set[str]
) -> None:
    runs = runs_of(command)
    assert (runs[0].words, runs[0].targets) == (tuple(words.split()), targets)
    assert runs_of("") == ()


@each_row(
    ("succeeds", "failed"),
    [
        ("pytest a.py", "pytest a.py"),
        ("pytest", "pytest a.py"),
        ("pytest", "pytest -k name"),
        ("pytest a.py b.py", "pytest a.py"),
        ("timeout 60 uv run pytest a.py -x | tail -3", "cd /project && python -m pytest a.py"),
        ("go test ./...", "go test ./pkg"),
        ("npm run build", "npm run build"),
        ("python a.py", "python a.py"),
        ("python3 a.py", "python a.py"),
        ("npm run test", "npm test"),
        ("python3 -m pytest", "uv run pytest"),
        ("git commit -m 'another text'", "git commit -m 'some text'"),
        ("mix test test/a_test.exs", "mix test test/a_test.exs"),
        ("mix test", "mix test test/a_test.exs"),
        ("git add b.py && git commit -m 'x'", "git add a.py && git commit -m 'x'"),
        ("git add -f ./b.css && git add ./a.py ./c.py", "git add ./a.py ./b.css"),
        ("python -m pytest -q tests", "python -m pytest -q tests/a.py | tail -12"),
        ("pytest -x tests -k one", "pytest tests/a.py -k one"),
    ],
)
def test_a_run_covers_the_same_and_what_it_includes(succeeds: str, failed: str) -> None:
    assert covers_all(runs_of(succeeds), runs_of(failed))


@each_row(
    ("succeeds", "failed"),
    [
        ("pytest a.py", "pytest"),
        ("pytest a.py", "pytest b.py"),
        ("pytest a.py", "pytest a.py b.py"),
        ("pytest a.py && ruff check b.py", "pytest a.py b.py"),
        ("pytest -k one", "pytest -k two"),
        ("pytest -q docs", "pytest -q tests/a.py"),
        ("pytest -q tests -k one", "pytest tests/a.py"),
        ("ruff check a.py", "pytest a.py"),
        ("npm run build", "npm test"),
        ("make lint", "make test"),
        ("make", "make test"),
        ("python - <<'EOF'\nprint(1)\nEOF", "python a.py"),
        ("python a.py", "python b.py"),
    ],
)
def test_a_narrower_or_another_run_covers_nothing(succeeds: str, failed: str) -> None:
    assert not covers_all(runs_of(succeeds), runs_of(failed))


def test_what_several_commands_ran_covers_what_one_would_run() -> None:
    passed = PassedRuns()
    for command in ("pytest a.py", "ruff check b"):
        passed.add(runs_of(command))
    assert passed.cover(runs_of("pytest a.py && ruff check b/c.py"))
    passed.add(runs_of("pytest b.py"))
    assert passed.cover(runs_of("pytest a.py b.py"))
    assert not passed.cover(runs_of("pytest a.py && ruff check c.py"))


def covers_all(done: Runs, failed: Runs) -> bool:
    passed = PassedRuns()
    passed.add(done)
    return passed.cover(failed)


WORDS = st.lists(
    st.sampled_from(
        [
            "a",
            "b",
            "a/b",
            "a/b.py",
            "a/b.py::c",
            "./a/b",
            "./...",
            "a/...",
            "a/",
            "/",
            "::a",
            "-k",
            "-q",
            "one",
            "two",
            "run",
            "test",
        ]
    ),
    max_size=3,
)
RUNS = st.tuples(st.sampled_from(["pytest", "npm", "go"]), WORDS).map(
    lambda one: runs_of(" ".join((one[0], *one[1])))
)


@given(st.lists(RUNS, max_size=4), RUNS)
def test_looking_up_finds_what_comparing_with_each_would(done: list[Runs], failed: Runs) -> None:
    passed = PassedRuns()
    for runs in done:
        passed.add(runs)
    (many,) = failed
    parts = [replace(many, targets=frozenset([target])) for target in many.targets] or [many]
    runs = [run for runs in done for run in runs]
    assert passed.cover(failed) == all(any(run.covers(one) for run in runs) for one in parts)


@each_row(
    "command",
    [
        "ls -la src",
        "cat a.py | head -20",
        "cd sub && grep -rn 'name' . | sort | uniq -c",
        "sed -n '1,20p' a.py",
        "git status && git diff HEAD~1",
        "git -C sub log --oneline",
        "find . -name '*.py' 2>/dev/null",
        "gh issue view 12",
        "ruff --version",
        "echo done > /dev/null",
        "grep -n 'p->next' a.c",
        "grep -rn 'def f() -> str' src",
        "find . -name '*.py' | xargs grep -n name",
    ],
)
def test_what_only_shows_something_is_looking_around(command: str) -> None:
    assert is_looking_around(command)


@each_row(
    "command",
    [
        "pytest -q",
        "sed -i 's/a/b/' a.py",
        "git commit -m x",
        "git checkout main",
        "cat > a.py <<'EOF'\nx\nEOF",
        "echo x >> notes.txt",
        "ls && make",
        "cat a.py | python",
        "python - <<'EOF'\nprint(1)\nEOF",
        "rm -rf build",
        "rm -rf list",
        "grep -rl old . | xargs sed -i s/old/new/",
        "find . -name '*.pyc' -delete",
        "find . -name '*.pyc' -exec rm {} +",
    ],
)
def test_what_changes_or_checks_something_is_not(command: str) -> None:
    assert not is_looking_around(command)


def test_a_command_is_told_on_one_line_without_the_folder_it_begins_in() -> None:
    assert without_folder("cd /project && cd sub;\npytest -q \\\n  a.py") == "pytest -q \\ a.py"
    assert without_folder("cd /project") == "cd /project"
    assert len(without_folder("x" * 5_000)) == 200


@pytest.mark.parametrize(
    "command",
    [
        r'grep -n "one\|two" src/a.ts | head -30',
        "grep -E '(rm|mv)' -r src && echo done",
        "rg 'a; rm b' src",
    ],
)
def test_signs_in_quotes_begin_no_other_program(command: str) -> None:
    assert is_looking_around(command)


def test_a_text_given_to_an_interpreter_is_no_target() -> None:
    failed = runs_of("npx tsx -e \"import { a } from './src/gone.js'\"")
    assert covers_all(runs_of("npx tsx -e 'console.log(1)'"), failed)
    assert not covers_all(runs_of("npx tsx src/cli.ts"), failed)
