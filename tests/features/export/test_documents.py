import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from agent_tui.features.export.documents import HTML, MARKDOWN, to_html, to_markdown
from agent_tui.messages import (
    AssistantMessage,
    BashExecutionMessage,
    ImageContent,
    TextContent,
    ThinkingContent,
    ToolCall,
    UserMessage,
)
from agent_tui.sessions.entries import (
    BranchSummaryEntry,
    CompactionEntry,
    ContextEditEntry,
    CustomMessageEntry,
    SessionInfoEntry,
)
from agent_tui.sessions.export.document import document_of
from agent_tui.sessions.export.formats import export_text, to_jsonl
from agent_tui.sessions.log import SessionLog
from agent_tui.sessions.replay.changes import EditReport, report_entry, undo_mark
from agent_tui.sessions.replay.notes import stop_entry
from tests.support.session_values import chain, conversation, entry, header, reply, result, user

EXAMPLES = Path(__file__).parents[3] / "sessions.example"
HOSTILE = '</pre><script>alert(1)</script>{{body}}<img src="http://x/">&\x1b]52;c;QQ==\x07\x1b[31mred\u202e'


def rich_path():
    image = ImageContent(data="QQ==", mime_type="image/png")
    asked = UserMessage(content=(TextContent(text="see"), image), timestamp=1)
    thinking = AssistantMessage(content=(ThinkingContent(thinking="hm"),), timestamp=1)
    failed = AssistantMessage(
        content=(), stop_reason="error", error_message="no route", timestamp=1
    )
    return chain(
        *conversation(),
        SessionInfoEntry(name="Two files"),
        entry(asked),
        entry(thinking),
        entry(failed),
        entry(result("c9", "```\nfence\n````", "bash").model_copy(update={"is_error": True})),
        entry(BashExecutionMessage(command="ls", output="a.py")),
        CompactionEntry(summary="## Goal\nx", first_kept_entry_id="1", tokens_before=12_000),
        CustomMessageEntry(content="shown"),
        CustomMessageEntry(content="hidden", display=False),
        BranchSummaryEntry(summary="left"),
    )


def test_markdown_holds_the_whole_conversation() -> None:
    text = to_markdown(document_of(header(), rich_path()))
    assert text.startswith("# Two files\n")
    for part in (
        "look at both files",
        "## Tool call: read",
        "zwei: ü",
        "[image, image/png]",
        "hm",
        "no route",
        "## Tool error: bash",
        "$ ls\na.py",
        "Context compacted (12,000 -> 0 tokens)",
        "shown",
        "left",
    ):
        assert part in text
    assert "hidden" not in text


def test_every_entry_has_the_kind_that_styles_it_and_says_whether_it_is_folded() -> None:
    image = ImageContent(data="QQ==", mime_type="image/png")
    call = AssistantMessage(
        content=(TextContent(text="so"), ToolCall(id="c", name="read", arguments={})), timestamp=1
    )
    failed = AssistantMessage(content=(), error_message="no route", timestamp=1)
    shown = CustomMessageEntry(content=(TextContent(text="note"), image))
    edits = EditReport(batch="b", tokens_before=9, tokens_after=5, freed={}, messages={})
    path = chain(
        entry(UserMessage(content=(TextContent(text="see"), image), timestamp=1)),
        entry(AssistantMessage(content=(ThinkingContent(thinking="hm"),), timestamp=1)),
        entry(call),
        entry(result("c")),
        entry(failed),
        entry(BashExecutionMessage(command="ls", output="a.py")),
        CompactionEntry(summary="s", first_kept_entry_id="1", tokens_before=2),
        BranchSummaryEntry(summary="left"),
        shown,
        report_entry(edits),
        undo_mark(("1",)),
    )
    blocks = document_of(header(), path).blocks
    assert [(block.kind, block.is_code, len(block.images)) for block in blocks] == [
        ("user", False, 1),
        ("thinking", True, 0),
        ("assistant", False, 0),
        ("call", True, 0),
        ("result", True, 0),
        ("assistant", False, 0),
        ("call", True, 0),
        ("summary", False, 0),
        ("summary", False, 0),
        ("user", False, 1),
        ("summary", False, 0),
        ("summary", False, 0),
    ]


def test_edits_and_their_undoing_are_told_in_words() -> None:
    report = EditReport(
        batch="b", tokens_before=150_000, tokens_after=62_000, freed={2: 9_000}, messages={2: 40}
    )
    edit = ContextEditEntry(target_id="1", replacement="short", tier=2, batch="b")
    path = chain(entry(user("go")), edit, report_entry(report), undo_mark(("3",)))
    text = to_markdown(document_of(header(), path))
    assert "## Context compacted (150,000 -> 62,000 tokens)" in text
    assert "- 40 messages: old outputs reduced to one line each (about 9,000 tokens)" in text
    assert "The compaction was undone." in text
    assert text.count("short") == 0
    assert "40 messages: old outputs reduced" in to_html(document_of(header(), path))


def test_a_stopped_turn_says_that_it_was_stopped() -> None:
    path = chain(entry(user("go")), entry(reply("I was going")), stop_entry())
    document = document_of(header(), path)
    assert to_markdown(document).endswith("## Note\n\n(The user stopped this turn here.)\n")
    assert "(The user stopped this turn here.)" in to_html(document)


def test_a_fence_is_longer_than_any_in_the_text() -> None:
    assert "`````\n```\nfence\n````\n`````" in to_markdown(document_of(header(), rich_path()))


