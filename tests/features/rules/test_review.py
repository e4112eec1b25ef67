"""The rules of a project: its sessions, the cache, the answers, and the dates of rules."""

import asyncio
import os
from pathlib import Path

import pytest

from agent_tui.agent.prompt.context_files import ContextFile
from agent_tui.features.rules.answers import AnswerFile
from agent_tui.features.rules.cache import CorrectionCache
from agent_tui.features.rules.review import (
    RuleReview,
    answer_file,
    answered_rule,
    confirmed,
    review_rules,
)
from agent_tui.sessions.entries import CustomEntry, Entry, Header, PulledFrom
from agent_tui.sessions.file.chunks import LineChunk
from agent_tui.sessions.importers.import_session import IMPORTED
from agent_tui.sessions.lineage.known_session import KnownSession
from agent_tui.sessions.listing import session_files
from agent_tui.sessions.store import SessionStore
from tests.features.rules.said import BACKGROUND, say, session


@pytest.fixture
def store(tmp_path: Path) -> SessionStore:
    return SessionStore(tmp_path / "sessions", "none")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / ".git").mkdir(parents=True)
    (folder / "src").mkdir()
    return folder


def write(
    store: SessionStore,
    cwd: Path,
    *entries: Entry,
    origin: str = "",
    pulled_from: PulledFrom | None = None,
) -> Path:
    header = Header(cwd=str(cwd), origin=origin or None, pulled_from=pulled_from)
    with store.create(header) as log:
        for entry in entries:
            log.append(entry)
    assert log.path is not None
    return log.path


def review(store: SessionStore, cwd: Path, text: str = "") -> RuleReview:
    return review_rules(store, cwd, (ContextFile(cwd / "AGENTS.md", text),) if text else ())


def said_twice(store: SessionStore, cwd: Path) -> None:
    write(store, cwd, *map(say, BACKGROUND * 5))
    write(store, cwd, *session("use uv, not pip", day=1))
    write(store, cwd, *session("Please use uv instead of pip.", day=2))


def texts(found: RuleReview) -> list[str]:
    return [offer.text for offer in found.offers]


def test_all_sessions_of_the_repository_are_read(store, project, tmp_path):
    write(store, project / "src", *session("use uv, not pip", day=1))
    write(store, project, *session("uv, not pip please", day=2))
    write(store, tmp_path / "other", *session("Never push to main.", day=3))
    write(store, tmp_path / "other", *session("never push to main", day=4))
    found = review(store, project)
    assert (texts(found), found.sessions) == (["use uv, not pip"], 2)
    write(store, tmp_path, *session("no pip, uv please", day=5))
    assert review(store, project).sessions == 2, "a folder above has other projects"
    assert texts(review(store, project / "src")) == ["use uv, not pip"]


def test_sessions_that_the_user_did_not_make_suggest_nothing(store, project):
    write(store, project, *session("use uv, not pip", day=1), origin="print")
    write(store, project, *session("uv, not pip please", day=2), origin="print")
    assert review(store, project).sessions == 0


def test_the_present_conversation_counts_as_it_is_now(store, project):
    path = write(store, project, *session("uv, not pip please", day=2))
    own = KnownSession(Header(cwd=str(project)), path, tuple(session("use uv, not pip", day=1)))
    assert review_rules(store, project, (), own).sessions == 1
    write(store, project, *session("uv, not pip please", day=3))
    (offer,) = review_rules(store, project, (), own).offers
    assert {quote.source.name for quote in offer.quotes} >= {"this session"}


def test_an_imported_session_is_named_as_such(store, project):
    mark = CustomEntry(custom_type=IMPORTED, data={"format": "claude"})
    write(store, project, *session("use uv, not pip", day=1), mark)
    write(store, project, *session("uv, not pip please", day=2))
    (offer,) = review(store, project).offers
    assert [quote.source.imported_from for quote in offer.quotes] == ["claude", ""]


@pytest.mark.parametrize("answer", ["yes", "no"])
def test_what_was_answered_is_not_offered_again(store, project, answer):
    said_twice(store, project)
    (offer,) = review(store, project).offers
    answer_file(project).add(answered_rule(offer, answer))
    assert texts(review(store, project)) == []
    write(store, project, *session("uv, not pip!", day=9))
    after = review(store, project / "src")
    assert texts(after) == []
    assert [known.line for known in after.answers.answers] == ["use uv, not pip"]


def test_answers_are_outside_the_project(project):
    assert not answer_file(project).path.is_relative_to(project)
    assert answer_file(project).path == answer_file(project / "src").path


