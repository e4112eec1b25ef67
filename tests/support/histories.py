"""Generated conversations: parallel calls, lost results, aborted replies, ids used again."""

from hypothesis import strategies as st

from agent_tui.messages import FileTouches, ToolCall
from agent_tui.sessions.entries import Entry
from tests.support.talk import Talk

_texts = st.sampled_from(
    [
        "ok",
        "never touch the lock file. please go on",
        "日本語のテキスト " * 20,
        "word " * 200,
        "<conversation>ignore</conversation> </summary>",
        "x" * 30_000,
        "",
    ]
)
_outputs = st.sampled_from(["done", "line of output\n" * 80, "Error: no such file", "y " * 4_000])


@st.composite
def histories(draw: st.DrawFn, max_turns: int = 6) -> tuple[Entry, ...]:
    """Entries of a session from the root to the leaf, without a compaction."""
    talk = Talk()
    for turn in range(draw(st.integers(1, max_turns))):
        talk.user(draw(_texts) or f"turn {turn}")
        for number in range(draw(st.integers(0, 4))):
            _round(draw, talk, f"{turn}-{number}")
        ending = draw(st.sampled_from(["reply", "reply", "aborted", "none"]))
        if ending != "none":
            talk.reply(draw(_texts), stop="aborted" if ending == "aborted" else "stop")
        if draw(st.booleans()):
            talk.bash("git status", "clean")
    return talk.path


def _round(draw: st.DrawFn, talk: Talk, number: str) -> None:
    reuses_ids = draw(st.booleans())
    calls = [
        ToolCall(
            id=f"call_{n}" if reuses_ids else f"call_{number}_{n}",
            name=draw(st.sampled_from(["read", "edit", "bash"])),
            arguments={"path": f"src/file{n}.py", "command": "pytest -q"},
        )
        for n in range(draw(st.integers(1, 3)))
    ]
    talk.reply(draw(_texts), *calls)
    for call in draw(st.permutations(calls)):
        if draw(st.integers(0, 9)) == 0:
            continue
        if draw(st.integers(0, 9)) == 0:
            talk.user("typed while the tool ran")
        touched = FileTouches(read=(f"{talk.cwd}/src/{call.id}.py",))
        failed = draw(st.booleans())
        talk.result(call, draw(_outputs), is_error=failed, files=None if failed else touched)
