import errno
import os
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_tui.messages import (
    AssistantMessage,
    BashExecutionMessage,
    ImageContent,
    TextContent,
    ThinkingContent,
    ToolCall,
    UserMessage,
)
from agent_tui.sessions.entries import CompactionEntry, CustomEntry, CustomMessageEntry, LabelEntry
from agent_tui.sessions.search import session_search as search
from agent_tui.sessions.search import word_index
from agent_tui.sessions.search.word_index import search_terms
from agent_tui.sessions.store import SessionStore
from agent_tui.text_search import fold
from tests.support.session_files import append_to, make_older, write_session
from tests.support.session_values import reply, result, user


@pytest.fixture
def store(tmp_path: Path) -> SessionStore:
    return SessionStore(tmp_path / "sessions", "none")


@pytest.fixture(params=["on the disk", "in memory"])
def either(request: pytest.FixtureRequest, store: SessionStore, monkeypatch: pytest.MonkeyPatch):
    """Finds sessions by either index, brought up to date: the first prompts."""
    if request.param == "in memory":
        forbid_writing(monkeypatch)

    def find(query: str) -> list[str]:
        assert store.update_search() == 0
        return titles(store, query)

    return find


def forbid_writing(monkeypatch: pytest.MonkeyPatch) -> None:
    """No index can be made on the disk."""

    def refuse(path: Path, _busy_timeout_s: float) -> sqlite3.Connection:
        raise OSError(errno.EROFS, "Read-only file system", str(path))

    monkeypatch.setattr(word_index, "open_database", refuse)


def titles(store: SessionStore, query: str) -> list[str]:
    by_path = {found.path: found.first_prompt for found in store.list()}
    return [by_path[hit.path] for hit in store.search(query)]


def found_in(store: SessionStore, query: str) -> Sequence[Path]:
    return [hit.path for hit in store.search(query)]


def test_all_that_was_said_called_answered_and_named_is_found(store: SessionStore, either) -> None:
    call = ToolCall(id="c", name="grep", arguments={"deep": [{"pattern": "argword"}]})
    said = AssistantMessage(
        content=(ThinkingContent(thinking="thoughtword"), TextContent(text="replyword"), call)
    )
    write_session(
        store,
        user("promptword"),
        said,
        result("c", "outputword"),
        BashExecutionMessage(command="commandword", output="printedword"),
        CompactionEntry(summary="summaryword", first_kept_entry_id="x"),
        CustomMessageEntry(content=(TextContent(text="customword"),)),
        LabelEntry(target_id="x", label="labelword"),
        name="Nameword",
    )
    for word in ("prompt", "thought", "reply", "arg", "output", "command", "printed"):
        assert either(f"{word}word") == ["promptword"], word
    for word in ("summary", "custom", "label", "name"):
        assert either(f"{word}word") == ["promptword"], word
    assert either("grep") == ["promptword"]


def test_what_is_not_text_is_not_found(store: SessionStore, either) -> None:
    image = ImageContent(data="imagedata", mime_type="image/png")
    write_session(
        store,
        UserMessage(content=(TextContent(text="look"), image)),
        CustomEntry(custom_type="stateword", data={"text": "dataword"}),
    )
    for word in ("imagedata", "dataword", "stateword", "timestamp", "role", "user"):
        assert either(word) == [], word


FOUND = [
    "PARSER",
    "parser lexer",  # in two entries
    '"fast lexer"',
    '"fast lex',
    "pars",
    "resume",
    "RÉSUMÉ",
    "src/old_parser.py",
    "old_parser",
    "old_pars",
    "parser.py",
    "strasse",
    "会话",
    "会",
    "C++",
    "old-parser",  # only letters, digits and symbols count
    "🎉",
    "a ",
    'say "hello world"',
    r"C:\temp",
]
NOT_FOUND = [
    "parser absent",
    '"lexer fast"',
    '"fast lex"',
    "pars lexer",  # only the last word may be begun
    "pars ",
    "arser",
    "old-lexer",
    "话会",
    "👻",
    "a",  # one letter is not yet a word
]


