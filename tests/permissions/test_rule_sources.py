"""Deny rules that cannot be read are found, wherever they are and whatever is wrong."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_tui.config import PermissionSettings
from agent_tui.permissions.rule_book import RuleBook, UnreadRules
from agent_tui.permissions.rule_sources import RuleSources, RulesRead, add_rules

_NOWHERE = Path("/nowhere/at/all")
_VARIABLE = "AGENT_TUI_PERMISSIONS__DENY"
_DENY = '[permissions]\ndeny = ["bash(rm *)"]\nallow = ["bash(ls)"]\n'
_UNREADABLE: dict[str, Callable[[Path], object]] = {
    "a folder": lambda file: file.mkdir(),
    "a pipe": lambda file: os.mkfifo(file),
    "not UTF-8": lambda file: file.write_bytes(b'model = "\xff"\n'),
    "a NUL": lambda file: file.write_bytes(b"model = \0"),
    "broken TOML": lambda file: file.write_text("[permissions\ndeny = []\n"),
    "a key twice": lambda file: file.write_text("theme = 'a'\ntheme = 'b'\n"),
    "a link to nothing": lambda file: file.symlink_to("nowhere"),
    "a link to itself": lambda file: file.symlink_to(file.name),
}
_MISTAKEN = {
    "a text": '[permissions]\ndeny = "bash(rm *)"\n',
    "a number in the list": '[permissions]\ndeny = ["bash(rm *)", 3]\n',
    "a table": "[permissions.deny]\nx = 1\n",
    "no section": "permissions = ['bash(rm *)']\n",
    "a list of sections": '[[permissions]]\ndeny = ["bash(rm *)"]\n',
    "no rule": '[permissions]\ndeny = ["bash(ls)", "rm -rf *"]\n',
    "an unknown tool": '[permissions]\ndeny = ["basch(rm *)"]\n',
    "two commands": '[permissions]\ndeny = ["bash(cd x; rm *)"]\n',
    "no host": '[permissions]\ndeny = ["fetch(http://x)"]\n',
}
_HARMLESS = {
    "nothing": "",
    "a mark at the start": f"\ufeff{_DENY}",
    "an unknown key": f"colour = 'red'\n{_DENY}denny = ['x']\n",
    "a wrong value": f"theme = 3\ncompaction = 'x'\n{_DENY}",
    "an allow rule with a mistake": "[permissions]\nallow = ['ls']\n",
    "an ask rule with a mistake": "[permissions]\nask = ['ls']\n",
    "allow is no list": "[permissions]\nallow = 'bash(ls)'\n",
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "config.toml"


def _read(
    sources: RuleSources, *files: Path, stored: Path = _NOWHERE, denied: str | None = None
) -> RulesRead:
    return sources.read(files, stored, {} if denied is None else {_VARIABLE: denied})


def _problems(read: RulesRead) -> str:
    return "\n".join(one.problem for one in read.unread)


@pytest.mark.parametrize("kind", _UNREADABLE)
def test_a_settings_file_that_is_there_and_cannot_be_read_may_hold_deny_rules(
    kind: str, file: Path
):
    _UNREADABLE[kind](file)
    (one,) = _read(RuleSources(), file).unread
    assert (one.source, one.file, one.has_earlier) == (str(file), file, False)
    assert one.problem.startswith(f"{file}:")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
@pytest.mark.parametrize("part", ["file", "folder"])
def test_a_file_without_the_right_to_read_it_may_hold_deny_rules(part: str, tmp_path: Path):
    folder = tmp_path / "config"
    folder.mkdir()
    (folder / "config.toml").write_text(_DENY)
    closed = folder if part == "folder" else folder / "config.toml"
    closed.chmod(0)
    try:
        found = _problems(_read(RuleSources(), folder / "config.toml"))
    finally:
        closed.chmod(0o700)
    assert "Permission denied" in found


@pytest.mark.parametrize("kind", _MISTAKEN)
def test_a_deny_rule_with_a_mistake_is_named_with_its_line(kind: str, file: Path):
    file.write_text(f"theme = 'ansi-dark'\n{_MISTAKEN[kind]}")
    found = _problems(_read(RuleSources(), file))
    assert found.startswith(f"{file}:")
    assert "permissions" in found
    assert found.removeprefix(f"{file}:")[0] in "23", found


@pytest.mark.parametrize("kind", _HARMLESS)
def test_no_other_mistake_counts(kind: str, file: Path):
    file.write_text(_HARMLESS[kind])
    assert _read(RuleSources(), file).unread == ()


def test_what_does_not_exist_has_no_rules(tmp_path: Path):
    (tmp_path / "file").write_text("")
    files = (tmp_path / "config.toml", tmp_path / "file" / "config.toml")
    assert _read(RuleSources(), *files, stored=tmp_path / "none" / "x.toml").unread == ()


@pytest.mark.parametrize("kind", _UNREADABLE)
def test_the_rules_of_the_project_are_looked_at_too(kind: str, file: Path):
    _UNREADABLE[kind](file)
    assert _problems(_read(RuleSources(), stored=file)).startswith(f"{file}: ")


@pytest.mark.parametrize("text", ["deny = ['rm']\n", "deny = 3\n", "deny = 'rm'\n"])
def test_a_mistake_in_a_rule_of_the_project_is_named(text: str, file: Path):
    file.write_text(text)
    assert _problems(_read(RuleSources(), stored=file)).startswith(f"{file}: deny: ")
    file.write_text("allow = ['ls']\nask = ['ls']\ndeny = ['bash(rm *)']\n")
    assert not _problems(_read(RuleSources(), stored=file))


def test_a_variable_is_looked_at_too():
    (one,) = _read(RuleSources(), denied="bash(ls),rm *").unread
    assert (one.source, one.file) == (_VARIABLE, None)
    assert one.problem.startswith(f"{_VARIABLE}: 'rm *' is not a rule.")
    assert _read(RuleSources(), denied='["bash(rm *)", "read(x/**)"]').unread == ()
    assert _read(RuleSources(), denied='["bash(rm *)"').unread


def test_the_rules_of_a_source_that_breaks_later_stay_as_they_were_read(tmp_path: Path):
    own, project, stored = (tmp_path / name for name in ("own.toml", "p.toml", "stored.toml"))
    own.write_text(_DENY)
    project.write_text('[permissions]\ndeny = ["bash(git push *)"]\n')
    stored.write_text('deny = ["bash(make *)"]\n')
    sources = RuleSources()
    assert _read(sources, own, project, stored=stored) == RulesRead()
    own.write_text("[permissions\n")
    stored.write_text("deny = 3\n")
    read = _read(sources, own, project, stored=stored)
    assert [one.has_earlier for one in read.unread] == [True, True]
    assert read.earlier.deny == ("bash(rm *)", "bash(make *)")
    assert read.earlier.allow == ("bash(ls)",)
    own.write_text('[permissions]\ndeny = ["bash(cp *)"]\n')
    stored.unlink()
    assert _read(sources, own, project, stored=stored) == RulesRead()
    project.write_text("x = ")
    other = tmp_path / "other.toml"
    other.write_text("x = ")
    read = _read(sources, own, project, other)
    assert [(one.file, one.has_earlier) for one in read.unread] == [(project, True), (other, False)]
    assert read.earlier.deny == ("bash(git push *)",)


def test_rules_that_are_there_are_not_added_twice():
    one = PermissionSettings(deny=("bash(a)", "bash(b)"), pass_environment=("X",))
    both = add_rules(one, PermissionSettings(deny=("bash(b)", "bash(c)"), ask=("bash(d)",)))
    assert both.deny == ("bash(a)", "bash(b)", "bash(c)")
    assert (both.ask, both.pass_environment) == (("bash(d)",), ("X",))


def test_only_rules_without_an_earlier_reading_limit_the_mode(tmp_path: Path):
    book = RuleBook(PermissionSettings(), tmp_path / "none.toml")
    assert (book.limit_mode("full"), book.unread_notices) == ("full", ())
    book.unread = (UnreadRules("a", "a: broken.", has_earlier=True),)
    assert book.limit_mode("full") == "full"
    assert book.unread_notices == ("a: broken. The rules that were read before stay in force.",)
    book.unread = (*book.unread, UnreadRules("b", "b: broken"))
    assert [book.limit_mode(mode) for mode in ("plan", "ask", "accept-edits", "full")] == [
        *("plan", "ask", "ask", "ask")
    ]
    assert book.unread_notices[1] == "Deny rules cannot be read, so the mode is ask. b: broken."
