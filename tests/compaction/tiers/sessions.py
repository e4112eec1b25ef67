"""Generated sessions with everything that tiers have to cope with."""

from hypothesis import strategies as st

from agent_tui.config import CompactionSettings
from agent_tui.messages import (
    AssistantMessage,
    FileTouches,
    ImageContent,
    JsonObject,
    StopReason,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolDetails,
    ToolResultMessage,
    UserMessage,
)
from agent_tui.sessions.entries import (
    ContextEditEntry,
    CustomMessageEntry,
    Entry,
    MessageEntry,
)
from tests.support.talk import MODEL, Talk

SMALL = CompactionSettings(keep_recent_tokens=300, protected_messages=3, max_output_tokens=600)
"""Settings under which short sessions already have something to give."""

IMAGE = ImageContent(data="aGVsbG8=", mime_type="image/png")

_texts = st.sampled_from(
    [
        "ok",
        "",
        "Never touch the lock file. Please go on.",
        "日本語のテキスト" * 100,
        "word " * 700,
        "x" * 6_000,
        "café 🎉\n" * 300,
        "lone \ud800 surrogate " * 40,
    ]
)
_files = ["src/a.py", "src/b.py", "docs/read me.md"]
_file_text = "".join(f"def function_{n}(value):\n    return value + {n}\n" for n in range(60))
_calls: st.SearchStrategy[tuple[str, JsonObject]] = st.one_of(
    st.builds(lambda p: ("read", {"path": p}), st.sampled_from(_files)),
    st.builds(
        lambda p, first, count: ("Read", {"file_path": p, "offset": first, "limit": count}),
        st.sampled_from(_files),
        st.integers(0, 30),
        st.integers(1, 60),
    ),
    st.builds(lambda t: ("write", {"path": "src/a.py", "content": t}), _texts),
    st.builds(lambda t: ("edit", {"path": "a", "edits": [{"old": t, "new": t * 2}]}), _texts),
    st.just(("bash", {"command": "pytest -q"})),
    st.just(("todo", {"todos": [{"text": "step", "status": "in_progress"}] * 60})),
    st.just(("str_replace_editor", {"command": "view", "path": "src/a.py", "view_range": [1, 9]})),
)
_ends: st.SearchStrategy[StopReason] = st.sampled_from(["stop", "aborted", "error"])
_outputs = st.one_of(
    _texts,
    st.just(_file_text),
    st.just("line of output\n" * 700),
    st.just("Traceback (most recent call last):\n" + "  File x\n" * 200 + "ValueError: bad"),
)


@st.composite
def rich_sessions(draw: st.DrawFn, max_turns: int = 4) -> tuple[Entry, ...]:
    """Entries from the root to the leaf: images, thinking, parallel calls, lost results ..."""
    talk = Talk()
    for turn in range(draw(st.integers(1, max_turns))):
        _said(draw, talk, turn)
        for number in range(draw(st.integers(0, 4))):
            _round(draw, talk, f"{turn}-{number}")
        if draw(st.booleans()):
            talk.reply(draw(_texts), stop=draw(_ends))
    if draw(st.integers(0, 4)) == 0:
        first_kept = draw(st.sampled_from(talk.entries)).id
        talk.compaction("What came before.", first_kept)
        talk.user("and now?")
        _round(draw, talk, "last")
    if draw(st.integers(0, 4)) == 0:
        target = draw(st.sampled_from(talk.entries)).id
        edit = ContextEditEntry(
            id="earlier", target_id=target, replacement=draw(st.sampled_from(["cut", None]))
        )
        return (*talk.path, edit)
    return talk.path


def _said(draw: st.DrawFn, talk: Talk, turn: int) -> None:
    kind = draw(st.integers(0, 9))
    if kind == 0:
        entry = CustomMessageEntry(content=draw(_texts), display=draw(st.booleans()))
        talk.entries.append(entry.model_copy(update={"id": f"custom{turn}"}))
    if kind == 1:
        talk.bash("make", draw(_outputs), exit_code=draw(st.integers(0, 2)))
    if kind == 2:
        content = (TextContent(text=draw(_texts)), IMAGE)
        talk.message(lambda ms: UserMessage(content=content, timestamp=ms))
    if kind == 3:
        talk.reply("Let me look.\n\n```bash\ncat src/a.py\n```")
        talk.user(f"<returncode>0</returncode>\n<output>\n{draw(_outputs)}\n</output>")
    talk.user(draw(_texts) or f"turn {turn}")


def _round(draw: st.DrawFn, talk: Talk, number: str) -> None:
    reuses_ids = draw(st.booleans())
    calls = [
        ToolCall(
            id=f"call_{n}" if reuses_ids else f"call_{number}_{n}", name=name, arguments=arguments
        )
        for n, (name, arguments) in enumerate(draw(st.lists(_calls, min_size=1, max_size=3)))
    ]
    _reply(draw, talk, calls)
    for call in draw(st.permutations(calls)):
        if draw(st.integers(0, 9)) == 0:
            continue
        if draw(st.integers(0, 9)) == 0:
            talk.user("typed while the tool ran")
        _result(draw, talk, call)


def _reply(draw: st.DrawFn, talk: Talk, calls: list[ToolCall]) -> None:
    signature = draw(st.sampled_from([None, "signed"]))
    thought = ThinkingContent(thinking=draw(_texts), signature=signature)
    text = TextContent(text=draw(_texts))
    parts = draw(
        st.sampled_from([(thought, text, *calls), (*calls,), (calls[0], text, *calls[1:])])
    )
    talk.message(
        lambda ms: AssistantMessage(
            content=parts, provider="scripted", model=MODEL, stop_reason="toolUse", timestamp=ms
        )
    )


def _result(draw: st.DrawFn, talk: Talk, call: ToolCall) -> MessageEntry:
    text = TextContent(text=draw(_outputs))
    content = draw(st.sampled_from([(text,), (text, text), (text, IMAGE), (), (IMAGE,)]))
    path = call.arguments.get("path")
    touched = FileTouches(read=(f"/project/{path}",)) if call.name == "read" else FileTouches()
    details = ToolDetails(summary="9 lines", files=touched).model_dump(mode="json", by_alias=True)
    is_ours = draw(st.booleans())
    is_error = draw(st.booleans())
    return talk.message(
        lambda ms: ToolResultMessage(
            tool_call_id=call.id,
            tool_name=call.name,
            content=content,
            is_error=is_error,
            details=details if is_ours else None,
            timestamp=ms,
        )
    )
