"""Find the messages that are results of an action, the action of each, and what it says."""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from agent_tui.messages import (
    AssistantMessage,
    BashExecutionMessage,
    JsonObject,
    Message,
    ToolCall,
    ToolDetails,
    ToolResultMessage,
    UserMessage,
    images_in,
    words_in,
)
from agent_tui.omissions import one_line
from agent_tui.sessions.actions import PATH_ARGUMENTS, Action, ActionKind, Output, tool_kind
from agent_tui.sessions.shell_files import pipelines_run, programs_run

_ERROR_LINE = re.compile(
    r"\b(error|exception|failed|failure|fatal|panic|denied|not found|no such|cannot|could not)\b"
    r"|\w(?:Error|Exception)\b",
    re.IGNORECASE,
)
_NO_ERROR = re.compile(
    r"^\W*(?:operation |command |request |tool )?(?:was )?(?:aborted|cancell?ed"
    r"|interrupted|denied by|the (?:person|user (?:declined|does not approve|has the plan)))",
    re.IGNORECASE,
)
_NAMES_ERROR = re.compile(
    r"\w(?:Error|Exception|Warning)\b\S{0,3}:? \S|^\W*(?:fatal )?error\b\W+\w"
    r"|^\W*[\w./@+-]*\w\.\w+[:(]\d+",
    re.I,
)
"""A line that says which error occurred or where, not only that one did."""

_PLACE_ALONE = re.compile(r"^\W*[\w./@+-]*\w\.\w+[:(]\d+\S*(?:\s[^:]*[━─═]{3,})?$")
"""A line with only a place in a file, perhaps with the name of a check: the message follows it."""

_PLACE = re.compile(r"^\W*\S*\w\.\w+[:(]\d+[^\s:]*(?::\d+)*\S*:?\s+(?=\S)")

_REPORTS_ERROR = re.compile(
    r"^\W*(?:[\w./@+-]*\w\.\w+[:(]\d+\S*\s+)?(?:fatal )?error\b[^:\n]{0,20}: \S"
    r"|^\W*(?:[a-z_]+\.)*[A-Z]\w*(?:Error|Exception)\b\W{0,2}\s\S",
    re.MULTILINE,
)
"""A line with which compilers and runtimes begin an error, not one that only mentions it."""

_WARNING = re.compile(r"\s*warning: \S", re.IGNORECASE)

_SAYS_NOTHING = re.compile(
    r"^(?:\[job \w+: [^\]]*\]|\[(?:moved to|continues in) the background: [^\]]*\]"
    r"|[\[(]?(?:no output|(?:command |process )?exit(?:ed with)? (?:code|status) \d+)[\])]?"
    r"|</?\w+>(?:-?\d+</\w+>)?|[=_~^!-]{3,}.*[=_~^!-]{3,}|[\W_]+)$",
    re.IGNORECASE,
)
"""Endings, tags around an output, rules and headings."""

_ECHO = re.compile(r"(?:\[[\w:-]+\] )?[$>] \S")
"""The line in which a task runner (npm, pnpm, yarn, mise) repeats the command that it runs."""

_SUBJECT_CHARS = 120
_END_CHARS = 100
"""Messages with the same end name the same error, with the path written in another way."""

_PARAGRAPH_LINES = 6
"""A maximum, for what explains an error."""

_LONGEST_ERROR_LINE = 400
"""Longer lines are generated or minified text that happens to contain the word."""

_TEST_COMMAND = re.compile(
    r"\b(?:pytest|jest|vitest|mocha|ava|tox|nox|rspec|phpunit|ctest|unittest|nosetests|playwright"
    r"|(?:go|cargo|mix|swift|deno|bun|dotnet|zig|flutter|dart|sbt|mvnw?|gradlew?|make|rake|bazel)"
    r"(?:\s+\S+)*?\s+(?:test|check|verify)\b|(?:npm|pnpm|yarn)\s+(?:run\s+)?t(?:est)?\b)"
    r"|\brun\s+(?:test|check|lint|verify)(?![\w-])"
)
_TEST_RESULT = re.compile(
    r"\b\d+ (?:\w+ ){0,2}(?:passed|failed|failures?|errors?|issues?|skipped|tests?|examples?|ok"
    r"|passing|failing)\b"
    r"|^(?:OK|FAILED|PASS|FAIL|ok|FAIL:)\b|test result:|\bBUILD (?:SUCCESS|FAILURE)",
    re.IGNORECASE,
)
_SOME_FAILED = re.compile(
    r"\b[1-9]\d* (?:\w+ ){0,2}(?:failed|failures?|errors?|failing)\b|^FAIL", re.IGNORECASE
)


