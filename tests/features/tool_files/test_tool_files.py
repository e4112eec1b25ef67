"""Files with tools: loaded once approved, for exactly the approved text, and never elsewhere."""

from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import TypeVar, cast

import pytest

from agent_tui.agent.runtime import AgentRuntime
from agent_tui.commands.core.checks import CheckContext
from agent_tui.commands.core.front import Front, Level, Question, UnansweredFront
from agent_tui.commands.trust import ask_about_started, program_question
from agent_tui.config import PermissionSettings
from agent_tui.errors import ConfigError
from agent_tui.events import AgentEvent
from agent_tui.features.acp.front import AcpFront
from agent_tui.features.print.printer import HeadlessFront
from agent_tui.features.tool_files.check import check_tool_files
from agent_tui.features.tool_files.command import reload
from agent_tui.features.tool_files.folder import (
    Approvals,
    FileText,
    UnusableFile,
    find_files,
    own_approvals,
)
from agent_tui.features.tool_files.library import ToolFiles
from agent_tui.features.tool_files.loading import Taken, load_file
from agent_tui.features.tool_files.part import ToolFilesPart
from agent_tui.features.tour.scripted import Reply
from agent_tui.messages import ToolCall
from agent_tui.paths import user_config_dir
from agent_tui.tools.tool_servers import ToolServers
from tests.support.rows import each_row
from tests.support.runtime import Stage, collect

AnswerT = TypeVar("AnswerT")
WEATHER = '''\
from agent_tui import command, tool


@tool
def weather(place: str, days: int = 1) -> str:
    """Say what the weather is."""
    return f"rain in {place} for {days} days"


@tool
async def tide(port: str) -> str:
    """Say how high the water is."""
    raise ValueError(f"no water in {port}")


@command("[place]")
async def forecast(front, argument):
    """Say what the weather will be."""
    front.say(f"more rain in {argument}")
'''


class Place:
    """A folder of files and the answers about them, without a conversation."""

    def __init__(self, root: Path) -> None:
        self.folder = root / "config" / "tools"
        self.folder.mkdir(parents=True)
        self.work = root / "work"
        self.work.mkdir()
        taken = Taken({"read"}, {"compact"})
        self.files = ToolFiles(self.folder, Approvals(root / "answers"), lambda: taken)

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.write_text(text, "utf-8")
        return path

    def look(self) -> tuple[str, ...]:
        self.files.look((self.work,))
        return self.files.lines

    def approve(self, *, is_allowed: bool = True) -> tuple[str, ...]:
        self.look()
        for one in self.files.files:
            self.files.approvals.keep(one.file, is_allowed=is_allowed)
        return self.look()

    @property
    def tools(self) -> list[str]:
        box = self.files.toolbox
        return [] if box is None else [spec.name for spec in box.specs]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_an_approved_file_is_loaded_until_it_changes_or_goes(place: Place):
    path = place.write("weather.py", WEATHER)
    assert "you have not approved it" in place.look()[0]
    assert place.tools == []
    assert place.approve() == ("weather.py: tool weather, tool tide, /forecast",)
    assert place.tools == ["weather", "tide"]
    assert [one.name for one in place.files.commands] == ["forecast"]
    place.write("weather.py", WEATHER.replace("rain", "sun"))
    assert "you have not approved it" in place.look()[0]
    assert (place.tools, place.files.commands) == ([], ())
    before = place.files.approvals.approved_before(path)
    assert before is not None
    assert before.text == WEATHER
    place.write("weather.py", WEATHER)
    assert place.look()
    assert place.tools == ["weather", "tide"]
    path.unlink()
    assert place.look() == ()
    assert place.tools == []


def test_a_declined_file_stays_unloaded_and_is_named(place: Place):
    place.write("weather.py", WEATHER)
    assert "you declined it" in place.approve(is_allowed=False)[0]
    assert place.tools == []


@each_row(
    ("text", "why"),
    [
        ("x = (\n", "line 1: SyntaxError: '(' was never closed."),
        ("\n\nimport nothing_of_this_name\n", "line 3: ModuleNotFoundError"),
        ("raise SystemExit(3)", "line 1: SystemExit: 3."),
        ("from agent_tui import tool\n@tool\ndef f(x):\n  'd'\n", "f(x) needs a type"),
        ("from agent_tui import tool\n@tool\ndef f() -> str:\n  return ''\n", "needs a docstring"),
        ("x = 1\n", "has no function with @tool or @command."),
        ("from agent_tui import tool\n@tool\ndef read():\n  'd'\n", "the name read is taken."),
        (
            "from agent_tui import hook\n@hook('Stop')\ndef f(facts): ...\n",
            "@hook works in plugins only.",
        ),
    ],
)
def test_a_mistake_names_file_and_line_and_leaves_the_rest(place: Place, text: str, why: str):
    path = place.write("bad.py", text)
    place.write("weather.py", WEATHER)
    first, last = place.approve()
    assert first.startswith(f"{path}: ")
    assert why in first
    assert last == "weather.py: tool weather, tool tide, /forecast"


