"""What is asked and told when commands want the network; no wall stands, only its gate."""

import asyncio
import json
from collections.abc import AsyncGenerator

import pytest

from agent_tui.agent.runtime import AgentRuntime
from agent_tui.agent.turn.pending_approvals import ApprovalAnswer
from agent_tui.agent.turn.user_command import CheckRun, run_user_command
from agent_tui.compaction.sections.history import Said, read_history
from agent_tui.config import PermissionMode, PermissionSettings
from agent_tui.events import (
    AgentEvent,
    ApprovalRequest,
    ApprovalRequested,
    ApprovalResolved,
    Notice,
    ToolFinished,
    ToolOutputDelta,
    TurnFinished,
)
from agent_tui.features.plain.questions import approval_lines
from agent_tui.features.sandbox.proxy import NetworkGate, Wanted
from agent_tui.features.sandbox.proxy_request import Target
from agent_tui.features.tour.scripted import Reply, call
from agent_tui.tools.base import ToolOutput
from tests.features.print.test_limits import run
from tests.support.network_gate import get, loopback_gate, open_gate
from tests.support.patience import PATIENCE_S
from tests.support.runtime import Stage, collect, of_kind, only
from tests.support.web_site import Answer, WebSite

A_TEST = Target("a.test", 443)


@pytest.fixture
async def gate() -> AsyncGenerator[NetworkGate, None]:
    gate = loopback_gate()
    async with open_gate(gate):
        yield gate


@pytest.fixture
def site():
    with WebSite() as site:
        site.pages["/"] = Answer(b"the page")
        yield site


class Person:
    """Gives `answers` in turn, each to one question."""

    def __init__(self, runtime: AgentRuntime, *answers: ApprovalAnswer) -> None:
        self.asked: list[ApprovalRequest] = []
        self.events: list[AgentEvent] = []
        self._runtime = runtime
        self._answers = list(answers)

    async def submit(self, text: str = "go") -> list[str]:
        """The results of the calls of a turn."""
        events: list[AgentEvent] = []
        async for event in self._runtime.submit(text):
            events.append(event)
            if isinstance(event, ApprovalRequested):
                self.asked.append(event.request)
                self._runtime.pending_approvals.answer(event.request.id, self._answers.pop(0))
        self.events += events
        return [one.message.text for one in of_kind(events, ToolFinished)]


def script(*commands: str) -> list[Reply]:
    calls = [call(f"c{number}", "bash", command=each) for number, each in enumerate(commands)]
    return [*(Reply(tool_calls=(one,)) for one in calls), Reply("Done.")]


def runtime_of(
    stage: Stage,
    gate: NetworkGate,
    replies: list[Reply],
    *,
    mode: PermissionMode = "ask",
    is_interactive: bool = True,
    allow: tuple[str, ...] = (),
) -> AgentRuntime:
    rules = PermissionSettings(allow=("bash", *allow))
    return stage.runtime(
        replies, network=gate, mode=mode, is_interactive=is_interactive, permissions=rules
    )


async def test_a_host_is_asked_about_once_for_a_command_and_again_for_the_next(
    stage: Stage, gate: NetworkGate, site: WebSite
):
    host = f"a.test:{site.port}"
    twice = f"{get(f'http://{host}/')}; {get(f'http://{host}/')}"
    runtime = runtime_of(stage, gate, script(twice, twice))
    person = Person(runtime, ApprovalAnswer("once"), ApprovalAnswer("no"))
    first, second = await person.submit()
    assert first.count("the page") == 2
    assert second.count("HTTP/1.1 403 agent-tui's sandbox: network access to") == 2
    assert f"[network access to {host} was refused: the user declined it]" in second
    question = person.asked[0]
    assert (question.tool_name, question.title) == ("network", f"Connect to {host}")
    assert question.reason == "a command in the sandbox wants to connect to a.test"
    assert question.session_rule == f"fetch(domain:{host})"
    assert question.is_loss
    assert len(person.asked) == 2
    assert [one.allowed for one in of_kind(person.events, ApprovalResolved)] == [True, False]
    decided = runtime.conversation.permissions.log.latest
    assert [(one.tool, one.decision, one.by) for one in decided if one.by == "person"] == [
        ("network", "deny", "person"),
        ("network", "allow", "person"),
    ]


def asking_runtime(stage: Stage, gate: NetworkGate, *commands: str) -> AgentRuntime:
    """A conversation whose user is asked about each of `commands`."""
    return stage.runtime(script(*commands), network=gate, mode="ask")