_PROGRESS = re.compile(r"(?:\S+ )?[.sxFEX]+\s*\[\s*\d+%\]|[.sxFEX]{2,}|=+ [\w ]+ =+|\s*")


def looks_like_error(text: str) -> bool:
    """Whether a line of `text` mentions an error."""
    return bool(_ERROR_LINE.search(text))


def reports_error(text: str) -> bool:
    """Whether a line of `text` has the form in which compilers and runtimes report an error."""
    return bool(_REPORTS_ERROR.search(text))


def is_test(command: str) -> bool:
    """Whether `command` runs tests or checks, judging by the names of programs and tasks.

    Words inside an argument, such as the message of a commit, count for nothing.
    """
    if _TEST_COMMAND.search(command) is None:
        return False
    programs = programs_run(command)
    return not programs or any(_runs_tests(*one) for one in programs)


def _runs_tests(name: str, arguments: Sequence[str]) -> bool:
    run = " ".join((name, *(word for word in arguments if " " not in word)))
    return _TEST_COMMAND.search(run) is not None


def test_counts(text: str) -> str:
    """The last line of a test run's output that counts tests; empty if there is none."""
    lines = (line.strip() for line in reversed(text.split("\n")))
    return next((line.strip("= ") for line in lines if _TEST_RESULT.search(line)), "")


def results_of_tests(command: str, text: str) -> str:
    """The lines in the output of `command` that count tests, one for each test run in it."""
    runs = sum(any(_runs_tests(*one) for one in pipeline) for pipeline in pipelines_run(command))
    lines = [line.strip() for line in text.split("\n")]
    found = [line.strip("= ") for line in lines if _TEST_RESULT.search(line)]
    return "; ".join(found[-max(runs, 1) :])


def without_progress(text: str) -> str:
    """`text` without the dots that a test run prints, and without headings."""
    lines = (line for line in text.split("\n") if not _PROGRESS.fullmatch(line))
    return "\n".join(lines)


_ABORTED = ("Command aborted", "Operation aborted")
"""How pi's text of a call ends that the user interrupted."""


def last_line(output: str) -> str:
    """The last line of `output` that says something; a command that it repeats says nothing."""
    lines = (line.strip() for line in reversed(output.split("\n")))
    silent = (_SAYS_NOTHING, _ECHO)
    return next((line for line in lines if line and not any(p.match(line) for p in silent)), "")


def fails_tests(output: str) -> bool:
    """Whether a test run's `output` counts failures, even if a later program hid its exit code."""
    return bool(_SOME_FAILED.search(test_counts(output)))


def names_error(line: str) -> bool:
    """Whether `line` says which error occurred or where, not only that one did."""
    return bool(_NAMES_ERROR.search(line))


def without_place(line: str) -> str:
    """The message in `line`, without the place of the error at its beginning."""
    return _PLACE.sub("", line, count=1)


def warning_lines(output: str, most: int) -> list[str]:
    """The first `most` lines of `output` that are warnings, each once."""
    found = (line.strip() for line in output[-20_000:].split("\n") if _WARNING.match(line))
    lines = dict.fromkeys(line for line in found if len(line) <= _LONGEST_ERROR_LINE)
    return list(lines)[:most]


def error_text(output: str) -> str:
    """The `error_lines` on one line."""
    return one_line(" | ".join(error_lines(output)), 300)


