"""The terms of a run: its limits, and the JSON Schema that its last answer must match."""

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
"""How often an answer that does not fit is sent back."""

_ASKED = """\
When you are done, your last message must be only JSON, without any other text, that is valid \
against this JSON Schema:
{schema}"""
_REPAIR = """\
Your last message does not match: {problem}
Answer with only JSON that is valid against the schema."""
_FENCED = re.compile(r"\s*```\w*\n(?P<inside>.*)\n```\s*", re.DOTALL)


class AnswerMisfit(Exception):
    """An answer does not fit; its text says why, for the model and the person."""


@dataclass(frozen=True, slots=True)
class AnswerSchema:
    """A JSON Schema for the last answer. Nothing that it refers to elsewhere is fetched."""

    schema: JsonObject

    @classmethod
    def read(cls, given: str) -> "AnswerSchema":
        """The schema that `given` is, or that is in the file it names.

        Raises:
            UsageError: there is no such file, or it holds no JSON Schema.
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

    def asked(self, prompt: str) -> str:
        """`prompt` with the wish for such an answer."""
        schema = json.dumps(self.schema, ensure_ascii=False)
        return f"{prompt}\n\n{_ASKED.format(schema=schema)}"

    def repair(self, misfit: AnswerMisfit) -> str:
        """What the model is told of an answer that does not fit."""
        return _REPAIR.format(problem=misfit)

    def value(self, answer: str) -> JsonValue:
        """What `answer` is as JSON; one in a fence of Markdown is taken out of it.

        Raises:
            AnswerMisfit: it is no JSON, or not as the schema says.
            UsageError: the schema refers to something that is not in it.
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
    """How long a run may take, and whether it has taken that long."""

    seconds: float
    is_over: bool = False

    @property
    def words(self) -> str:
        """Why a run ended that took too long."""
        return f"Stopped: --max-time {shortest(self.seconds)} reached."


@dataclass(frozen=True, slots=True)
class RunTerms:
    """What was set for a run.

    Attributes:
        schema: What the answer must be; None for anything.
        time_limit: When the run is ended; None for never.
        fails_on_refusal: Whether a run in which a call was refused has an exit code of its own.
        goes_on: Whether the conversation goes on after this message, and its background commands
            with it.
    """

    schema: AnswerSchema | None = None
    time_limit: TimeLimit | None = None
    fails_on_refusal: bool = False
    goes_on: bool = False

    @property
    def is_out_of_time(self) -> bool:
        """Whether the run has taken as long as it may."""
        return self.time_limit is not None and self.time_limit.is_over


NO_TERMS = RunTerms()
