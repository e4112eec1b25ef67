"""``-p`` and the options that need it."""

import argparse
from typing import TYPE_CHECKING, Literal, NamedTuple, cast

from agent_tui.durations import seconds_of

if TYPE_CHECKING:
    from agent_tui.cli.arguments import Arguments

_PROMPT = "print"
_MOST = ("output_format", "input_format", "json_schema", "max_time", "fail_on_refusal")
_EXAMPLES = """
  git diff | agent-tui -p "review this"
  agent-tui -p -- "--x: what is it?"    text after -- is never an option

exit codes of -p:
  0 done, 1 failed, 2 usage error, 3 limit reached, 4 tool call refused
  (--fail-on-refusal), 124 out of time (--max-time), 130 interrupted"""


class PrintOptions(NamedTuple):
    """What ``-p`` was given.

    Attributes:
        prompt: The text after ``-p``; may be empty.
        output_format: How the result is printed.
        input_format: How standard input is read.
        json_schema: The schema of the answer or its file; None for any answer.
        max_time_s: When the run is stopped, in seconds; None for never.
        fails_on_refusal: Whether a refused call gives a separate exit code.
    """

    prompt: str
    output_format: Literal["text", "json", "stream-json"]
    input_format: Literal["text", "stream-json"]
    json_schema: str | None
    max_time_s: float | None
    fails_on_refusal: bool

    @classmethod
    def of(cls, arguments: "Arguments") -> "PrintOptions":
        """What `take_options` kept."""
        kept = arguments.option_values
        return cls(
            prompt=kept[_PROMPT],
            output_format=cast(Literal["text"], kept["output_format"]),
            input_format=cast(Literal["text"], kept["input_format"]),
            json_schema=kept.get("json_schema"),
            max_time_s=float(kept["max_time"]) if "max_time" in kept else None,
            fails_on_refusal="fail_on_refusal" in kept,
        )

    @property
    def reads_messages(self) -> bool:
        """Whether standard input holds messages, each a turn."""
        return self.input_format == "stream-json"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options to the command line without a subcommand, and what its help says of them."""
    add = parser.add_argument
    add(
        "-p",
        "--print",
        nargs="?",
        const="",
        metavar="PROMPT",
        help="run one prompt without the screen and print the reply; piped text is appended "
        "(- waits for it)",
    )
    add(
        "--output-format",
        choices=("text", "json", "stream-json"),
        default="text",
        help="with -p: print the reply as text, one JSON object, or one JSON object per event",
    )
    add(
        "--input-format",
        choices=("text", "stream-json"),
        default="text",
        help="with -p: read standard input as text, or as one JSON message per line, each a turn",
    )
    add(
        "--json-schema",
        metavar="FILE|JSON",
        help="with -p: require a final answer in JSON that matches this JSON Schema",
    )
    add(
        "--max-time",
        type=_duration_s,
        metavar="DURATION",
        help="with -p: stop after this time (90s, 10m, 1h or seconds), print the result so far "
        "and exit with code 124",
    )
    add(
        "--fail-on-refusal",
        action="store_true",
        help="with -p: exit with code 4 if a tool call was refused, even if the model finished",
    )
    parser.epilog = f"{parser.epilog or ''}{_EXAMPLES}"


def take_options(parser: argparse.ArgumentParser, values: argparse.Namespace) -> None:
    """Keep the options for `PrintOptions.of`."""
    prompt: str | None = vars(values).pop(_PROMPT)
    given = {name: vars(values).pop(name) for name in _MOST}
    is_stream = given["output_format"] == "stream-json" and prompt is not None
    if given["input_format"] == "stream-json" and not is_stream:
        parser.error("--input-format stream-json requires -p and --output-format stream-json")
    if maker := values.prompt_option:
        if prompt:
            parser.error(f"{maker} cannot be combined with a prompt: say all of it there")
        if given["input_format"] == "stream-json" or given["json_schema"] is not None:
            parser.error(f"{maker} cannot be combined with --input-format or --json-schema")
    if prompt is not None:
        kept = {name: str(value) for name, value in given.items() if value}
        values.option_values.update({_PROMPT: prompt, **kept})
        return
    for name in ("json_schema", "max_time", "fail_on_refusal"):
        if given[name] not in (None, False):
            parser.error(f"--{name.replace('_', '-')} requires -p")


def _duration_s(text: str) -> float:
    if (seconds := seconds_of(text)) is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a duration such as 90s, 10m or 1h")
    return seconds