def test_control_characters_reach_no_export() -> None:
    path = chain(
        entry(user(HOSTILE)),
        entry(reply(HOSTILE, ("c1", HOSTILE))),
        entry(result("c1", HOSTILE, HOSTILE)),
        SessionInfoEntry(name=HOSTILE),
    )
    first = header(cwd=HOSTILE, parentSession=HOSTILE)
    for text in (to_markdown(document_of(first, path)), to_html(document_of(first, path))):
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", text)
        assert "52;c" not in text
        assert "red" in text


class Page(HTMLParser):
    """Checks that tags are closed and collects tags, addresses and text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.addresses: list[str] = []
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs) -> None:
        self.tags.add(tag)
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href")]
        if tag not in ("meta", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data) -> None:
        self.text += data


def test_the_page_stands_alone_and_everything_in_it_is_escaped() -> None:
    path = chain(entry(user(HOSTILE)), entry(reply(HOSTILE)), entry(result("c", HOSTILE)))
    page = Page(
        to_html(document_of(header(cwd=HOSTILE), (*path, SessionInfoEntry(id="9", name=HOSTILE))))
    )
    assert page.open == []
    assert page.addresses == []
    assert page.tags <= {
        *("html", "head", "meta", "title", "style", "body", "header", "h1", "ul", "li"),
        *("main", "section", "h2", "div", "details", "summary", "pre"),
    }
    assert page.text.count("<script>alert(1)</script>{{body}}") >= 3


def test_the_page_is_for_phones_and_for_the_dark() -> None:
    text = to_html(document_of(header(), rich_path()))
    assert 'name="viewport"' in text
    assert "prefers-color-scheme: dark" in text
    assert "http" not in text.replace("http-equiv", "")
    page = Page(text)
    for part in ("Two files", "look at both files", "zwei: ü", "no route", "left"):
        assert part in page.text


def test_jsonl_is_a_session_file_with_every_branch(tmp_path: Path) -> None:
    log = SessionLog.create(None, header())
    log.append_many(conversation())
    log.branch_to(log.entries[0].id)
    log.append(entry(user("other way")))
    copy = tmp_path / "copy.jsonl"
    copy.write_text(to_jsonl(log), encoding="utf-8")
    again = SessionLog.open(copy, read_only=True)
    assert (again.header, again.entries) == (log.header, log.entries)
    assert again.warnings == ()
    assert [json.loads(line)["type"] for line in copy.read_text().split("\n")[:2]] == [
        "session",
        "message",
    ]


PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="
)


def test_images_are_part_of_the_page_if_they_are_nothing_else() -> None:
    shown = ImageContent(data=f"{PIXEL[:60]}\r\n{PIXEL[60:]}\n", mime_type="image/png")
    refused = [
        ImageContent(data=PIXEL, mime_type="image/svg+xml"),
        ImageContent(data=PIXEL, mime_type='image/png" onload="x'),
        ImageContent(data=PIXEL, mime_type="text/html"),
        ImageContent(data='"><script>', mime_type="image/png"),
    ]
    asked = UserMessage(content=(TextContent(text="see"), shown, *refused), timestamp=1)
    seen = result("c1").model_copy(update={"content": (shown,)})
    page = Page(to_html(document_of(header(), chain(entry(asked), entry(seen)))))
    assert page.addresses == [f"data:image/png;base64,{PIXEL}"] * 2
    assert page.text.count("[image, ") == len(refused)
    assert "script" not in page.tags
    assert "img-src data:" in to_html(document_of(header(), ()))


def test_a_fence_that_is_left_open_ends_with_its_message() -> None:
    for text, end in (
        ("```py\nx = 1", "x = 1\n```\n"),
        ("~~~~\n```\n", "```\n~~~~\n"),
        ("```\nx\n```", "x\n```\n\n## User"),
        ("```a `b` c", "```a `b` c\n\n## User"),
        ("````\n```", "```\n````\n"),
    ):
        written = to_markdown(document_of(header(), chain(entry(reply(text)), entry(user("next")))))
        assert end in written


def test_other_branches_are_mentioned_but_not_shown() -> None:
    log = SessionLog.create(None, header())
    log.append_many(conversation())
    first = log.entries[0].id
    assert "Not shown" not in export_text(log, MARKDOWN)
    for text in ("other way", "third way"):
        log.branch_to(first)
        log.append(entry(user(text)))
    for form in (MARKDOWN, HTML):
        text = export_text(log, form)
        assert "Not shown: 2 other branches with 7 messages" in text
        assert "other way" not in text
        assert "third way" in text


def test_the_title_of_a_call_tells_what_it_works_on() -> None:
    call = ToolCall(id="c", name="bash", arguments={"n": 1, "command": "ls -l\n\x1b[31m src"})
    asked = AssistantMessage(content=(call,), timestamp=1)
    assert "## Tool call: bash ls -l src\n" in to_markdown(
        document_of(header(), chain(entry(asked)))
    )


def test_a_session_without_a_name_is_called_by_its_first_words() -> None:
    assert to_markdown(document_of(header(), conversation())).startswith("# look at both files\n")
    assert to_markdown(document_of(header(), ())).startswith("# Session\n")


@pytest.mark.parametrize("example", sorted(EXAMPLES.glob("*.jsonl")), ids=lambda path: path.stem)
def test_an_export_in_the_session_format_reads_back_as_the_same_session(
    example: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "copy.jsonl"
    with SessionLog.open(example, read_only=True) as log:
        copy.write_text(to_jsonl(log), encoding="utf-8")
        with SessionLog.open(copy, read_only=True) as again:
            assert (again.header, again.entries) == (log.header, log.entries)
            assert again.warnings == ()
            assert to_jsonl(again) == to_jsonl(log)
