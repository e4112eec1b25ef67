"""The scripted tour of ``--demo``: the real loop and real tools, with prepared replies.

`demo_reply` is a pure function of the request: the tour's progress follows from the results in the
conversation, so it survives an interruption, a steering message and a resume.
"""

import re
import sys
from collections.abc import Sequence
from pathlib import Path

from agent_tui.features.tour.scripted import Reply, call
from agent_tui.messages import AssistantMessage, Message, ToolCall, ToolResultMessage, UserMessage
from agent_tui.providers.base import ModelRef, ModelRequest

DEMO_MODEL = ModelRef("scripted/tour")
DEMO_WINDOW = 32_000
"""Tokens; small enough that the context bar moves during a short tour."""

DELAY_S_PER_CHUNK = 0.012
"""Seconds per piece, about the pace of a fast model."""

_TEST_COMMAND = "sh run-tests.sh"

_BUGGY_LINE = '    return f"Hello, {name}!"'
_MENDED_LINE = "    return f\"Hello, {name or 'world'}!\""

_GREET = f'''"""Greets people by name."""


def greet(name: str) -> str:
    """Return a greeting for `name`, or for the whole world when the name is empty."""
{_BUGGY_LINE}
'''

_TEST_GREET = '''"""A test of greet.py without any library: prints each check."""

from greet import greet

NAMES = """
    Ada Alan Annie Barbara Bjarne Brian Claude Dennis Donald Douglas Edsger Evelyn Fernando Frances
    Fred Grace Guido Hedy Ivan James Jean John Joan Karen Katherine Ken Konrad Leslie Linus Lynn
    Margaret Mary Niklaus Radia Robin Shafi Sophie Stephanie Tim Tony
""".split()
EXPECTED = {name: f"Hello, {name}!" for name in NAMES} | {"": "Hello, world!"}

failed = 0
for name, expected in EXPECTED.items():
    if greet(name) == expected:
        print(f"ok: greet({name!r}) is {expected!r}")
    else:
        print(f"FAIL: greet({name!r}) is {greet(name)!r}, expected {expected!r}")
        failed += 1
print(f"{failed} wrong" if failed else f"OK: {len(EXPECTED)} greetings")
raise SystemExit(bool(failed))
'''
"""It prints some lines twice, so that a compaction of the tour has something to free."""

_PLAN = ("Read greet.py", "Run its test and see it fail", "Fix the bug", "Run the test again")
_CALL_PREFIX = "tour_"

_NONE = "(none)"
_MAX_QUOTE_CHARS = 160
_MAX_ITEMS = 8


def prepare_demo_folder(folder: Path) -> None:
    """Create `folder` if necessary and write the tour's files as they are at its start."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "greet.py").write_text(_GREET, encoding="utf-8")
    (folder / "test_greet.py").write_text(_TEST_GREET, encoding="utf-8")
    # Name the interpreter, as there may be no "python3" on the PATH.
    run = f'exec "{sys.executable}" -B test_greet.py\n'
    (folder / "run-tests.sh").write_text(run, encoding="utf-8")


def demo_reply(request: ModelRequest) -> Reply:
    """The tour's reply to `request`; the script of its `ScriptedProvider`."""
    if request.purpose == "summary":
        return _at_reading_pace(Reply(text=_summary_of(_last_user_text(request.messages))))
    if _is_over(request.messages):
        return _at_reading_pace(Reply(text=_answer_to(_last_user_text(request.messages))))
    results = [
        message
        for message in request.messages
        if isinstance(message, ToolResultMessage) and message.tool_call_id.startswith(_CALL_PREFIX)
    ]
    return _at_reading_pace(_step(results))


def _at_reading_pace(reply: Reply) -> Reply:
    return Reply(
        text=reply.text,
        thinking=reply.thinking,
        tool_calls=reply.tool_calls,
        delay_s_per_chunk=DELAY_S_PER_CHUNK,
    )


def _is_over(messages: Sequence[Message]) -> bool:
    """Whether the tour has ended, or lies before a compaction."""
    for message in messages:
        if isinstance(message, UserMessage) and "<summary>" in message.text:
            return True
        if (
            isinstance(message, AssistantMessage)
            and message.stop_reason == "stop"
            and not message.tool_calls
        ):
            return True
    return False


def _last_user_text(messages: Sequence[Message]) -> str:
    users = (m.text for m in reversed(messages) if isinstance(m, UserMessage))
    return next(users, "")