async def test_a_yes_to_a_command_is_one_to_the_host_that_it_names(
    stage: Stage, gate: NetworkGate, site: WebSite
):
    host = f"a.test:{site.port}"
    fetching = f"{get(f'http://{host}/')}; curl --version http://{host}/"
    runtime = asking_runtime(stage, gate, fetching, get(f"http://{host}/"))
    person = Person(runtime, *[ApprovalAnswer("once")] * 2, ApprovalAnswer("no"))
    first, second = await person.submit()
    assert "the page" in first
    assert person.asked[0].reason.startswith(f"connects to {host}; ")
    assert person.asked[0].is_loss  # no registry: the user is asked to look twice
    assert [question.tool_name for question in person.asked] == ["bash", "bash", "network"]
    assert f"[network access to {host} was refused" in second  # the yes ended with its command
    allowed = runtime.conversation.permissions.log.latest
    assert ("network", "allow") in [(one.tool, one.decision) for one in allowed]


async def test_a_no_to_a_command_allows_no_host(stage: Stage, gate: NetworkGate, site: WebSite):
    fetching = f"curl http://a.test:{site.port}/"
    person = Person(asking_runtime(stage, gate, fetching), ApprovalAnswer("no", "not now"))
    await person.submit()
    (question,) = person.asked
    assert question.reason.startswith(f"connects to a.test:{site.port}; ")


async def test_a_registry_is_asked_about_with_the_command_that_installs(
    stage: Stage, gate: NetworkGate
):
    runtime = asking_runtime(stage, gate, "pip install --help >x")
    person = Person(runtime, ApprovalAnswer("once"))
    await person.submit()
    (question,) = person.asked
    assert question.reason.startswith(
        "connects to pypi.org, files.pythonhosted.org, pypi.python.org; "
    )


async def test_a_host_that_a_rule_decides_on_is_not_asked_about_with_a_command(
    stage: Stage, gate: NetworkGate
):
    allowed = PermissionSettings(allow=("fetch(bundle:pypi)",), deny=("fetch(domain:a.test)",))
    commands = script("pip download --help >x; curl --version https://a.test/")
    runtime = stage.runtime(commands, network=gate, mode="ask", permissions=allowed)
    person = Person(runtime, ApprovalAnswer("once"))
    await person.submit()
    assert "connects" not in person.asked[0].reason


async def test_a_yes_to_a_command_holds_for_the_jobs_that_it_leaves(
    stage: Stage, gate: NetworkGate, site: WebSite
):
    host = f"a.test:{site.port}"
    later = f"sleep 1.5; curl --version http://{host}/; {get(f'http://{host}/')}"
    server = call("c0", "bash", command=later, background=True)
    look = call("c1", "job", id="1", wait=30)
    replies = [Reply(tool_calls=(server,)), Reply(tool_calls=(look,)), Reply("Done.")]
    person = Person(stage.runtime(replies, network=gate, mode="ask"), ApprovalAnswer("once"))
    _, seen = await person.submit()
    assert "the page" in seen
    assert [question.tool_name for question in person.asked] == ["bash"]


async def test_the_answer_for_the_project_is_a_rule_for_the_bundle(stage: Stage, gate: NetworkGate):
    runtime = runtime_of(stage, gate, script(get("http://pypi.org/simple/")))
    person = Person(runtime, ApprovalAnswer("project"))
    await person.submit()
    (question,) = person.asked
    assert approval_lines(question) == [
        "Question: allow this? Connect to pypi.org (package registry)",
        "    Host: pypi.org, port 80",
        "    fetch(bundle:pypi) allows pypi.org, files.pythonhosted.org, pypi.python.org",
        "Why it asks: a command in the sandbox wants to connect to pypi.org",
        "a or p also allows from now on: fetch(bundle:pypi)",
    ]
    assert not question.is_loss
    assert "fetch(bundle:pypi)" in (stage.folder / "permissions.toml").read_text()
    assert runtime.conversation.permissions.judge_host("files.pythonhosted.org").decision == "allow"


async def test_a_no_with_words_goes_on_with_them(stage: Stage, gate: NetworkGate):
    runtime = runtime_of(stage, gate, script(get("http://a.test/")))
    person = Person(runtime, ApprovalAnswer("no", "use the cache"))
    (told,) = await person.submit()
    assert told.endswith(
        "[network access to a.test was refused: the user declined it. They say: use the cache]"
    )
    assert only(person.events, TurnFinished).outcome == "done"
    heard = [e.text for e in read_history(runtime.conversation.log.entries) if isinstance(e, Said)]
    assert heard[1:] == ["refused network access to a.test: use the cache"]