def error_lines(output: str, most: int = 3, *, around: int = 0) -> list[str]:
    """The lines that say what went wrong, in order.

    Those that name the error or begin with a place in a file have priority, the first and the last
    of them; then the last ones that mention an error, or the end. A message below its place is on
    the same line.

    Args:
        output: What the action put out.
        most: Limit of the lines.
        around: Number of lines to add before and after the first one, which may have its text. If
            any, so does the paragraph that it begins, or the next one, up to another error.
    """
    lines = [line.strip() for line in output[-20_000:].split("\n")]
    lines = [line for line in lines if line and not _SAYS_NOTHING.match(line)]
    lines = _with_message(line for line in lines if not _ECHO.match(line)) or lines
    if not lines or _NO_ERROR.match(lines[0]) or _NO_ERROR.match(lines[-1]):
        return []
    distinct: dict[str, str] = {}
    for line in [line for line in lines if len(line) <= _LONGEST_ERROR_LINE] or lines:
        distinct.setdefault(without_place(line)[-_END_CHARS:], line)
    short = list(distinct.values())
    naming = [at for at, line in enumerate(short) if _NAMES_ERROR.search(line)]
    last = most // 2
    naming = naming if len(naming) <= most else [*naming[: most - last], *naming[-last:]]
    others = [at for at, line in enumerate(short) if _ERROR_LINE.search(line) and at not in naming]
    chosen = {*naming, *others[max(len(others) - most + len(naming), 0) :]} or {len(short) - 1}
    first = min(chosen)
    chosen.update(range(max(first - around, 0), min(first + around + 1, len(short))))
    paragraph = output.partition(short[first])[2].strip().partition("\n\n")[0] if around else ""
    for at in range(first + 1, min(first + 1 + _PARAGRAPH_LINES, len(short))):
        if short[at] not in paragraph or _NAMES_ERROR.search(short[at]):
            break
        chosen.add(at)
    return [short[at] for at in sorted(chosen)]


def _with_message(lines: Iterable[str]) -> list[str]:
    """`lines`, each that has only a place joined with the message below it."""
    joined = list[str]()
    for line in lines:
        if joined and _PLACE_ALONE.match(joined[-1]) and not _NAMES_ERROR.match(line):
            joined[-1] = f"{joined[-1].rstrip('━─═ ')} {line}"
        else:
            joined.append(line)
    return joined


_EDITOR_COMMANDS: dict[str, ActionKind] = {
    "view": "read",
    "create": "write",
    "str_replace": "edit",
    "insert": "edit",
    "undo_edit": "edit",
}
"""One tool for several kinds (``str_replace_editor`` and its successors): ``command`` decides."""

_COMMAND_ARGUMENTS = ("command", "cmd", "code", "script")


def action_of(call: ToolCall) -> Action:
    """The action that `call` requests; ``other`` if its name is unknown."""
    command = call.arguments.get("command")
    kind = tool_kind(call.name)
    if "path" in call.arguments and isinstance(command, str):
        kind = _EDITOR_COMMANDS.get(command, kind)
    path = _first_text(call.arguments, PATH_ARGUMENTS)
    command = _first_text(call.arguments, _COMMAND_ARGUMENTS) if kind == "run" else ""
    return Action(call.name, kind, path, command, call.arguments)


def run_action(tool: str, command: str) -> Action:
    """A command that was run without a tool call."""
    return Action(tool, "run", command=command, arguments={"command": command})


def file_key(path: str) -> str:
    """`path` normalized without access to the disk; relative paths stay relative."""
    text = path.strip().removeprefix("@")
    return os.path.normpath(text) if text else ""


def _first_text(arguments: JsonObject, names: tuple[str, ...]) -> str:
    for name in names:
        value = arguments.get(name)
        if isinstance(value, str) and value:
            return value
        if name == "command" and isinstance(value, list):
            return " ".join(part for part in value if isinstance(part, str))
    return ""


