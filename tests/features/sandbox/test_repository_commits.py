from pathlib import Path

import pytest

from agent_tui.features.sandbox import repository_commits
from agent_tui.features.sandbox.file_contents import FileVersion
from agent_tui.features.sandbox.repository_commits import RepositoryCommits


def _stored(commits: RepositoryCommits) -> RepositoryCommits:
    return RepositoryCommits.model_validate_json(commits.model_dump_json())


def test_what_is_there_before_the_first_command_is_trusted_with_its_history():
    commits = RepositoryCommits()
    assert commits.take_users({"main": "a", "tag": "b"}) == []
    assert _stored(commits).trusted == ["a", "b"]


def test_only_what_nothing_named_before_is_the_users_later():
    commits = RepositoryCommits()
    commits.take_users({"main": "a"})
    commits.take_foreign({"main": "b"})
    commits.take_foreign({"main": "a"})
    commits = _stored(commits)
    assert commits.take_users({"main": "c", "kept": "b", "old": "a"}) == ["c"]
    assert commits.named == {"a", "b", "c"}
    commits.add_brought(["c"])
    assert commits.take_users({"main": "a"}) == commits.take_users({"main": "c"}) == []
    assert commits.trusted == ["a"]
    assert commits.brought == ["c"]


def test_what_a_repository_of_commands_names_is_never_trusted():
    commits = RepositoryCommits()
    commits.take_foreign({"main": "a"})
    assert commits.take_users({"main": "b"}) == ["b"]
    assert commits.trusted == []


def test_a_repository_is_the_users_if_it_was_there_before_a_command_or_they_committed_in_it():
    users, commands = RepositoryCommits(), RepositoryCommits()
    assert users.is_unknown
    users.take_users({})
    commands.take_foreign({})
    users.take_foreign({"main": "a"})
    commands.take_foreign({"main": "a"})
    users, commands = _stored(users), _stored(commands)
    assert not users.is_unknown
    assert not commands.is_unknown
    assert users.is_users
    assert not commands.is_users
    commands.add_brought(commands.take_users({"main": "b"}))
    assert commands.is_users


def test_what_the_user_names_when_nobody_knows_what_was_named_before_is_not_theirs():
    commits = RepositoryCommits()
    commits.take_users({"main": "a"})
    commits.take_foreign(None)
    commits = _stored(commits)
    assert commits.take_users({"main": "b"}) == []
    assert commits.take_users({"main": "c"}) == ["c"]
    assert commits.take_users({"main": "b"}) == []


def test_the_users_commits_are_all_trusted_however_many_there_are():
    commits = RepositoryCommits()
    ids = [f"{number:040x}" for number in range(1, 6_000)]
    commits.take_users(dict(zip(ids, ids, strict=True)))
    assert commits.trusted == ids


def test_too_many_ids_of_commands_end_the_trust(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(repository_commits, "_MOST_FOREIGN", 2)
    commits = RepositoryCommits()
    commits.take_users({"main": "a"})
    commits.take_foreign({"x": "b", "y": "c", "z": "d"})
    commits = _stored(commits)
    assert commits.take_users({"main": "e"}) == []
    assert commits.take_users({"main": "f"}) == []
    assert commits.trusted == ["a"]


def test_the_oldest_that_the_user_brought_is_forgotten(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(repository_commits, "MOST_BROUGHT", 2)
    commits = RepositoryCommits(brought=["b", "a"])
    commits.add_brought(["c", "b"])
    assert commits.brought == ["c", "b"]


_X, _Y = FileVersion("100644", b"x"), FileVersion("100644", b"y")


def test_a_version_is_approved_of_for_one_file():
    commits = RepositoryCommits()
    commits.approve(Path("a"), _X)
    commits = _stored(commits)
    assert commits.is_approved(Path("a"), _X)
    assert not commits.is_approved(Path("a"), _X._replace(mode="100755"))
    assert not commits.is_approved(Path("a"), _X._replace(mode="120000"))
    assert not commits.is_approved(Path("a"), _Y)
    assert not commits.is_approved(Path("b"), _X)


def test_only_the_last_word_of_the_user_counts():
    commits = RepositoryCommits()
    commits.approve(Path("a"), _X)
    commits.approve(Path("a"), _Y)
    assert not commits.is_approved(Path("a"), _X)
    assert commits.has_approval(Path("a"))
    commits.approve(Path("a"), None)
    assert not _stored(commits).is_approved(Path("a"), _Y)
    assert not commits.has_approval(Path("a"))


def test_what_the_user_allowed_holds_in_a_copy_of_the_repository_until_they_take_it_back():
    first, copy = RepositoryCommits(foreign=["f"]), RepositoryCommits()
    first.approve(Path("a"), _X)
    first.approve(Path("b"), _X)
    copy.approve(Path("b"), _Y)
    copy.approve(Path("b"), None)
    copy.learn(first, {"f"})
    assert copy.is_approved(Path("a"), _X)
    assert not copy.is_approved(Path("b"), _X)


def test_the_oldest_words_of_the_user_are_forgotten(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(repository_commits, "_MOST_APPROVED", 2)
    commits = RepositoryCommits()
    for name in "abac":
        commits.approve(Path(name), _X)
    assert list(commits.approvals) == ["c", "a"]


def test_what_the_user_allowed_before_is_withdrawn_until_they_have_it_again():
    commits = RepositoryCommits()
    commits.approve(Path("a"), _X)
    commits.approve(Path("a"), None, _Y)
    commits = _stored(commits)
    assert commits.is_withdrawn(Path("a"), _X)
    assert not commits.is_withdrawn(Path("a"), _Y)
    assert not commits.is_withdrawn(Path("b"), _X)
    commits.approve(Path("a"), None, _X)
    assert not commits.is_withdrawn(Path("a"), _X)
    commits.approve(Path("a"), _X)
    commits.approve(Path("a"), _Y)
    assert commits.is_withdrawn(Path("a"), _X)
    commits.approve(Path("a"), _X)
    assert not commits.is_withdrawn(Path("a"), _X)
    assert commits.is_withdrawn(Path("a"), _Y)