async def test_questions_come_one_at_a_time_and_an_answer_to_one_may_answer_others(
    stage: Stage, gate: NetworkGate
):
    hosts = ("pypi.org", "files.pythonhosted.org", "pypi.org", "b.test")
    command = " & ".join(get(f"http://{host}/") for host in hosts)
    runtime = runtime_of(stage, gate, script(f"{command}; wait"))
    open_now, most = 0, 0
    asked: list[str] = []
    async for event in runtime.submit("go"):
        match event:
            case ApprovalRequested(request):
                asked.append(request.title)
                open_now += 1
                most = max(most, open_now)
                await asyncio.sleep(0.3)  # the others come meanwhile
                runtime.pending_approvals.answer(request.id, ApprovalAnswer("session"))
            case ApprovalResolved():
                open_now -= 1
            case _:
                pass
    assert most == 1
    assert sorted(title.partition(" (")[0] for title in asked)[0] == "Connect to b.test"
    assert len(asked) == 2


async def test_an_interruption_takes_the_question_away(stage: Stage, gate: NetworkGate):
    runtime = runtime_of(stage, gate, script(get("http://a.test/")))
    events: list[AgentEvent] = []
    async for event in runtime.submit("go"):
        events.append(event)
        if isinstance(event, ApprovalRequested):
            runtime.abort()
    assert only(events, ApprovalResolved).allowed is False
    assert only(events, TurnFinished).outcome == "aborted"
    assert not runtime.pending_approvals._open


async def test_a_question_ends_with_the_command_that_wanted_it(stage: Stage, gate: NetworkGate):
    runtime = runtime_of(stage, gate, script(f"timeout 0.5 {get('http://a.test/')}"))
    events = await collect(runtime.submit("go"))
    assert only(events, ApprovalRequested)
    assert only(events, ApprovalResolved).allowed is False
    assert only(events, TurnFinished).outcome == "done"


@pytest.mark.parametrize(
    ("mode", "why"),
    [
        ("ask", "the user can allow it with the rule fetch(domain:a.test)"),
        ("full", "the user can allow it with the rule fetch(domain:a.test)"),
    ],
)
async def test_where_nobody_is_asked_the_model_and_the_result_name_the_host(
    stage: Stage, gate: NetworkGate, mode: PermissionMode, why: str
):
    runtime = runtime_of(
        stage, gate, script(get("http://a.test/")), mode=mode, is_interactive=False
    )
    _, out, err = await run(runtime)
    (refused,) = json.loads(out)["refused_calls"]
    assert (refused["tool"], refused["title"]) == ("network", "connect to a.test")
    assert refused["reason"].startswith(why)
    assert "connect to a.test" in err.splitlines()[-1]
    (result,) = [
        message for message in stage.model.requests[-1].messages if message.role == "toolResult"
    ]
    assert f"[network access to a.test was refused: {why}" in result.text


async def test_a_private_address_is_told_as_a_refusal(stage: Stage):
    gate = NetworkGate(resolve=lambda _host, _port: ["10.0.0.1"], proxy_for=lambda _target: "")
    async with open_gate(gate):
        replies = script(get("http://a.test/"))
        runtime = runtime_of(stage, gate, replies, allow=("fetch(domain:a.test)",))
        (told,) = await Person(runtime).submit()
    assert "[network access to a.test was refused: a.test resolves to 10.0.0.1, an " in told
    assert "run the command with outside: true and why" in told


async def test_the_result_says_why_an_allowed_host_was_not_reached(stage: Stage, gate: NetworkGate):
    replies = script(get("http://no.example/"), "true")
    runtime = runtime_of(stage, gate, replies, allow=("fetch(domain:no.example)",))
    fetched, other = await Person(runtime).submit()
    why = "no.example was not found: no such name"
    assert f"[allowed by the sandbox, but {why}]" in fetched
    assert "no.example" not in other


async def test_what_has_ended_is_refused_with_a_notice_and_no_other_result_says_so(
    stage: Stage, gate: NetworkGate
):
    runtime = runtime_of(stage, gate, [*script(), *script("true")])
    heard: list[AgentEvent] = []
    runtime.listen_to_jobs(heard.append)
    await collect(runtime.submit("go"))
    why = await gate.decide(Wanted(A_TEST))
    assert why == "no turn is under way, so the user could not be asked"
    for _ in range(2):
        gate.tell_refusal(A_TEST, why)
    said = f"A command that has ended was refused network access to a.test: {why}."
    assert heard == [Notice("warning", said)]
    (told,) = await Person(runtime).submit()
    assert "a.test" not in told


async def test_a_question_that_an_interruption_took_away_is_in_no_later_result(
    stage: Stage, gate: NetworkGate
):
    replies = [*script(get("http://a.test/"))[:1], *script("true")]
    runtime = runtime_of(stage, gate, replies)
    heard: list[AgentEvent] = []
    runtime.listen_to_jobs(heard.append)
    async for event in runtime.submit("go"):
        if isinstance(event, ApprovalRequested):
            runtime.abort()
    assert await Person(runtime).submit() == ["(no output)\n[exit code 0]"]
    assert all("a.test" in notice.text for notice in of_kind(heard, Notice))


