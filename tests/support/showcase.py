"""A task of real size: a model reads this program's own code, changes it, and compacts on the way.

The model's words are written in advance. The files, the tools, the session and the compaction
are real, so the pictures and figures made from it are those of the program.
"""

import re
import shutil
import subprocess
import sys
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path

from agent_tui.events import CompactionFinished
from agent_tui.features.tour.scripted import Reply, call
from agent_tui.messages import ToolCall, UserMessage
from agent_tui.providers.base import ModelRef, ModelRequest
from agent_tui.sessions.entries import Header, MessageEntry
from agent_tui.sessions.store import SessionStore
from tests.support.runtime import Stage, collect, only
from tests.support.shared_clones import run_git
from tests.ui.app_support import Gate, Ui, held, running_app

WINDOW = 128_000
"""Tokens; the window of many models in use."""

TASK = (
    "Check every place that writes a session file: is a line flushed before the screen shows it?\n"
    "Add a test for the lock. Never edit anything in agent_tui/sessions/importers. "
    "Use pytest fixtures, no classes."
)
MODEL = ModelRef("scripted/replay")

_READS = (
    ("I start with the log and the file below it.", ("log.py", "file/writer.py")),
    ("Who opens a log?", ("store.py", "file/disk.py", "file/chunks.py", "file/status.py")),
    ("The entries and how they are written.", ("entries.py", "format/codec.py")),
    ("What happens to a damaged line.", ("format/parse.py", "format/repair.py")),
    ("Forks and chains write headers, too.", ("lineage/chain.py", "lineage/joined.py")),
    ("The context is replayed from the same entries.", ("context.py", "replay/normalise.py")),
    ("Search and lists only read.", ("search/session_search.py", "search/word_index.py")),
    ("So do the lists.", ("listing.py", "lineage/message_tree.py")),
    ("Importers write through the same log; I only read them.", ("importers/builder.py",)),
    ("Two more of them.", ("importers/claude_code.py", "importers/codex.py")),
)
_CALLERS = (
    ("Now the callers. A turn appends before it emits.", ("turn/turn.py",)),
    ("Tool results take the same way.", ("turn/tool_calls.py", "turn/reply.py")),
    ("The conversation and the runtime.", ("conversation.py", "runtime.py")),
    ("Pins and compactions.", ("turn/pins.py", "compaction/compactor.py")),
    ("Files that go back are kept beside the session.", ("turn/file_keeper.py",)),
    ("The last writers: undo, forks, changes.", ("session/manager.py", "session/restoring.py")),
    ("Commands you type are written, too.", ("turn/user_command.py", "services.py")),
)
_TOOLS = (
    ("Tools return results; do any write?", ("base.py", "todo.py", "recall.py", "originals.py")),
    ("Background jobs end after a session closed.", ("jobs/table.py", "processes/keeper.py")),
)
_TEST = '''\
"""The lock of a session file."""

import shutil
from pathlib import Path

import pytest

from agent_tui.sessions.file.writer import SessionInUseError
from agent_tui.sessions.log import SessionLog


@pytest.fixture
def session(tmp_path: Path) -> Path:
    return Path(shutil.copy("sessions.example/1-tools.jsonl", tmp_path))


def test_a_session_has_one_writer(session: Path) -> None:
    with SessionLog.open(session), pytest.raises(SessionInUseError):
        SessionLog.open(session)
'''
_ANSWER = """\
Every write goes through `SessionLog.append`, and a turn emits an event only after the append \
returned:

| where | what it writes |
|---|---|
| `agent/turn/turn.py` | messages, replies, results |
| `agent/compaction/compactor.py` | compactions |
| `agent/session/manager.py` | names, branches, model changes |

The new test passes. I did not touch `agent_tui/sessions/importers`."""


def prepare(folder: Path) -> Stage:
    """A stage whose workspace is a copy of this program, with a `python` that can test it."""
    stage = Stage(folder, "agent-tui")
    root = Path(__file__).parents[2]
    leave_out = shutil.ignore_patterns("__pycache__", "*.svg")
    for name in ("agent_tui", "sessions.example"):
        shutil.copytree(root / name, stage.workspace / name, ignore=leave_out)
    _put_python(folder)
    return stage


def _put_python(folder: Path) -> None:
    """Put a `python` where commands find it: the one that runs this."""
    (folder / "bin").mkdir()
    python = folder / "bin" / "python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)