def test_of_two_files_with_one_name_the_first_has_it(place: Place):
    place.write("a.py", WEATHER)
    place.write("b.py", WEATHER)
    assert [line for line in place.approve() if "b.py" in line] == [
        f"{place.folder / 'b.py'}: the name {name} is taken."
        for name in ("weather", "tide", "forecast")
    ]


def test_a_file_that_does_not_end_is_left_alone(tmp_path: Path):
    done = tmp_path / "done"
    text = f"import pathlib, time\nwhile not pathlib.Path({str(done)!r}).exists(): time.sleep(0.01)"
    loaded = load_file(FileText(tmp_path / "wait.py", text), Taken(), (), most_s=0)
    done.touch()
    assert loaded.problems == ("did not finish within 0 seconds",)


@pytest.mark.parametrize("kind", ["link", "linked folder", "workspace", "open", "binary", "long"])
def test_what_others_could_write_and_what_nobody_reads_is_refused(tmp_path: Path, kind: str):
    place = Place(tmp_path)
    folder, writable = place.folder, place.work
    path = place.write("weather.py", WEATHER)
    match kind:
        case "link":
            path.rename(place.work / "weather.py")
            path.symlink_to(place.work / "weather.py")
        case "linked folder":
            folder = tmp_path / "tools"
            folder.symlink_to(place.folder)
        case "workspace":
            writable = tmp_path
        case "open":
            path.chmod(0o646)
        case "binary":
            path.write_bytes(b"\xff\xfe")
        case _:
            path.write_text("#" * 65_000)
    (found,) = find_files(folder, (writable,))
    assert isinstance(found, UnusableFile)
    assert found.why


def test_hidden_files_and_a_missing_folder_are_nothing(place: Place, tmp_path: Path):
    place.write("_draft.py", WEATHER)
    place.write(".a.py", WEATHER)
    place.write("notes.md", "x")
    assert place.look() == ()
    assert list(find_files(tmp_path / "none", ())) == []


# In a conversation


def approve_all(runtime: AgentRuntime) -> None:
    part = runtime.part(ToolFilesPart)
    part.toolbox()
    for one in part.files.files:
        part.files.approvals.keep(one.file, is_allowed=True)


def call(name: str, **arguments: str) -> Reply:
    return Reply(tool_calls=(ToolCall(id="c1", name=name, arguments={**arguments}),))


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    monkeypatch.setenv("AGENT_TUI_HOME", str(tmp_path / "home"))
    stage = Stage(tmp_path)
    (stage.config / "tools").mkdir(parents=True)
    (stage.config / "tools" / "weather.py").write_text(WEATHER)
    return stage


async def test_the_model_calls_a_tool_of_an_approved_file(stage: Stage):
    script = [call("weather", place="Oslo"), call("tide", port="Bern"), Reply(text="Done.")]
    runtime = stage.runtime(script, permissions=PermissionSettings(allow=("tool(*)",)))
    approve_all(runtime)
    await runtime.part(ToolFilesPart).look()
    await collect(runtime.submit("What is the weather?"))
    first, _, last = stage.model.requests
    assert [tool.name for tool in first.tools][-2:] == ["weather", "tide"]
    said = [message.text for message in last.messages]
    assert "rain in Oslo for 1 days" in said
    assert "tide failed: ValueError: no water in Bern" in said


async def test_each_call_asks_whatever_the_mode(stage: Stage):
    runtime = stage.runtime(
        [call("weather", place="Oslo"), Reply(text="No.")], is_interactive=False
    )
    approve_all(runtime)
    await runtime.part(ToolFilesPart).look()
    await collect(runtime.submit("What is the weather?"))
    assert "rain" not in stage.model.requests[-1].messages[-1].text


async def test_without_an_approval_nothing_is_loaded_and_the_user_is_told_once(stage: Stage):
    runtime = stage.runtime([Reply(text="Hi."), Reply(text="Hi.")], is_interactive=False)
    events = [*await collect(runtime.submit("a")), *await collect(runtime.submit("b"))]
    told = [text for event in events if "weather.py" in (text := getattr(event, "text", ""))]
    assert told == [
        "weather.py is not loaded: you have not approved it. /reload in a terminal asks."
    ]
    assert "weather" not in {tool.name for tool in stage.model.requests[0].tools}