async def test_a_refusal_while_a_later_command_runs_is_not_in_its_result(
    stage: Stage, gate: NetworkGate
):
    runtime = runtime_of(stage, gate, script(), is_interactive=False)
    heard: list[AgentEvent] = []
    runtime.listen_to_jobs(heard.append)

    async def wants() -> ToolOutput:
        assert await gate.decide(Wanted(A_TEST))
        return ToolOutput("first")

    async def runs_later() -> ToolOutput:
        gate.tell_refusal(A_TEST, "no")
        return ToolOutput("second")

    questions = runtime.network
    assert (await questions.run_command(wants)).for_model == "first"
    assert (await questions.run_command(runs_later)).for_model == "second"
    said = "A command that has ended was refused network access to a.test: no."
    assert heard == [Notice("warning", said)]


async def test_an_interrupted_command_keeps_its_refusals(stage: Stage, gate: NetworkGate):
    command = f"{get('http://a.test/')}; echo asked; sleep 100"
    runtime = runtime_of(stage, gate, script(command), is_interactive=False)
    events: list[AgentEvent] = []
    async for event in runtime.submit("go"):
        events.append(event)
        if isinstance(event, ToolOutputDelta) and "asked" in event.text:
            runtime.abort()
    result = only(events, ToolFinished).message
    assert "[network access to a.test was refused" in result.text
    assert "a.test" in result.tool_details.refused_hosts
    assert result.tool_details.ending == "cancelled"


async def test_a_jobs_refusal_is_in_the_result_that_looks_at_the_job(
    stage: Stage, gate: NetworkGate
):
    server = call("c0", "bash", command=f"sleep 1.5; {get('http://a.test/')}", background=True)
    look = call("c1", "job", id="1", wait=30)
    replies = [Reply(tool_calls=(one,)) for one in (server, look)]
    runtime = runtime_of(stage, gate, [*replies, *script("true")], is_interactive=False)
    events = await collect(runtime.submit("go"))
    begun, looked, other = [event.message.text for event in of_kind(events, ToolFinished)]
    assert "[network access to a.test was refused: the user can allow it with the rule" in looked
    assert "[network access" not in begun + other
    assert [one.text.partition(": ")[0] for one in of_kind(events, Notice)] == [
        "A background job was refused network access to a.test"
    ]
    await runtime.aclose()


async def test_a_result_says_that_a_job_may_have_wanted_the_connection(
    stage: Stage, gate: NetworkGate
):
    server = call("c0", "bash", command="sleep 100", background=True)
    replies = [Reply(tool_calls=(server,)), *script(get("http://a.test/"))]
    runtime = runtime_of(stage, gate, replies, is_interactive=False)
    events = await collect(runtime.submit("go"))
    _, told = [event.message.text for event in of_kind(events, ToolFinished)]
    assert told.endswith("(this command or job 1 wanted it)]")
    await runtime.aclose()


async def test_a_check_of_a_goal_has_its_refusals_in_its_own_output(
    stage: Stage, gate: NetworkGate
):
    runtime = runtime_of(stage, gate, script("true"), is_interactive=False)
    check = CheckRun(is_inside=True, timeout_s=PATIENCE_S, network=runtime.network)
    seen: list[AgentEvent] = []
    conversation = runtime.conversation
    ran = await run_user_command(conversation, get("http://a.test/"), True, seen.append, check)
    assert "[network access to a.test was refused" in ran.output
    assert await Person(runtime).submit() == ["(no output)\n[exit code 0]"]


async def test_a_helpers_wall_is_judged_as_one_that_only_reads(stage: Stage, gate: NetworkGate):
    runtime = runtime_of(stage, gate, script("true"), allow=("fetch(domain:b.test)",))
    await collect(runtime.submit("go"))
    assert "only read" in await gate.decide(Wanted(A_TEST, is_read_only=True))
    assert await gate.decide(Wanted(Target("b.test", 443), is_read_only=True)) == ""


async def test_the_wait_for_an_answer_is_no_time_of_the_command(stage: Stage, gate: NetworkGate):
    now = 100.0
    rules = PermissionSettings(allow=("bash",))
    replies = script(get("http://a.test/"))
    runtime = stage.runtime(replies, network=gate, mode="ask", permissions=rules, clock=lambda: now)
    finished: list[ToolFinished] = []
    async for event in runtime.submit("go"):
        if isinstance(event, ApprovalRequested):
            now += 50
            runtime.pending_approvals.answer(event.request.id, ApprovalAnswer("no"))
        elif isinstance(event, ToolFinished):
            finished.append(event)
    assert [one.message.tool_details.elapsed_ms for one in finished] == [0]