def test_a_broken_file_of_answers_counts_as_empty(tmp_path):
    file = AnswerFile(tmp_path / "rules.json")
    file.path.write_text("{")
    assert not file.read().is_off
    file.switch(is_off=True)
    assert file.read().is_off
    file.switch(is_off=False)
    assert not file.read().is_off


def test_a_file_is_read_once_until_it_changes(store, project, monkeypatch):
    path = write(store, project, *session("use uv, not pip"))
    read: list[Path] = []

    def count(path: Path, *_rest: object) -> list[LineChunk]:
        read.append(path)
        return [LineChunk(path.read_bytes(), path.stat().st_size)]

    monkeypatch.setattr("agent_tui.features.rules.cache.read_chunks", count)
    cache = CorrectionCache(store.root / "corrections.sqlite")
    first = list(cache.read(session_files([path])))
    assert first == list(cache.read(session_files([path])))
    assert read == [path]
    with path.open("ab") as file:
        file.write(b"\n")
    assert [found[2] for found in cache.read(session_files([path]))] == [first[0][2]]
    assert len(read) == 2


def test_a_broken_cache_is_made_again_and_none_is_needed(store, project):
    said_twice(store, project)
    expected = texts(review(store, project))
    (store.root / "corrections.sqlite").write_bytes(b"broken" * 1_000)
    assert texts(review(store, project)) == expected == ["use uv, not pip"]
    (store.root / "corrections.sqlite").unlink()
    (store.root / "corrections.sqlite").mkdir()
    assert texts(review(store, project)) == expected


def test_it_ends_early_and_keeps_what_was_read(store, project):
    paths = [write(store, project, *session("use uv, not pip", day=day)) for day in (1, 2, 3)]
    cache = CorrectionCache(store.root / "corrections.sqlite")
    left = iter([False, True])
    assert len(list(cache.read(session_files(paths), lambda: next(left)))) == 1
    assert len(cache._load()) == 1


def test_what_is_stored_of_deleted_sessions_goes(store, project):
    paths = [write(store, project, *session("use uv, not pip", day=day)) for day in (1, 2)]
    review(store, project)
    store.delete(paths[0])
    review(store, project)
    known = CorrectionCache(store.root / "corrections.sqlite")._load()
    assert {path for path, *_ in known} == {os.fsencode(paths[1])}


RULE = "- Use pip, not uv.\n"


def dated(found: RuleReview, committed_at: str) -> int:
    async def ask(_path: Path, _line: int) -> str:
        return committed_at

    return len(asyncio.run(confirmed(found.contradictions, found.answers, ask)))


def test_a_rule_is_as_old_as_its_commit_or_its_file(store, project):
    write(store, project, *map(say, BACKGROUND * 5))
    write(store, project, *session("use uv, not pip", day=5))
    file = project / "AGENTS.md"
    file.write_text(RULE)
    found = review(store, project, RULE)
    assert dated(found, "2026-01-01T00:00:00Z") == 1
    assert dated(found, "2026-01-09T00:00:00Z") == 0
    os.utime(file, (1.7e9, 1.7e9))
    assert dated(found, "") == 1
    os.utime(file, (4e9, 4e9))
    assert dated(found, "") == 0


def test_a_line_that_an_answer_added_does_not_make_the_others_newer(store, project):
    said_twice(store, project)
    write(store, project, *session("docs in English, not German", day=5))
    text = "- Write the docs in German.\n"
    file = project / "AGENTS.md"
    file.write_text(text)
    (offer,) = review(store, project, text).offers
    before = "2025-12-31T00:00:00Z"
    answer_file(project).add(answered_rule(offer, "yes", file=str(file), file_was_from=before))
    os.utime(file, (1.7e9, 1.7e9))
    assert dated(review(store, project, text), "") == 1
    os.utime(file, (4e9, 4e9))
    assert dated(review(store, project, text), "") == 0, "somebody changed it since"


def test_a_rule_that_an_answer_added_is_as_old_as_the_answer(store, project):
    said_twice(store, project)
    (offer,) = review(store, project).offers
    answer_file(project).add(answered_rule(offer, "yes", "Use pip, not uv."))
    found = review(store, project, RULE)
    assert found.contradictions
    assert dated(found, "2026-01-01T00:00:00Z") == 0, "the answer is newer than the words"


def test_what_others_said_in_pulled_sessions_is_no_correction_of_the_users(store, project):
    write(store, project, *map(say, BACKGROUND * 5))
    write(store, project, *session("use uv, not pip", day=1))
    write(store, project, *session("use uv, not pip", day=2), pulled_from=PulledFrom(by="Ada"))
    assert review(store, project).offers == ()
    write(store, project, *session("use uv, not pip", day=3))
    assert [offer.text for offer in review(store, project).offers] == ["use uv, not pip"]
