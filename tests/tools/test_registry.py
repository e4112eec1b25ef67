import json
import subprocess
import sys

import pytest
from pydantic import JsonValue

from agent_tui.errors import ToolError
from agent_tui.tokens import ExactCounter
from agent_tui.tools.base import ToolContext
from agent_tui.tools.registry import default_toolbox
from agent_tui.tools.selection import select_tools
from tests.support.offered import offered
from tests.support.rows import each_row
from tests.support.tool_calls import call_tool


def _names(schema: JsonValue) -> list[str]:
    """The names of the arguments in a schema and in the objects within it."""
    if not isinstance(schema, dict):
        return []
    properties = schema.get("properties")
    own = list(properties) if isinstance(properties, dict) else []
    inner = list(properties.values()) if isinstance(properties, dict) else []
    return own + [name for one in [*inner, schema.get("items")] for name in _names(one)]


@pytest.mark.parametrize(("model_id", "most"), [("claude-sonnet-4-5", 1_265), ("gpt-5", 1_271)])
def test_all_descriptions_together_stay_small(model_id: str, most: int):
    tools = offered(default_toolbox().specs, model_id)
    assert ExactCounter().count_tools(tools) < most


def test_the_model_is_told_that_the_old_text_of_an_edit_is_unique():
    edit = next(spec for spec in default_toolbox().specs if spec.name == "edit")
    assert "unique in the file" in json.dumps(edit.parameters)


def test_a_model_trained_on_patches_edits_like_the_others_without_a_tool_for_them():
    specs = default_toolbox().specs
    without = [spec for spec in specs if spec.name != "apply_patch"]
    assert "edit" not in {spec.name for spec in select_tools(specs, "gpt-5")}
    assert "edit" in {spec.name for spec in select_tools(without, "gpt-5")}


def test_the_short_form_of_a_tool_has_all_its_arguments_and_describes_none():
    short = default_toolbox().short_specs
    for spec, whole in zip(short, default_toolbox().specs, strict=True):
        assert "description" not in json.dumps(spec.parameters)
        assert _names(spec.parameters) == _names(whole.parameters)


def test_the_tools_are_offered_in_order_of_use():
    names = [spec.name for spec in default_toolbox().specs]
    assert names[:5] == ["read", "bash", "edit", "apply_patch", "write"]
    assert names[5:11] == ["grep", "find", "ls", "job", "todo", "skill"]
    assert names[11:] == [
        "plan",
        "compact",
        "ask_user",
        "scope",
        "recall",
        "explore",
        "delegate",
        "fetch",
        "web_search",
        "why",
        "other_tool",
    ]


@each_row("spec", default_toolbox().specs, ids=lambda spec: spec.name)
def test_schemas_hold_no_references_titles_or_defaults(spec):
    text = spec.model_dump_json()
    for noise in ("$ref", "$defs", '"title"', "anyOf", '"default"', "null"):
        assert noise not in text
    assert spec.parameters["type"] == "object"


def test_an_unknown_tool_is_answered_with_the_nearest_name(context: ToolContext):
    with pytest.raises(ToolError, match=r"no tool 'reed'. Did you mean read\? Tools: read, bash"):
        default_toolbox().check("reed", {})


def test_a_wrong_argument_is_named_with_what_was_expected():
    with pytest.raises(ToolError) as caught:
        default_toolbox().check("read", {"path": "a", "offset": "soon", "colour": "red"})
    text = str(caught.value)
    assert "offset: Input should be a valid integer" in text
    assert "colour is not an argument" in text
    assert "Expected: path: string, offset?: integer, limit?: integer" in text


@each_row(
    ("name", "arguments"),
    [
        ("read", {"path": "a", "offset": "3"}),
        ("read", {"path": "a", "offset": None}),
        ("edit", {"path": "a", "old": "x", "new": "y"}),
        ("edit", {"path": "a", "edits": '[{"old": "x", "new": "y"}]'}),
        ("edit", {"path": "a", "edits": {"old": "x", "new": "y"}}),
        ("bash", {"command": "ls", "timeout": "5"}),
        ("todo", {"todos": '[{"text": "think"}]'}),
    ],
)
def test_small_unambiguous_mistakes_are_understood(name, arguments):
    default_toolbox().check(name, arguments)


@each_row(
    ("name", "arguments"),
    [
        ("read", {}),
        ("read", {"path": None}),
        ("read", {"path": ""}),
        ("read", {"path": "a", "offset": 0}),
        ("edit", {"path": "a", "edits": []}),
        ("edit", {"path": "a"}),
        ("edit", {"path": "a", "edits": ["x"]}),
        ("bash", {"command": "ls", "timeout": 0}),
        ("bash", {"command": "ls", "timeout": 10_000_000}),
        ("bash", {"command": ["ls"]}),
        ("todo", {"todos": [{"text": "x", "status": "maybe"}]}),
        ("write", {"path": "a"}),
    ],
)
def test_what_cannot_be_understood_is_refused(name, arguments):
    with pytest.raises(ToolError):
        default_toolbox().check(name, arguments)


async def test_todo_replaces_the_plan(context: ToolContext):
    await call_tool(context, "todo", {"todos": [{"text": "old"}]})
    steps: list[JsonValue] = [
        {"text": "a", "status": "completed"},
        {"text": "b", "status": "in_progress"},
    ]
    output = await call_tool(context, "todo", {"todos": steps})
    assert [(todo.text, todo.status) for todo in context.todos] == [
        ("a", "completed"),
        ("b", "in_progress"),
    ]
    assert output.for_person.todos == tuple(context.todos)
    assert output.for_model == "Plan updated: 1 of 2 done."


@pytest.mark.parametrize("path", ["a\0b", "~nosuchuser/x", "x" * 5000], ids=["nul", "home", "long"])
def test_a_path_no_file_can_have_is_a_tool_error(context: ToolContext, path: str):
    with pytest.raises(ToolError):
        default_toolbox().prepare("write", {"path": path, "content": ""}, context)


def test_importing_the_room_loads_no_terminal_library_and_no_litellm():
    code = (
        "import sys, agent_tui.tools.registry;"
        "print([m for m in ('textual', 'rich', 'litellm', 'tiktoken') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