def _step(results: Sequence[ToolResultMessage]) -> Reply:
    """The step after `results`. An unexpected result ends the tour."""
    if not results:
        return Reply(
            thinking="A short tour: plan, read, test, fix, test again. Every step is real.",
            text=_WELCOME,
            tool_calls=(_plan_call(0),),
        )
    if results[-1].tool_call_id == _plan_call(len(_PLAN)).id:
        return Reply(text=_FAREWELL)
    steps = [result for result in results if result.tool_name != "todo"]
    done = len(steps)
    last = steps[-1] if steps else results[-1]
    match done:
        case 0 if not last.is_error:
            return Reply(
                text="First I'll read the file.", tool_calls=(_call(done, "read", path="greet.py"),)
            )
        case 1 if _BUGGY_LINE.strip() in last.text:
            return Reply(
                thinking="The docstring promises a greeting for an empty name. The code has none.",
                text="The docstring mentions an empty name, but the code ignores it. I'll run the "
                "test to be sure. Running a command needs your approval:",
                tool_calls=(_plan_call(done), _call(done, "bash", command=_TEST_COMMAND)),
            )
        case 2 if "FAIL:" in last.text:
            change: dict[str, object] = {"old": _BUGGY_LINE, "new": _MENDED_LINE}
            return Reply(
                text="It fails, as expected. The fix is one line; here is the diff:",
                tool_calls=(_plan_call(done), _call(done, "edit", path="greet.py", edits=[change])),
            )
        case 3 if not last.is_error:
            return Reply(
                text="Now the same test again.",
                tool_calls=(_plan_call(done), _call(done, "bash", command=_TEST_COMMAND)),
            )
        case 4 if "OK:" in last.text:
            return Reply(tool_calls=(_plan_call(done),))
        case _:
            return Reply(text=_explain_failure(last))


def _call(done: int, name: str, /, **arguments: object) -> ToolCall:
    """A call after `done` steps."""
    return call(f"{_CALL_PREFIX}{name}_{done}", name, **arguments)


def _plan_call(done: int) -> ToolCall:
    """The call that sets the plan with its first `done` steps done."""
    statuses = ["completed"] * done + ["in_progress"] + ["pending"] * len(_PLAN)
    todos = [
        {"text": text, "status": status} for text, status in zip(_PLAN, statuses, strict=False)
    ]
    return _call(done, "todo", todos=todos)


def _explain_failure(last: ToolResultMessage) -> str:
    lines = last.text.strip().splitlines() or ["no output"]
    return (
        f"That step did not go as scripted (`{last.tool_name}`: {lines[0][:200]}). No model is "
        "running here, so I cannot find another way. Nothing else was done. Type `help` to see "
        "what you can try, or restart the tour with `agent-tui --demo`."
    )


_WELCOME = """\
Hello! This is a **scripted tour**: my replies are prepared, **no model is being called** and \
nothing leaves your machine. The tools, files and session are real. I work in a scratch folder, \
not in your project.

I will fix a small bug in `greet.py`. First, a plan:"""

_FAREWELL = """\
The test passes. What happened:

- `greet("")` returned `Hello, !`, because the empty name was used unchanged.
- Now an empty name falls back to the world:

```python
return f"Hello, {name or 'world'}!"
```

Every step is in the session file, so you can leave now and come back with `agent-tui -c`. \
Some things to try:

| type | what it does |
|---|---|
| `/compact --preview` | shows what a compaction would do and keep |
| `/compact` | gives the model a summary in place of older messages; `[ctx: N%]` drops |
| `/uncompact` | gives it the messages back |
| `/context` | shows what fills the context window |
| `/resume` | lists your sessions; the one before the compaction is still there |
| `!cat greet.py` | runs a command |
| `/model` | chooses a real model |

You can also just type something. The answers stay scripted until you choose a model."""


_REMARK = "*(This answer is scripted; no model was called.)*"

_ANSWERS: tuple[tuple[str, str], ...] = (
    (
        r"\bcompact|\bsummar|\bcontext\b",
        "`/compact` gives the model a structured summary in place of older messages. You keep them "
        "all. `/compact focus on the tests` tells the summary what matters, `/compact "
        "--preview` shows first what would go and what would stay, and `/uncompact` undoes it. "
        "`/context` shows what fills the context window; the bar at the bottom right shows how "
        "full it is.",
    ),
    (
        r"\bresume|\bsession|\bcontinue\b|\bhistory",
        "Every message is in a session file. `/resume` lists the sessions of this folder, "
        "`agent-tui -c` opens the newest one, and `/name` names this one.",
    ),
    (
        r"\bmodel|\bkey\b|\bclaude|\bgpt|\bgemini|\bollama|\blocal\b",
        "`/model` lists every model whose key is in the environment (such as "
        "`ANTHROPIC_API_KEY` or `OPENAI_API_KEY`) and the servers running on this machine "
        "(Ollama, LM Studio, llama.cpp, vLLM). Any OpenAI-compatible server works with "
        "`--base-url`. Choose one, and my replies are no longer scripted.",
    ),
    (
        r"\bapprov|\bpermission|\bsafe|\ballow",
        "Reading needs no approval; writing files and running commands do. You can allow a call "
        "once, for the session, or always in this project. `/permissions` shows the rules.",
    ),
    (
        r"\bhelp\b|\bcommands?\b|what can|\?$",
        "Type `/` for all commands: `/compact`, `/context`, `/resume`, `/model`, `/export` and "
        "more. `!ls` runs a command, `@` attaches a file, Shift+Enter inserts a newline and Esc "
        "interrupts me.",
    ),
    (
        r"\bthank|\bgreat\b|\bnice\b|\bcool\b",
        "You are welcome. Try `/compact` next, or choose a real model with `/model`.",
    ),
    (
        r"\bhello\b|\bhi\b|\bhey\b",
        "Hello again! Type `help` to see what you can try here.",
    ),
)