def test_words_beginnings_phrases_and_signs(store: SessionStore, either) -> None:
    write_session(
        store,
        user("The Parser in src/old_parser.py 🎉 of C++; Straße, 全会话中; a"),
        reply(r"A fast lexer; the résumé. He did say: hello world at C:\temp\new"),
    )
    assert [query for query in FOUND if not either(query)] == []
    assert [query for query in NOT_FOUND if either(query)] == []


def test_what_another_program_escaped_is_found(store: SessionStore, either) -> None:
    path = write_session(store, user("plain"), reply("WORD"))
    escaped = path.read_bytes().replace(b"WORD", rb"r\u00e9sum\u00e9 \u4f1a\u8bdd")
    path.write_bytes(escaped)
    for query in ("résumé", "resume", "会话"):
        assert either(query) == ["plain"], query


def test_of_a_long_record_the_snippet_is_cut_where_it_matches(store: SessionStore) -> None:
    write_session(store, user("long " * 100_000 + "zebra at its end"))
    store.update_search()
    (hit,) = store.search("zebra")
    assert "zebra" in hit.snippet
    (hit,) = store.search("long")
    assert "long" in hit.snippet


def test_titles_come_first_then_the_newest(store: SessionStore) -> None:
    write_session(store, user("one"), reply("the parser"), age_s=1)
    write_session(store, user("two"), reply("the parser"), age_s=3)
    write_session(store, user("fix the parser"), age_s=9)
    write_session(store, user("three"), name="The Parser", age_s=8)
    store.update_search()
    assert titles(store, "parser") == ["three", "fix the parser", "one", "two"]
    assert [hit.path for hit in store.search("parser", limit=2)] == found_in(store, "parser")[:2]


def test_a_hit_shows_the_newest_place_with_most_of_the_words(store: SessionStore) -> None:
    write_session(
        store,
        user("alpha and beta, the older"),
        reply("x " * 100 + "\x1b[31mAlpha\x07 then\n\tBeta\x1b[0m here " + "y " * 200),
        reply("only alpha"),
    )
    store.update_search()
    (hit,) = store.search("alpha beta")
    assert hit.matches == 3
    assert hit.snippet.startswith("…x x")
    assert "Alpha then Beta here" in hit.snippet
    assert len(hit.snippet) <= 162


def test_a_snippet_has_no_tags_of_ours(store: SessionStore) -> None:
    long = "a" * 30
    for path in ("a.py", f"{long}/{long}.py"):
        text = f'See @{path}\n\n<file path="{path}" lines="1-2">\nneedle\n</file>'
        write_session(store, user(text))
    store.update_search()
    short, cut = sorted(hit.snippet for hit in store.search("needle"))
    assert short == "See @a.py needle"
    assert cut.startswith("…a")
    assert cut.endswith(f"a/{long}.py needle")


def test_a_snippet_in_another_script_shows_the_place(store: SessionStore) -> None:
    write_session(store, user("ﬁﬁﬁ " * 50 + "ÉCOLE ici"))
    store.update_search()
    (hit,) = store.search("ecole")
    assert "ÉCOLE ici" in hit.snippet


def test_colours_of_a_terminal_do_not_hide_a_word(store: SessionStore, either) -> None:
    write_session(store, user("a run"), result("c", "\x1b[31mError\x1b[0m: \x1b[1mbroken"))
    assert either("error broken") == ["a run"]


def test_new_sessions_and_new_lines_are_added(store: SessionStore) -> None:
    path = write_session(store, user("first"), age_s=9)
    assert store.count_unsearched() == 1
    store.update_search()
    assert store.count_unsearched() == 0
    append_to(path, reply("laterword"), age_s=5)
    write_session(store, user("second"), age_s=1)
    assert store.count_unsearched() == 2
    assert titles(store, "laterword") == []
    steps: list[tuple[int, int]] = []
    assert store.update_search(lambda done, total: steps.append((done, total))) == 0
    assert titles(store, "laterword first") == ["first"]
    assert titles(store, "second") == ["second"]
    assert steps[-1] == (2, 2)