def replies() -> list[Reply]:
    """What the model says to `TASK`."""
    numbers = count()

    def tool(name: str, **arguments: object) -> ToolCall:
        return call(f"call-{next(numbers)}", name, **arguments)

    def reading(below: str, steps: Sequence[tuple[str, Sequence[str]]]) -> Iterator[Reply]:
        for text, names in steps:
            calls = tuple(tool("read", path=f"agent_tui/{below}/{name}") for name in names)
            yield Reply(text=text, tool_calls=calls)

    return [
        *reading("sessions", _READS),
        *reading("agent", _CALLERS),
        *reading("tools", _TOOLS),
        Reply(
            text="Every write is flushed first. The lock has no test in a file of its own: I add "
            "one, with a fixture and no class, as you asked.",
            tool_calls=(tool("write", path="tests/test_lock.py", content=_TEST),),
        ),
        Reply(
            text="Now I run it.",
            tool_calls=(tool("bash", command="python -m pytest -q tests/test_lock.py"),),
        ),
        Reply(text=_ANSWER),
    ]


@asynccontextmanager
async def showcase(folder: Path, size: tuple[int, int]) -> AsyncGenerator[Ui]:
    """The app before the task; the model waits where a picture is worth taking."""
    stage = prepare(folder)
    said = replies()
    stops = (len(_READS) // 2, len(_READS) + len(_CALLERS), len(said) - 3, len(said) - 2)
    script = [
        replace(reply, gate=Gate()) if number in stops else reply
        for number, reply in enumerate(said)
    ]
    runtime = stage.runtime(script, model=MODEL, window=WINDOW)
    async with running_app(folder, *script, stage=stage, runtime=runtime, size=size) as ui:
        yield ui


GOAL = (
    "/goal slug() also works for titles with accents, and is documented "
    '--check "python test_slug.py"'
)
_SLUG = """\
import re


def slug(title):
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")
"""
_SLUG_TEST = """\
from slug import slug

assert slug("Hello, World!") == "hello-world"
assert slug("Crème brûlée") == "creme-brulee", slug("Crème brûlée")
print("2 tests passed")
"""
_WITH_ACCENTS = """\
import re
import unicodedata


def slug(title):
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode()
"""


@asynccontextmanager
async def goal_showcase(folder: Path, size: tuple[int, int]) -> AsyncGenerator[Ui]:
    """The app before a goal with one check; the model waits where a picture is worth taking."""
    stage = Stage(folder)
    _put_python(folder)
    (stage.workspace / "slug.py").write_text(_SLUG)
    (stage.workspace / "test_slug.py").write_text(_SLUG_TEST)
    edits = [
        {"old": "import re\n\n\ndef slug(title):\n", "new": _WITH_ACCENTS},
        {"old": "title.lower()", "new": "plain.lower()"},
    ]
    documented = [
        {
            "old": "def slug(title):\n",
            "new": 'def slug(title):\n    """The title in lower-case ASCII, with hyphens."""\n',
        }
    ]
    script = [
        Reply(
            text="I read the function and its test.",
            tool_calls=(call("1", "read", path="slug.py"), call("2", "read", path="test_slug.py")),
        ),
        held("Accents are dropped like any other sign. I look at what the check says."),
        held(
            "The accent has to go, not the letter: NFKD splits them.",
            call("3", "edit", path="slug.py", edits=edits),
        ),
        held("slug() handles accents now."),
        Reply(text="VERDICT: not met\nMISSING:\n- slug.py: slug() has no docstring\nWEAKENED:\n"),
        held("A docstring is missing.", call("4", "edit", path="slug.py", edits=documented)),
        held("slug() is documented."),
        Reply(text="VERDICT: met"),
    ]
    runtime = stage.runtime(script, model=MODEL, window=WINDOW)
    async with running_app(folder, *script, stage=stage, runtime=runtime, size=size) as ui:
        yield ui


WHY_ASKED = "Simplify fetch.py. The 90 seconds look arbitrary: remove what nobody needs."
_FETCH = """\
import json
import urllib.request


def fetch(url):
    response = urllib.request.urlopen(url, timeout=10)
    text = response.read().decode()
    data = json.loads(text)
    return data
"""
_FETCH_TEST = """\
import fetch

assert fetch.fetch("data:,[1]") == [1]
print("1 test passed")
"""


@asynccontextmanager
async def why_showcase(folder: Path, size: tuple[int, int]) -> AsyncGenerator[Ui]:
    """The app in a project with an earlier session; the model asks why a line is there."""
    stage = Stage(folder)
    _put_python(folder)
    (stage.workspace / "fetch.py").write_text(_FETCH)
    (stage.workspace / "test_fetch.py").write_text(_FETCH_TEST)
    longer = [{"old": "timeout=10", "new": "timeout=90"}]
    shorter = [
        {
            "old": "    text = response.read().decode()\n    data = json.loads(text)\n"
            "    return data\n",
            "new": "    return json.load(response)\n",
        }
    ]
    test = call("t", "bash", command="python test_fetch.py")
    earlier = stage.runtime(
        [
            Reply(tool_calls=(call("r", "read", path="fetch.py"),)),
            Reply(
                text="The proxy takes up to a minute to wake, so 10 seconds are too short.",
                tool_calls=(call("e", "edit", path="fetch.py", edits=longer),),
            ),
            Reply(tool_calls=(test,)),
            Reply(text="fetch() waits 90 seconds now."),
        ],
        model=MODEL,
    )
    await collect(earlier.submit("Downloads fail behind the office proxy. Wait longer."))
    earlier.sessions.rename("Slow proxy")
    await earlier.aclose()
    script = [
        Reply(text="I read the file.", tool_calls=(call("1", "read", path="fetch.py"),)),
        held(
            "Before I remove the timeout, I ask why it is there.",
            call("2", "why", path="fetch.py", line=6),
        ),
        held(
            "You asked for it, for the office proxy: I keep it. The last three lines can be one.",
            call("3", "edit", path="fetch.py", edits=shorter),
            test,
        ),
        Reply(text="fetch() is shorter, and still waits 90 seconds for the proxy."),
    ]
    runtime = stage.runtime(script, model=MODEL, window=WINDOW)
    async with running_app(folder, *script, stage=stage, runtime=runtime, size=size) as ui:
        yield ui


_TALLY = """\
def total(prices):
    cents = [int(price * 100) for price in prices]
    return sum(cents) / 100
"""
_ASKED = "Invoices are off by a cent. Find out why and fix it."
QUESTION = "Why round() and not Decimal?"
PULL = "!agent-tui sessions pull"
LINE = "/why tally.py:2"


@asynccontextmanager
async def sharing_showcase(
    folder: Path, size: tuple[int, int], *, with_files: bool = True
) -> AsyncGenerator[Ui]:
    """The app in Bo's clone, after Ada has pushed the session in which she fixed a file."""
    remote, pushed = folder / "remote.git", folder / "ada"
    pushed.mkdir()
    ada, bo = Stage(pushed, "tally"), Stage(folder, "tally")
    run_git(folder, "init", "--quiet", "--bare", str(remote))
    for stage, name in ((ada, "Ada L"), (bo, "Bo")):
        run_git(stage.workspace, "init", "--quiet", "--initial-branch=main")
        run_git(stage.workspace, "config", "user.name", name)
        run_git(stage.workspace, "remote", "add", "origin", str(remote))
        _put_program(stage)
        (stage.workspace / "tally.py").write_text(_TALLY)
    await _fix_as_ada(ada)
    push = ("sessions", "push", "--public", "--all", *(["--with-files"] if with_files else ()))
    program = pushed / "bin" / "agent-tui"
    subprocess.run([program, *push], cwd=ada.workspace, check=True, capture_output=True)
    shutil.copy(ada.workspace / "tally.py", bo.workspace)
    answer = "Ada chose round(), as Decimal would change every caller."
    script = [Reply(text=answer)]
    runtime = bo.runtime(script, model=MODEL, window=WINDOW, mode="ask")
    async with running_app(folder, *script, stage=bo, runtime=runtime, size=size) as ui:
        yield ui


async def _fix_as_ada(stage: Stage) -> None:
    """The session that Ada pushes."""
    old, new = "int(price * 100)", "round(price * 100)"
    edits = [{"old": old, "new": new}]
    script = [
        Reply(text="I read it.", tool_calls=(call("1", "read", path="tally.py"),)),
        Reply(
            text="int() cuts off: 0.29 * 100 is 28.999. round() is enough here; Decimal would "
            "change every caller.",
            tool_calls=(call("2", "edit", path="tally.py", edits=edits),),
        ),
        Reply(text="Fixed: prices are rounded to cents."),
    ]
    runtime = stage.runtime(script, model=MODEL, window=WINDOW)
    await collect(runtime.submit(_ASKED))
    await runtime.aclose()


def _put_program(stage: Stage) -> None:
    """Put an `agent-tui` where commands find it, with the sessions of `stage`."""
    _put_python(stage.folder)
    program = stage.folder / "bin" / "agent-tui"
    settings = f"AGENT_TUI_HOME={stage.folder}/home AGENT_TUI_SESSION_DIR={stage.sessions}"
    program.write_text(f'#!/bin/sh\n{settings} exec "{sys.executable}" -m agent_tui "$@"\n')
    program.chmod(0o755)


MAKEFILE_TASK = "Add a Makefile that sets the project up."
MAKEFILE_CORRECTION = "Please use uv instead of pip."
_SETUP = "#!/bin/sh\npip install -r requirements.txt\n"
_MAKEFILE = "setup:\n\tpip install -r requirements.txt\n"


@asynccontextmanager
async def rules_showcase(folder: Path, size: tuple[int, int]) -> AsyncGenerator[Ui]:
    """The app before a correction that was made in an earlier session, too."""
    stage = Stage(folder)
    (stage.workspace / "AGENTS.md").write_text("# Rules\n\n- Type hints everywhere.\n")
    earlier = [
        Reply(tool_calls=(call("1", "write", path="setup.sh", content=_SETUP),)),
        Reply(text="setup.sh installs the requirements."),
        Reply(
            tool_calls=(call("2", "edit", path="setup.sh", old="pip install -r", new="uv sync #"),)
        ),
        Reply(text="It uses uv now."),
    ]
    before = stage.runtime(earlier, model=MODEL, window=WINDOW)
    await collect(before.submit("Write a setup script."))
    await collect(before.submit("use uv, not pip"))
    await before.aclose()
    script = [
        Reply(
            text="A target for it:",
            tool_calls=(call("3", "write", path="Makefile", content=_MAKEFILE),),
        ),
        Reply(text="`make setup` installs the requirements."),
        Reply(
            tool_calls=(
                call("4", "edit", path="Makefile", old="pip install -r", new="uv pip sync"),
            )
        ),
        Reply(text="`make setup` uses uv now."),
    ]
    runtime = stage.runtime(script, model=MODEL, window=WINDOW)
    async with running_app(folder, *script, stage=stage, runtime=runtime, size=size) as ui:
        yield ui


HANDED_OVER = "Have a helper add a test for the cart, while we look at the prices."


@asynccontextmanager
async def worktrees_showcase(folder: Path, size: tuple[int, int]) -> AsyncGenerator[Ui]:
    """The app in a repository with two sessions in worktrees, one of which asks a question."""
    stage = Stage(folder.resolve())
    top = stage.workspace
    (top / "cart.py").write_text("def total(items):\n    return sum(items)\n")
    identity = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    for words in (("init", "-q", "-b", "main"), ("add", "."), ("commit", "-qm", "The cart")):
        subprocess.run(["git", *identity, *words], cwd=top, check=True)
    worktrees = top.with_name("workspace.worktrees")
    store = SessionStore(stage.sessions)
    logs = [
        store.create(Header(cwd=str(worktrees / name), provider="scripted", model_id="replay"))
        for name in ("fix-login", "faster-search")
    ]
    asked = "Log users in with their e-mail, too", "Search takes 3 s with 10,000 items"
    for log, text in zip(logs, asked, strict=True):
        log.append(MessageEntry(message=UserMessage(content=text)))
    logs[0].note_state("waiting")
    logs[1].note_state("working")

    def answer(request: ModelRequest) -> Reply:
        said = sum(message.role == "assistant" for message in request.messages)
        if "You do one task" in request.system:
            written = call("h1", "write", path="test_cart.py", content=_CART_TEST)
            return Reply("I added two tests.") if said else Reply(tool_calls=(written,))
        if said == 0:
            return Reply(tool_calls=(call("1", "delegate", task="Add a test for cart.py"),))
        branch = next(re.finditer(r"bring=(\S+)", str(request.messages)), None)
        if said == 1 and branch is not None:
            return Reply(tool_calls=(call("2", "delegate", bring=branch[1]),))
        return Reply("The helper's test is here.")

    runtime = stage.runtime(answer, model=MODEL, window=WINDOW, writing_helpers=True, mode="ask")
    runtime.services.folders_elsewhere = lambda _cwd: (worktrees,)
    try:
        async with running_app(folder, stage=stage, runtime=runtime, size=size) as ui:
            yield ui
    finally:
        for log in logs:
            log.close()


_CART_TEST = """\
from cart import total


def test_an_empty_cart_costs_nothing():
    assert total([]) == 0


def test_prices_add_up():
    assert total([2, 3]) == 5
"""


async def compacted_tokens(folder: Path) -> tuple[int, int]:
    """Do the task without a screen; returns the context's tokens before and after compacting."""
    runtime = prepare(folder).runtime(replies(), model=MODEL, window=WINDOW)
    events = await collect(runtime.submit(TASK))
    done = only(events, CompactionFinished)
    sent = runtime.conversation.context().messages
    await runtime.aclose()
    assert any(all(line in str(message) for line in TASK.splitlines()) for message in sent)
    return done.tokens_before, done.tokens_after