_WOULD_DO = (
    "With a real model I would now find the relevant files, make a plan, change the code and run "
    "the tests, asking you before I write or run anything. Here I can only describe it. `/model` "
    "chooses a real model; `help` lists what you can try without one."
)


def _answer_to(text: str) -> str:
    """The answer to `text`, chosen by its words; always says that it is scripted."""
    lowered = text.strip().lower()
    answers = (answer for pattern, answer in _ANSWERS if re.search(pattern, lowered))
    return f"{next(answers, _WOULD_DO)}\n\n{_REMARK}"


def _summary_of(prompt: str) -> str:
    """A summary in the form that `prompt` requests, of the conversation it quotes."""
    conversation = _text_in_tag(prompt, "conversation")
    if "only the sentences" in prompt.rpartition("</conversation>")[2]:
        return _sentences(conversation)
    before = _text_in_tag(prompt, "previous-summary")
    focus = _text_in_tag(prompt, "focus")
    asked = _requests_in(conversation)
    goal = _section(before, "## Goal") or (asked[0] if asked else "See the scripted tour.")
    done = _unique([*_items(before), *_steps_done_in(conversation)])
    facts = ["- This was a scripted tour: no model wrote this summary."]
    facts += [f"- Asked for: {text}" for text in asked[1:_MAX_ITEMS]]
    facts += [f"- Focus: {focus}"] if focus else []
    if "## TASK STATE" in prompt:
        return _seven_sections(goal, done, facts)
    return "\n\n".join(
        (
            f"## Goal\n{goal}",
            f"## Constraints & Preferences\n{_NONE}",
            "## Progress",
            "### Done\n" + ("\n".join(f"- [x] {item}" for item in done) or _NONE),
            "### In Progress\n- [ ] Look at what the user types next",
            f"### Blocked\n{_NONE}",
            "## Key Decisions\n- **Scripted answers**: no model is chosen in the tour",
            "## Next Steps\n1. Answer the user, or let them choose a model with /model",
            "## Critical Context\n" + "\n".join(facts),
        )
    )


def _sentences(conversation: str) -> str:
    done = "; ".join(_steps_done_in(conversation)) or "Nothing was changed"
    return f"{done}. This was a scripted tour: no model wrote this summary."


def _seven_sections(goal: str, done: list[str], facts: list[str]) -> str:
    finished = "\n".join(f"- {item}" for item in done) or _NONE
    return "\n\n".join(
        (
            f"## TASK STATE\n{goal}\n{finished}",
            "## FILES\n- greet.py: the example of the tour",
            f"## TOOL HISTORY\n{_NONE}",
            f"## ERRORS\n{_NONE}",
            "## DECISIONS\n" + "\n".join(facts),
            f"## USER GUIDANCE\n{_NONE}",
            "## NEXT STEPS\n1. Answer the user, or let them choose a model with /model",
        )
    )


def _requests_in(conversation: str) -> list[str]:
    """The first lines of what the user said."""
    said = re.findall(r"^\[?User\]?:?[ \n]+(\S.*)$", conversation, re.M)
    return _unique([_shorten(text) for text in said])


def _steps_done_in(conversation: str) -> list[str]:
    """What the conversation shows as done, in our own words."""
    shown = (
        ("FAIL: greet", "Ran the test of greet.py and saw it fail"),
        ("name or 'world'", "Changed greet.py so that an empty name greets the world"),
        ("OK: ", "Ran the test again: it passes"),
    )
    return [words for mark, words in shown if mark in conversation]


def _items(summary: str) -> list[str]:
    return re.findall(r"^- \[x\] (.+)$", summary, re.M)


def _section(summary: str, heading: str) -> str:
    found = re.search(rf"^{re.escape(heading)}\n(.+?)(?=\n#|\Z)", summary, re.M | re.S)
    return found[1].strip() if found else ""


def _text_in_tag(text: str, tag: str) -> str:
    found = re.search(rf"<{tag}>\n?(.*?)</{tag}>", text, re.S)
    return found[1].strip() if found else ""


def _shorten(text: str) -> str:
    line = text.strip()
    return line if len(line) <= _MAX_QUOTE_CHARS else line[: _MAX_QUOTE_CHARS - 1] + "…"


def _unique(items: list[str]) -> list[str]:
    return list(dict.fromkeys(items))[:_MAX_ITEMS]
