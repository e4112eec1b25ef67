"""Commands and rules with words that no file can be called: they are judged, and never run."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_tui.config import PermissionMode, PermissionSettings
from agent_tui.permissions.engine import PermissionEngine
from agent_tui.permissions.verdict import Verdict
from agent_tui.tools.base import Access, Intent
from tests.support.odd_texts import LONG_PATTERN, ODD_TEXTS

_MODES: tuple[PermissionMode, ...] = ("plan", "ask", "accept-edits", "full")
_ALLOWED = ("git commit *", "pytest *", "sed *", "cat *", "node *", "rm a*")
_COMMANDS = """
grep -rnE WORD src
rg WORD
rg x WORD/*
cat WORD
cat < WORD
echo x > WORD
cd WORD && git status
git -C WORD status
git commit -m WORD
git log -- WORD
pytest -k WORD
node WORD
find WORD -name WORD
sed -n /WORD/p a
awk /WORD/ a
WORD x
/WORD/python x
rm WORD
rm -rf WORD
mv WORD a
cp a WORD
chmod +x WORD
ls WORD*
cat ~WORD/x
A=WORD cat $A
f=WORD; cat $f
for f in WORD; do cat $f; done
echo WORD | xargs cat
printf WORD | xargs rm
find . -exec cat WORD ;
bash -c WORD
bash WORD
python -c WORD
python WORD
psql -c WORD
curl -o WORD x
timeout 5 WORD
xargs WORD
cat <<WORD
"""
_LINES = [line for line in _COMMANDS.split("\n") if line]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "circle").symlink_to("circle")
    (tmp_path / "src").mkdir()
    return tmp_path


def _engine(folder: Path, mode: PermissionMode, *, is_interactive: bool = True) -> PermissionEngine:
    return PermissionEngine(
        mode=mode,
        rules=PermissionSettings(
            allow=tuple(f"bash({each})" for each in _ALLOWED),
            ask=("bash(make *)",),
            deny=("read(private/**)", "write(private/**)", "bash(shutdown *)"),
        ),
        workspace=folder,
        project_rules_file=folder / "permissions.toml",
        own_folders=(folder / "own",),
        is_interactive=is_interactive,
        scratch_folders=(),
    )


def _judged(folder: Path, mode: PermissionMode, command: str) -> Verdict:
    return _engine(folder, mode).judge("bash", Intent("x", "execute", command=command))


@pytest.mark.parametrize("text", ODD_TEXTS.values(), ids=ODD_TEXTS)
def test_every_word_of_a_command_can_be_judged(folder: Path, text: str):
    engines = [_engine(folder, mode) for mode in ("ask", "full")]
    for line in _LINES:
        for word in (f"x{text}", f"'{text}'", f'"{text}"'):
            intent = Intent("x", "execute", command=line.replace("WORD", word))
            assert [e.judge("bash", intent).fault for e in engines] == [None] * len(engines), line


@given(
    st.sampled_from(_LINES),
    st.text(st.characters(codec=None), max_size=30),
    st.integers(1, 400),
    st.sampled_from(["{}", "'{}'", '"{}"', "$'{}'"]),
    st.sampled_from(_MODES),
)
def test_any_word_can_be_judged(line: str, text: str, times: int, quotes: str, mode):
    command = line.replace("WORD", quotes.format(text * times))
    assert _judged(Path("/nowhere"), mode, command).fault is None


@pytest.mark.parametrize("access", ["read", "write"])
@pytest.mark.parametrize("text", ODD_TEXTS.values(), ids=ODD_TEXTS)
def test_every_path_can_be_judged(folder: Path, text: str, access: Access):
    intent = Intent("x", access, paths=(folder / text,))
    for tool in ("grep", access):
        assert _engine(folder, "accept-edits").judge(tool, intent).fault is None


@pytest.mark.parametrize("mode", _MODES)
def test_a_search_for_many_words_runs_unasked(folder: Path, mode: PermissionMode):
    for command in (f"grep -rnE '{LONG_PATTERN}' src", f"rg '{LONG_PATTERN}'"):
        assert _judged(folder, mode, command).decision == "allow"


@pytest.mark.parametrize(
    "command", [f"git commit -m '{LONG_PATTERN}'", f"pytest -k '{LONG_PATTERN}'"]
)
def test_a_rule_covers_words_that_are_longer_than_file_names(folder: Path, command: str):
    assert _judged(folder, "ask", command).decision == "allow"


@pytest.mark.parametrize("word", ["a[" * 600, "*" * 1_001], ids=["brackets", "stars"])
def test_a_file_pattern_that_takes_long_to_compare_is_a_question(folder: Path, word: str):
    verdict = _judged(folder, "full", f"cat {word}")
    assert (verdict.decision, "file pattern" in verdict.why) == ("ask", True)


@pytest.mark.parametrize("line", ["cd WORD && git status", "git -C WORD log", "cd WORD; ls"])
def test_a_folder_with_a_longer_name_than_a_path_is_a_question(folder: Path, line: str):
    deep = line.replace("WORD", "a/" * 9_000)
    for mode in _MODES[1:]:
        verdict = _judged(folder, mode, deep)
        assert (verdict.decision, "path is too long" in verdict.why) == ("ask", True)


def _broken(folder: Path, access: Access) -> PermissionEngine:
    engine = _engine(folder, "ask")

    def fail(*_given: object, **_named: object) -> str:
        raise ZeroDivisionError(access)

    object.__setattr__(engine, "_judge_access", fail)
    return engine


@pytest.mark.parametrize("access", ["read", "execute"])
def test_what_breaks_the_judging_becomes_a_question_without_a_rule(folder: Path, access: Access):
    verdict = _broken(folder, access).judge("x", Intent("x", access, command="ls"))
    assert (verdict.decision, verdict.session_rule) == ("ask", "")
    assert "permission check failed" in verdict.why
    assert isinstance(verdict.fault, ZeroDivisionError)


def test_what_breaks_the_judging_is_refused_where_it_may_not_run_anyway(folder: Path):
    engine = _broken(folder, "execute")
    engine.mode = "plan"
    assert engine.judge("bash", Intent("x", "execute", command="ls")).decision == "deny"
    reading = _broken(folder, "read").for_reading()
    assert reading.judge("read", Intent("x", "read")).decision == "deny"