def test_a_file_that_grew_is_read_from_where_it_was_left(
    store: SessionStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_session(store, user("first"), age_s=9)
    store.update_search()
    size = path.stat().st_size
    starts: list[int] = []
    read_chunks = word_index.read_chunks

    def note_start(path: Path, start: int, chunk_bytes: int):
        starts.append(start)
        return read_chunks(path, start, chunk_bytes)

    monkeypatch.setattr(word_index, "read_chunks", note_start)
    append_to(path, reply("more"), age_s=5)
    store.update_search()
    assert starts == [size]


@pytest.mark.parametrize("other", ["otherword", "otherword" + " and" * 9])
def test_a_rewritten_or_deleted_session_is_not_found_by_what_it_held(
    store: SessionStore, other: str
) -> None:
    path = write_session(store, user("firstword"), age_s=9)
    gone = write_session(store, user("goneword"), age_s=9)
    store.update_search()
    path.write_bytes(path.read_bytes().replace(b"firstword", other.encode()))
    make_older(path, 5)
    gone.unlink()
    store.update_search()
    assert titles(store, "firstword") == []
    assert titles(store, "otherword") == [other]
    assert found_in(store, "goneword") == []


def test_a_torn_last_line_waits_for_its_end(store: SessionStore) -> None:
    path = write_session(store, user("whole"), reply("tornword"), age_s=9)
    data = path.read_bytes()
    path.write_bytes(data[:-10])
    store.update_search()
    assert titles(store, "tornword") == []
    assert titles(store, "whole") == ["whole"]
    path.write_bytes(data)
    store.update_search()
    assert titles(store, "tornword") == ["whole"]


def test_it_can_be_stopped_and_goes_on_later(
    store: SessionStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(word_index, "CHUNK_BYTES", 2_000)
    monkeypatch.setattr(word_index, "BATCH_BYTES", 4_000)
    for number in range(3):
        texts = [user(f"s{number}w{line} " + "filler " * 100) for line in range(20)]
        write_session(store, *texts, age_s=number)
    answers = iter([False] * 12)
    left = store.update_search(is_cancelled=lambda: next(answers, True))
    assert left == store.count_unsearched() == 2
    assert titles(store, "s0w19") != []
    assert titles(store, "s1w0") != [], "the part of it that was read"
    assert titles(store, "s2w0") == []
    assert store.update_search() == 0
    for number in range(3):
        for line in range(20):
            assert len(store.search(f"s{number}w{line}")) == 1
    assert titles(store, "s0w0 s0w19 filler") != [], "words far apart in one session"


@pytest.mark.parametrize("damage", ["delete", "garbage", "other version", "no rows", "locked"])
def test_the_index_may_be_lost_broken_or_locked(store: SessionStore, damage: str) -> None:
    write_session(store, user("still here"))
    store.update_search()
    index = store.root / "search.sqlite"
    database: sqlite3.Connection | None = None
    match damage:
        case "delete":
            index.unlink()
        case "garbage":
            index.write_bytes(b"this is no database" * 500)
        case "other version":
            with closing(sqlite3.connect(index)) as other, other:
                other.execute("DROP TABLE files")
                other.execute("PRAGMA user_version = 99")
        case "no rows":
            with closing(sqlite3.connect(index)) as other, other:
                other.execute("DROP TABLE texts")
        case _:
            database = sqlite3.connect(index)
            database.execute("PRAGMA locking_mode = EXCLUSIVE")
            database.execute("BEGIN EXCLUSIVE")
    try:
        store.search("still")
        store.count_unsearched()
        store.update_search()
    finally:
        if database is not None:
            database.close()
    assert store.update_search() == 0
    assert titles(store, "still") == ["still here"]
    with closing(word_index.WordIndex(index)) as mended:
        assert len(mended.find(search_terms("still "), 10)) == 1
    assert index.stat().st_mode & 0o077 == 0


def test_an_index_that_is_no_database_is_made_again_at_once(store: SessionStore) -> None:
    write_session(store, user("still here"))
    (store.root / "search.sqlite").write_bytes(b"this is no database" * 500)
    assert store.update_search() == 0
    assert titles(store, "still") == ["still here"]


def test_without_fts5_nothing_is_found_and_all_is_left(
    store: SessionStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = [line.replace("fts5", "no_such_module") for line in word_index._SCHEMA]
    monkeypatch.setattr(word_index, "_SCHEMA", schema)
    write_session(store, user("needle"))
    assert store.update_search() == store.count_unsearched() == 1
    assert titles(store, "needle") == []


def test_where_nothing_can_be_written_the_newest_sessions_are_indexed_in_memory(
    store: SessionStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    forbid_writing(monkeypatch)
    monkeypatch.setattr(search, "_MOST_BYTES_AT_ONCE", 2_000)
    for number in range(3):
        write_session(store, user(f"needle {number}"), reply("x" * 1_000), age_s=number)
    assert store.update_search() == 1
    assert titles(store, "needle") == ["needle 0", "needle 1"]
    assert not (store.root / "search.sqlite").exists()


def test_among_a_folders_sessions_the_bytes_before_a_file_decide_whether_it_is_looked_at(
    store: SessionStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [
        write_session(store, user(f"needle {number}"), reply("x" * 1_000), age_s=number)
        for number in range(3)
    ]
    size = paths[0].stat().st_size
    for most_bytes, late in ((size, 2), (size + 1, 1), (2 * size + 1, 0)):
        (store.root / "search.sqlite").unlink(missing_ok=True)
        monkeypatch.setattr(search, "_MOST_BYTES_AT_ONCE", most_bytes)
        found, unread = store.search_project("needle", Path("/w/here"), 10)
        assert ([hit.path for hit in found], unread) == (paths[: 3 - late], late)
    monkeypatch.setattr(search, "_MOST_BYTES_AT_ONCE", 1)
    found, unread = store.search_project("needle", Path("/w/here"), 10)
    assert ([hit.path for hit in found], unread) == (paths, 0)
    assert len(store.search_project("needle", Path("/w/here"), 2)[0]) == 2


def test_what_came_after_a_search_is_found_by_the_next(
    store: SessionStore, either: Callable[[str], list[str]]
) -> None:
    path = write_session(store, user("first"), age_s=9)
    assert either("first") == ["first"]
    append_to(path, reply("laterword"), age_s=5)
    write_session(store, user("second"), age_s=1)
    assert either("laterword") == ["first"]
    assert either("second") == ["second"]


def test_letters_of_other_scripts_are_found_and_shown_as_written(
    store: SessionStore, either: Callable[[str], list[str]]
) -> None:
    prompts = ("Ещё один отчёт", "한국어 세션", "Η Άλφα", "データの確認", "ﬁle ＡＢ，Straße")
    for prompt in prompts:
        write_session(store, user(prompt))
    latin = ("file", "ab", "strasse")
    for query in ("отчёт", "отчет", "한국어", "세", "άλφα", "αλφα", "データ", *latin):
        (found,) = either(query)
        assert [hit.snippet for hit in store.search(query)] in ([found], [fold(found)]), query
    for prompt in prompts[:4]:
        assert [hit.snippet for hit in store.search(prompt.split()[-1])] == [prompt]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_is_searched(store: SessionStore) -> None:
    write_session(store, user("needle"))
    store.root.chmod(0o500)
    try:
        assert store.update_search() == 0
        assert found_in(store, "needle") != []
    finally:
        store.root.chmod(0o700)


def test_rows_of_files_that_are_gone_do_not_pile_up(
    store: SessionStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(word_index, "_MOST_DEAD_FILES", 3)
    path = write_session(store, user("word0"))
    for number in range(8):
        path.write_bytes(path.read_bytes().replace(b"word%d" % number, b"word%d" % (number + 1)))
        make_older(path, 50 - number)
        store.update_search()
    with closing(sqlite3.connect(store.root / "search.sqlite")) as database:
        (made,) = database.execute("SELECT max(seq) FROM sqlite_sequence").fetchone()
    assert made <= 7
    assert titles(store, "word8") == ["word8"]


def test_two_that_index_at_once_add_nothing_twice(store: SessionStore) -> None:
    for number in range(5):
        write_session(store, user(f"word{number}"), age_s=number)
    files = store.files()
    with (
        closing(word_index.WordIndex(store.root / "search.sqlite")) as one,
        closing(word_index.WordIndex(store.root / "search.sqlite")) as other,
    ):
        waiting = one.pending(files)
        assert list(other.add(waiting, bool)) == [5]
        assert list(one.add(waiting, bool)) == [5]
        assert [hit.matches for hit in one.find(search_terms("word2"), 10)] == [1]


ODD = [
    "",
    " ",
    '"',
    '""',
    '" "',
    "AND",
    "a AND b",
    "NOT x",
    "NEAR(a b)",
    "*",
    "a*",
    "^a",
    "word:",
    "word : x",
    "{a}",
    "-x",
    "a\0b",
    "\0",
    "'; DROP TABLE files; --",
    "\\",
    "%",
    "\ud800",
    "🎉👻",
    "\u0301",
    "x" * 10_000,
    "x y " * 2_500,
    "x" * 10_000 + '"',
]


def test_odd_queries_are_queries(store: SessionStore, either) -> None:
    prompt = "NOT AND a* word: 'x' \\ %"
    write_session(store, user(prompt))
    for query in ODD:
        assert either(query) in ([], [prompt]), query


@settings(max_examples=60)
@given(st.text(max_size=30) | st.text(alphabet='"*AND ()^:-\0é会a', max_size=20))
def test_no_query_raises(tmp_path_factory: pytest.TempPathFactory, query: str) -> None:
    root = tmp_path_factory.getbasetemp() / "any-query"
    store = SessionStore(root, "none")
    if not root.exists():
        write_session(store, user("a word in é and 会话"))
        store.update_search()
    store.search(query)


def test_matches_are_counted_and_each_file_is_found_once(store: SessionStore) -> None:
    write_session(store, *(user(f"needle {number}") for number in range(12)))
    store.update_search()
    assert [hit.matches for hit in store.search("needle")] == [12]


def test_a_snippet_of_a_reply_reads_as_it_is_drawn(store: SessionStore) -> None:
    write_session(
        store, user("one"), reply("# Found\n\nThe **needle** is in `a.py`.\n\n- *so* it is")
    )
    write_session(store, user("two"), reply("see [the manual](http://x/needle.html)"))
    long = "\n\n".join(f"line **{number}**" for number in range(300))
    write_session(store, user("three"), reply(f"{long}\n\nA **needle** here.\n\n{long}"))
    store.update_search()
    shown = {hit.snippet for hit in store.search("needle")}
    assert shown == {
        "Found The needle is in a.py. so it is",
        "see [the manual](http://x/needle.html)",
        *(text for text in shown if "A needle here. line 0" in text and text.startswith("…")),
    }
    assert len(shown) == 3
    assert not any("**" in text for text in shown)


def test_a_snippet_of_a_command_or_an_output_is_left_as_it_is(store: SessionStore) -> None:
    path = "src/__init__.py"
    ran = ToolCall(id="c", name="bash", arguments={"command": f"cat {path}"})
    said = AssistantMessage(content=(TextContent(text="**Now**"), ran))
    write_session(store, user("one"), said)
    write_session(store, user("two"), result("c", f"**{path}** changed"))
    write_session(store, user(f"three **{path}**"))
    store.update_search()
    shown = [hit.snippet for hit in store.search("__init__.py")]
    assert len(shown) == 3
    assert all(path in text for text in shown)
