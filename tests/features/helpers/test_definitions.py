from pathlib import Path

import pytest

from agent_tui.agent.prompt.prompt_files import PromptFileError
from agent_tui.events import ToolFinished
from agent_tui.features.helpers.kinds import READING_TOOLS, find_agents, parse_agent
from agent_tui.features.tour.scripted import Reply, call
from agent_tui.providers.base import ModelRequest
from agent_tui.tools.foreign_calls import argument_names
from tests.support.runtime import Stage, collect, only

REVIEWER = """\
---
name: reviewer
description: "Looks for mistakes"
tools: Read, Grep, Write, Bash(git *)
model: other/model
color: red
---
You look for mistakes.
"""


def put(folder: Path, name: str, text: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)


def test_a_file_says_name_purpose_tools_model_and_prompt():
    agent = parse_agent(REVIEWER.encode(), "file")
    assert (agent.name, agent.description) == ("reviewer", "Looks for mistakes")
    assert agent.tools == ("read", "bash", "grep")
    assert (agent.model, agent.prompt) == ("other/model", "You look for mistakes.")


def test_what_a_file_does_not_say_is_the_usual():
    agent = parse_agent(b"Just look.", "plain")
    assert (agent.name, agent.description, agent.model) == ("plain", "", "")
    assert agent.tools == READING_TOOLS


@pytest.mark.parametrize("model", ["inherit", "sonnet", "Opus", "haiku"])
def test_short_names_for_models_stand_for_the_present_one(model: str):
    assert parse_agent(f"---\nmodel: {model}\n---\nx".encode(), "a").model == ""


def test_tools_may_be_a_list_of_lines():
    agent = parse_agent(b"---\ntools:\n  - Glob\n  - LS\ndescription: d\n---\nx", "a")
    assert agent.tools == ("find", "ls")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("---\ntools: Write, Edit\n---\nx", "no read-only tools"),
        ("---\nname: a b\n---\nx", "needs a name"),
        ("---\nname: a\n---\n", "is empty"),
        ("---\nname: a\n", "no closing ---"),
    ],
)
def test_what_cannot_be_used_says_why(text: str, why: str):
    with pytest.raises(PromptFileError, match=why):
        parse_agent(text.encode(), "a")


def test_the_nearest_of_a_name_counts_and_the_persons_own_last(tmp_path: Path):
    stage = Stage(tmp_path)
    put(stage.config / "agents", "mine.md", "own mine")
    put(stage.config / "agents", "both.md", "own both")
    put(stage.workspace / ".claude/agents", "both.md", "claude both")
    put(stage.workspace / ".agent-tui/agents", "both.md", "project both")
    put(stage.workspace / ".claude/agents", "broken.md", "---\n")
    found = find_agents(stage.workspace, stage.config, stage.trust)
    assert {name: agent.prompt for name, agent in found.by_name.items()} == {
        "both": "project both",
        "mine": "own mine",
    }
    (problem,) = found.problems
    assert "broken.md begins with ---" in problem


def test_a_folder_that_is_not_trusted_defines_nothing_and_is_asked_about(tmp_path: Path):
    stage = Stage(tmp_path, is_trusted=False)
    put(stage.workspace / ".claude/agents", "reviewer.md", REVIEWER)
    assert not find_agents(stage.workspace, stage.config, stage.trust).by_name
    question = stage.trust.question(stage.workspace)
    assert question is not None
    assert question.files == (stage.workspace / ".claude/agents",)


async def test_a_defined_helper_has_its_prompt_its_tools_and_its_model(tmp_path: Path):
    stage = Stage(tmp_path)
    put(stage.workspace / ".claude/agents", "reviewer.md", REVIEWER)

    def answer(request: ModelRequest) -> Reply:
        if "You look for mistakes." in request.system:
            return Reply("None.")
        is_begun = any(message.role == "assistant" for message in request.messages)
        asked = call("c1", "explore", task="Review", agent="reviewer")
        return Reply("Done.") if is_begun else Reply(tool_calls=(asked,))

    runtime = stage.runtime(answer)
    spec = next(tool for tool in runtime.conversation.prompt.tools if tool.name == "explore")
    assert spec.description.endswith("reviewer: Looks for mistakes")
    events = await collect(runtime.submit("go"))
    assert only(events, ToolFinished).message.text.startswith("None.")
    helped = stage.model.requests[1]
    assert helped.model.name == "other/model"
    assert [tool.name for tool in helped.tools] == ["read", "bash", "grep"]


async def test_an_unknown_helper_is_answered_with_those_there_are(tmp_path: Path):
    stage = Stage(tmp_path)
    put(stage.config / "agents", "reviewer.md", REVIEWER)
    asked = call("c1", "explore", task="Review", agent="writer")
    runtime = stage.runtime([Reply(tool_calls=(asked,)), Reply("Done.")])
    events = await collect(runtime.submit("go"))
    result = only(events, ToolFinished).message
    assert result.is_error
    assert "There is no helper 'writer'. Available: reviewer." in result.text


def test_without_definitions_there_is_no_such_argument(tmp_path: Path):
    runtime = Stage(tmp_path).runtime([])
    spec = next(tool for tool in runtime.conversation.prompt.tools if tool.name == "explore")
    assert argument_names(spec.parameters) == {"task"}