_OPENING = re.compile(
    r"\s*(?:<returncode>|<output>|<warning>|<function_results>|<tool_(?:result|response|output)>"
    r"|OBSERVATION:|Observation:|EXECUTION RESULT of \[)"
)
_RETURN_CODE = re.compile(r"<returncode>\s*(-?\d+)\s*</returncode>|\bexit (?:code|status) (\d+)")
_FENCED = re.compile(r"^```[^\n`]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
_LOOKED_AT_CHARS = 400

_CODEX_HEAD = re.compile(
    r"(?:[A-Z][a-z]+[\w ]{0,30}(?:: | exited with code )[^\n]*\n){1,8}Output:\n"
)
"""What Codex puts before an output: ``Chunk ID: 3f0a``, ``Wall time: 0.1 seconds``, ..."""

_REMINDER, _REMINDER_END = "<system-reminder>", "</system-reminder>"
"""What Claude Code puts behind an output."""


def action_before(message: UserMessage, before: AssistantMessage | None) -> Action | None:
    """The action whose result `message` is; None if a user wrote it.

    It is a result if it begins like one and the reply before it requested a command in a fenced
    block instead of a call.
    """
    if before is None or before.tool_calls or not _OPENING.match(message.text[:_LOOKED_AT_CHARS]):
        return None
    blocks = _FENCED.findall(before.text)
    return run_action("bash", blocks[-1].strip()) if blocks else None


def exit_code_in(text: str) -> int | None:
    """The exit code in a recorded result; None if there is none."""
    found = _RETURN_CODE.search(text[:_LOOKED_AT_CHARS])
    return int(found[1] or found[2]) if found else None


def read_outputs(messages: Sequence[Message]) -> list[Output | None]:
    """For each message, its output if it is the result of an action, else None.

    Args:
        messages: In the order the model sees them: results directly after their reply.
    """
    outputs: list[Output | None] = []
    waiting: list[ToolCall] = []
    reply: AssistantMessage | None = None
    for message in messages:
        before, reply = reply, None
        output: Output | None = None
        match message:
            case AssistantMessage():
                waiting, reply = list(message.tool_calls), message
            case ToolResultMessage():
                output = _of_result(message, waiting)
            case BashExecutionMessage():
                action = run_action("bash", message.command)
                output = _ran(action, message.output, message.exit_code)
                if message.cancelled:
                    output = replace(output, ending="cancelled")
            case UserMessage():
                if action := action_before(message, before):
                    output = _ran(action, message.text, exit_code_in(message.text))
        outputs.append(output)
    return outputs


def _of_result(result: ToolResultMessage, waiting: list[ToolCall]) -> Output:
    """The output in `result`; its call is removed from `waiting`.

    The end of a job is the output of the command that became the job.
    """
    call = next((call for call in waiting if call.id == result.tool_call_id), None)
    if call is None:
        call = ToolCall(id=result.tool_call_id, name=result.tool_name)
    else:
        waiting.remove(call)
    action = action_of(call)
    details = result.details if isinstance(result.details, dict) else {}
    known = result.tool_details
    job = known.jobs[0] if len(known.jobs) == 1 and known.exit_code is None else None
    if not action.command and len(known.jobs) == 1 and known.jobs[0].ending:
        action = run_action("bash", known.jobs[0].command)
    files = known.files if "files" in details else None
    exit_code, summary = details.get("exitCode"), details.get("summary")
    return Output(
        action=action,
        text=_without_frame(result.text),
        has_failed=result.is_error,
        exit_code=exit_code if isinstance(exit_code, int) else None,
        summary=summary if isinstance(summary, str) else "",
        is_truncated=bool(details.get("truncated") or details.get("truncation")),
        file_key=files.read[0] if files and len(files.read) == 1 else file_key(action.path),
        files=files,
        images=len(images_in(result.content)),
        said=tuple(_said_about(action, result.text, known)),
        ending="cancelled" if result.is_error and result.text.endswith(_ABORTED) else known.ending,
        refusal=known.refusal,
        job="" if job is None else "stopped" if job.ending else "running",
    )


def _without_frame(text: str) -> str:
    """`text` without what other agents put around an output."""
    if head := _CODEX_HEAD.match(text):
        text = text[head.end() :]
    if _REMINDER_END in text[-2 * len(_REMINDER_END) :] and _REMINDER in text:
        text = text[: text.rindex(_REMINDER)].rstrip("\n")
    return text


def _said_about(action: Action, text: str, details: ToolDetails) -> Iterator[str]:
    """What the user said about `action`, each with what it refers to.

    Sessions of earlier versions have it only in the texts that the program wrote itself.
    """
    is_declined = details.ending == "declined"
    words = details.user_words or (words_in(text) if is_declined else "")
    if words:
        yield f"{'refused' if is_declined else 'said about'} {_subject(action)}: {words}"
    for host, why in details.refused_hosts.items():
        if words := words_in(why):
            yield f"refused network access to {host}: {words}"


def _subject(action: Action) -> str:
    if action.command:
        return f"$ {one_line(action.command, _SUBJECT_CHARS)}"
    target = one_line(action.path, _SUBJECT_CHARS)
    return f"{action.tool} of {target}" if target else action.tool


def _ran(action: Action, text: str, exit_code: int | None) -> Output:
    return Output(action, text, has_failed=exit_code not in (None, 0), exit_code=exit_code)
