"""Answers that are JSON as the person's schema says."""

import io
import json

import pytest

from agent_tui.errors import UsageError
from agent_tui.features.print.answer_schema import AnswerMisfit, AnswerSchema, RunTerms
from agent_tui.features.print.printer import ExitCode, OutputFormat, print_turn
from agent_tui.features.tour.scripted import Reply
from tests.support.runtime import Stage

AGE = '{"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]}'


async def answered(
    stage: Stage, *answers: str, output_format: OutputFormat = "json"
) -> tuple[ExitCode, str]:
    out = io.StringIO()
    runtime = stage.runtime([Reply(text) for text in answers], is_interactive=False)
    schema = AnswerSchema.read(AGE)
    code = await print_turn(
        runtime,
        "how old?",
        output_format,
        out=out,
        err=io.StringIO(),
        terms=RunTerms(schema=schema),
    )
    return code, out.getvalue()


async def test_an_answer_that_fits_is_the_structured_output(stage: Stage):
    code, out = await answered(stage, '```json\n{"age": 7}\n```')
    result = json.loads(out)
    assert (code, result["structured_output"]) == (ExitCode.DONE, {"age": 7})
    assert len(stage.model.requests) == 1
    assert '"required": ["age"]' in stage.model.requests[0].messages[-1].text


async def test_one_that_does_not_fit_is_sent_back_with_the_reason(stage: Stage):
    answers = ("It is seven.", '{"age": "x"}', '{"age": 7}')
    code, out = await answered(stage, *answers, output_format="text")
    assert (code, out) == (ExitCode.DONE, '{"age": 7}\n')
    told = [request.messages[-1].text for request in stage.model.requests[1:]]
    assert "it is not only JSON" in told[0]
    assert "at $.age: 'x' is not of type 'integer'" in told[1]


async def test_after_two_repairs_it_has_failed(stage: Stage):
    code, out = await answered(stage, "a", "b", "c", '{"age": 7}')
    result = json.loads(out)
    assert (code, result["outcome"]) == (ExitCode.FAILED, "error")
    assert "does not match --json-schema" in result["error"]
    assert result["structured_output"] is None
    assert len(stage.model.requests) == 3


@pytest.mark.parametrize("wrong", ["{", '{"type": "objekt"}', "/nowhere/schema.json"])
def test_what_is_no_schema_is_refused(wrong: str):
    with pytest.raises(UsageError, match="--json-schema"):
        AnswerSchema.read(wrong)


def test_a_schema_is_read_from_a_file(tmp_path):
    (tmp_path / "age.json").write_text(AGE)
    assert AnswerSchema.read(str(tmp_path / "age.json")).value('{"age": 1}') == {"age": 1}


def test_nothing_is_fetched_for_a_schema():
    schema = AnswerSchema.read('{"$ref": "http://127.0.0.1:9/schema.json"}')
    with pytest.raises(UsageError, match="Put everything in one schema"):
        schema.value("{}")
    with pytest.raises(AnswerMisfit):
        schema.value("{")
