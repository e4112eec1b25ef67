"""Arguments that no file, word or pattern can be: each call is an error for the model, or runs."""

import json
from collections.abc import Iterator

import pytest

from agent_tui.errors import ToolError
from agent_tui.messages import JsonObject, ToolSpec
from agent_tui.tools.base import ToolContext
from agent_tui.tools.registry import default_toolbox
from tests.support.odd_texts import ODD_TEXTS
from tests.support.rows import each_row

_READERS = frozenset({"read", "grep", "find", "ls", "job", "recall", "skill"})
_TOOLS = default_toolbox()


def _calls(spec: ToolSpec, text: str) -> Iterator[JsonObject]:
    """A call for each argument of a tool, with `text` in its place, also as those of others."""
    properties, required = spec.parameters["properties"], spec.parameters.get("required", [])
    assert isinstance(properties, dict)
    assert isinstance(required, list)
    plain: JsonObject = {str(name): "a.txt" for name in required}
    for name, schema in properties.items():
        assert isinstance(schema, dict)
        yield {**plain, name: text}
        if schema.get("type") == "array":
            yield {**plain, name: [text]}
            yield {**plain, name: [{"old": text, "new": text, "content": text, "status": "done"}]}
    if spec.name == "apply_patch":
        for action in ("Add", "Update", "Delete"):
            yield {"patch": f"*** Begin Patch\n*** {action} File: {text}\n+x\n*** End Patch"}
    if spec.name == "bash":
        yield {"command": "ls", "workdir": text}
        yield {"cmd": ["bash", "-c", text]}
        yield {"command": f"cd {text} && apply_patch <<'EOF'\n*** Begin Patch\nEOF"}


@pytest.fixture(autouse=True)
def circle(context: ToolContext) -> None:
    (context.cwd / "circle").symlink_to("circle")


async def _outcome(name: str, arguments: JsonObject, context: ToolContext) -> str:
    """What the model is told of a call, which runs only where it reads."""
    try:
        own = _TOOLS.translate_call(name, arguments, context.cwd)
        _TOOLS.check(own.name, own.arguments)
        prepared = _TOOLS.prepare(own.name, own.arguments, context)
        return (await prepared.run()).for_model if name in _READERS else prepared.intent.title
    except ToolError as error:
        return str(error)


@each_row("text", ODD_TEXTS.values(), ids=ODD_TEXTS)
@pytest.mark.parametrize("spec", _TOOLS.specs, ids=lambda spec: spec.name)
async def test_no_argument_raises_more_than_an_error_for_the_model(
    spec: ToolSpec, text: str, context: ToolContext
):
    for arguments in _calls(spec, text):
        assert isinstance(await _outcome(spec.name, arguments, context), str), arguments


@pytest.mark.parametrize("text", ["circle", "circle/in/it", "a\0b", "a" * 5_000])
async def test_a_path_that_cannot_be_is_told_with_the_reason(text: str, context: ToolContext):
    with pytest.raises(ToolError, match=r"cannot be used as a path: \S"):
        _TOOLS.prepare("read", {"path": text}, context)


async def test_text_that_is_no_unicode_is_told_by_its_argument(context: ToolContext):
    told = await _outcome("read", {"path": "a\ud800b"}, context)
    assert told.startswith("read was not run. path: contains half of a surrogate pair")


async def test_a_path_with_half_a_surrogate_pair_is_told_with_the_reason(context: ToolContext):
    with pytest.raises(ToolError, match=r"cannot be used as a path: \S"):
        context.resolve("a\ud800b")


@each_row("name", ODD_TEXTS.values(), ids=ODD_TEXTS)
@pytest.mark.parametrize("spec", _TOOLS.specs, ids=lambda spec: spec.name)
async def test_no_name_of_an_argument_raises_more_than_an_error_for_the_model(
    spec: ToolSpec, name: str, context: ToolContext
):
    assert isinstance(await _outcome(spec.name, {name: "x"}, context), str)


@each_row("name", ODD_TEXTS.values(), ids=ODD_TEXTS)
async def test_no_name_of_a_tool_raises_more_than_an_error_for_the_model(
    name: str, context: ToolContext
):
    assert isinstance(await _outcome(name, {"path": "x"}, context), str)


async def test_a_list_that_is_nested_too_deeply_as_text_is_told(context: ToolContext):
    told = await _outcome("todo", {"todos": "[" * 100_000}, context)
    assert "todo was not run" in told
    assert len(json.dumps(told)) < 2_000
