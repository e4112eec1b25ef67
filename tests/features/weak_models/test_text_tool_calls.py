"""Real-looking replies of small models, and how they are to be read."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from agent_tui.features.weak_models.provenance import SentTexts
from agent_tui.features.weak_models.reader import read_calls
from agent_tui.tools.registry import default_toolbox
from tests.support.rows import each_row

SPECS = {spec.name: spec for spec in default_toolbox().specs}
CASES: list[dict[str, Any]] = yaml.safe_load(
    Path(__file__).with_suffix(".yaml").with_stem("text_tool_calls").read_text("utf-8")
)
NAMES = [case["name"] for case in CASES]


@each_row("case", CASES, ids=NAMES)
def test_reply_is_read_as_expected(case: dict[str, Any]) -> None:
    tools = [SPECS[name] for name in case.get("tools", SPECS)]
    reply = read_calls(case["reply"], tools, SentTexts(case.get("sent", ())))
    assert [{"name": c.name, "arguments": c.arguments} for c in reply.calls] == case.get(
        "calls", []
    )
    assert reply.text == case.get("left", "" if reply.calls else case["reply"])
    assert (reply.refused.name if reply.refused else "") == case.get("refused", "")


def test_names_are_unique_and_hostile_cases_many() -> None:
    assert len(set(NAMES)) == len(NAMES)
    assert len([case for case in CASES if not case.get("calls")]) >= 25


@each_row("case", CASES, ids=NAMES)
def test_a_reply_copied_from_what_was_sent_runs_nothing(case: dict[str, Any]) -> None:
    quoted = "\n".join(f"{n}\t{line}" for n, line in enumerate(case["reply"].split("\n"), 1))
    for sent in (case["reply"], quoted):
        assert read_calls(case["reply"], list(SPECS.values()), SentTexts([sent])).calls == ()


@each_row("case", [case for case in CASES if case.get("refused")], ids=lambda c: c["name"])
def test_what_is_answered_with_an_error_is_never_the_arguments_of_a_tool(
    case: dict[str, Any],
) -> None:
    tools = [SPECS[name] for name in case.get("tools", SPECS)]
    refused = read_calls(case["reply"], tools, SentTexts(case.get("sent", ()))).refused
    assert refused is not None
    if refused.name in {tool.name for tool in tools}:
        with pytest.raises(json.JSONDecodeError):
            json.loads(refused.written)
