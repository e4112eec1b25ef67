"""The limits of a run, and the JSON Schema for its final answer."""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import JsonValue

from agent_tui.durations import shortest
from agent_tui.errors import UsageError
from agent_tui.messages import JsonObject

MOST_REPAIRS: Final = 2
"""How often an invalid answer is sent back."""

_ASKED = """\
When you are done, your last message must be only JSON, without any other text, that is valid \
against this JSON Schema:
{schema}"""
_REPAIR = """\
Your last message does not match: {problem}
Answer with only JSON that is valid against the schema."""
_FENCED = re.compile(r"\s*```\w*\n(?P<inside>.*)\n```\s*", re.DOTALL)


class AnswerMisfit(Exception):
    """An answer that does not match; the text says why, for the model and the user."""


@dataclass(frozen=True, slots=True)
class AnswerSchema:
    """A JSON Schema for the final answer. External references are never fetched."""

    schema: JsonObject

    @classmethod
    def read(cls, given: str) -> "AnswerSchema":
        """Parse `given` as a schema, or as the path of a file with one.

        Raises:
            UsageError: There is no such file, or it is not a JSON Schema.
        """
        from jsonschema import Draft202012Validator  # 60 ms that few runs need
        from jsonschema.exceptions import SchemaError

        text = given if given.lstrip().startswith("{") else _file_text(given)
        try:
            schema: JsonValue = json.loads(text)
            if not isinstance(schema, dict):
                raise UsageError("--json-schema: a schema must be a JSON object.", _WRITE_IT)
            Draft202012Validator.check_schema(schema)
        except json.JSONDecodeError as error:
            raise UsageError(f"--json-schema: not JSON: {error}.", _WRITE_IT) from error
        except SchemaError as error:
            why = error.message.rstrip(".")
            raise UsageError(f"--json-schema: not a JSON Schema: {why}.", _WRITE_IT) from error
        return cls(schema)

    def ask(self, prompt: str) -> str:
        """`prompt` with a request for an answer of this schema."""
        schema = json.dumps(self.schema, ensure_ascii=False)
        return f"{prompt}\n\n{_ASKED.format(schema=schema)}"

    def repair(self, misfit: AnswerMisfit) -> str:
        """The message to the model about an answer that does not match."""
        return _REPAIR.format(problem=misfit)

    def value(self, answer: str) -> JsonValue:
        """Parse `answer` as JSON; a Markdown fence around it is removed.

        Raises:
            AnswerMisfit: It is not JSON, or does not match the schema.
            UsageError: The schema has an external reference.
        """
        fenced = _FENCED.fullmatch(answer)
        try:
            value: JsonValue = json.loads(fenced["inside"] if fenced else answer)
        except ValueError as error:
            raise AnswerMisfit(f"it is not only JSON ({error}).") from error
        from jsonschema import Draft202012Validator, validate
        from jsonschema.exceptions import ValidationError
        from referencing import Registry
        from referencing.exceptions import Unresolvable

        nothing: Registry[JsonValue] = Registry()
        try:
            validate(value, self.schema, Draft202012Validator, registry=nothing)
        except Unresolvable as error:
            raise UsageError(f"--json-schema: {error}.", "Put everything in one schema.") from error
        except ValidationError as error:
            raise AnswerMisfit(f"at {error.json_path}: {error.message}") from error
        return value


_WRITE_IT = 'Give a file, or the schema itself: \'{"type": "object", "properties": ...}\'.'


def _file_text(name: str) -> str:
    try:
        return Path(name).expanduser().read_text("utf-8")
    except (OSError, ValueError, RuntimeError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise UsageError(f"--json-schema: {name}: {why.rstrip('.')}.", _WRITE_IT) from error


@dataclass(slots=True)
class TimeLimit:
    """The time limit of a run, and whether it was reached."""

    seconds: float
    is_over: bool = False

    @property
    def words(self) -> str:
        """The text for a run that reached its time limit."""
        return f"Stopped: --max-time {shortest(self.seconds)} reached."


@dataclass(frozen=True, slots=True)
class RunTerms:
    """The settings of a run.

    Attributes:
        schema: The schema of the answer; None for any answer.
        time_limit: The time limit; None for none.
        fails_on_refusal: Whether a refused call gives a separate exit code.
        goes_on: Whether the conversation continues after this message, with its background
            commands.
    """

    schema: AnswerSchema | None = None
    time_limit: TimeLimit | None = None
    fails_on_refusal: bool = False
    goes_on: bool = False

    @property
    def is_out_of_time(self) -> bool:
        """Whether the run has reached its time limit."""
        return self.time_limit is not None and self.time_limit.is_over


NO_TERMS = RunTerms()