async def test_the_question_shows_all_of_it_and_of_a_changed_file_the_difference(stage: Stage):
    part = stage.runtime([]).part(ToolFilesPart)
    (question,) = await part.questions()
    assert question.title == "Load weather.py?"
    assert question.at_terminal
    assert [line[5:] for line in question.facts[3:]] == WEATHER.splitlines()
    assert await part.questions() == []
    await question.answer(is_allowed=True)
    path = stage.config / "tools" / "weather.py"
    path.write_text(WEATHER.replace('"rain', '"sun').replace('f"rain', 'f"sun'))
    (question,) = await part.questions()
    assert question.title == "Load the changed weather.py?"
    assert '-    return f"rain in {place} for {days} days"' in question.facts
    assert '+    return f"sun in {place} for {days} days"' in question.facts


async def test_the_question_shows_the_lines_that_python_reads(stage: Stage):
    path = stage.config / "tools" / "weather.py"
    text = "# a\u2028b\x0cc\x85d\r\nx = 1\ry = 2\n"
    path.write_bytes(text.encode())
    part = stage.runtime([]).part(ToolFilesPart)
    (question,) = await part.questions()
    shown = program_question(question).facts[3:]
    assert [line[5:] for line in shown] == ["# a⏎b␌c\N{REPLACEMENT CHARACTER}d", "x = 1", "y = 2"]
    await question.answer(is_allowed=True)
    path.write_bytes(text.replace("1", "3").encode())
    (question,) = await part.questions()
    assert "-x = 1" in question.facts
    assert not any(line.startswith(("-y", "+y", "-#")) for line in question.facts)


async def test_an_answer_about_a_file_that_is_gone_stores_nothing(stage: Stage):
    part = stage.runtime([]).part(ToolFilesPart)
    (question,) = await part.questions()
    path = stage.config / "tools" / "weather.py"
    path.unlink()
    with pytest.raises(ConfigError, match="is gone"):
        await question.answer(is_allowed=True)
    path.write_text(WEATHER)
    assert len(await part.questions(asks_again=True)) == 1


async def test_a_mistake_is_told_once_for_each_text_of_the_file(stage: Stage):
    path = stage.config / "tools" / "weather.py"

    async def start(text: str) -> tuple[str, ...]:
        path.write_text(text)
        runtime = stage.runtime([])
        approve_all(runtime)
        part = runtime.part(ToolFilesPart)
        await part.look()
        return part.take_news()

    bad = f"from agent_tui import hook\n{WEATHER}\n@hook('Stop')\ndef stop(facts): ...\n"
    assert await start(bad) == (f"{path}: @hook works in plugins only.",)
    assert await start(bad) == ()
    assert len(await start(f"{bad}\n")) == 1


async def test_an_editor_and_a_script_are_not_asked(stage: Stage, monkeypatch: pytest.MonkeyPatch):
    asked: list[str] = []

    class Elsewhere(UnansweredFront):
        can_ask = True
        runtime = stage.runtime([])
        services = SimpleNamespace(servers=ToolServers())

        def say(self, text: str, level: Level = "info") -> None:
            asked.append(text)

        def show_events(self, events: Iterable[AgentEvent]) -> None:
            asked.extend(map(str, events))

        async def ask(self, question: Question[AnswerT]) -> AnswerT | None:
            asked.append(question.title)
            return None

    front = cast(Front, Elsewhere())
    await ask_about_started(front)
    await reload.run(front, "")
    assert "Load weather.py?" not in asked
    assert issubclass(AcpFront, UnansweredFront)
    assert issubclass(HeadlessFront, UnansweredFront)


def test_doctor_names_each_file_and_runs_none(stage: Stage, monkeypatch: pytest.MonkeyPatch):
    folder = user_config_dir() / "tools"
    folder.mkdir(parents=True)
    for name, text in (("a", WEATHER), ("b", "x = (\n"), ("c", WEATHER), ("d", "raise OSError")):
        (folder / f"{name}.py").write_text(text)
    for file in find_files(folder, ()):
        if isinstance(file, FileText) and file.path.stem in "ac":
            own_approvals().keep(file, is_allowed=file.path.stem == "a")
    context = SimpleNamespace(cwd=stage.workspace)
    found = list(check_tool_files(cast(CheckContext, context)))
    assert [(one.name, one.state) for one in found] == [
        ("a.py", "ok"),
        ("b.py", "warning"),
        ("c.py", "info"),
        ("d.py", "info"),
    ]
    assert "line 1: SyntaxError" in found[1].found
