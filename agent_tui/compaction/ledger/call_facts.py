"""Facts in the text of an output: its error, and the counts of a test run."""

import re

from agent_tui.compaction.shorten import one_line

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
    r"\w(?:Error|Exception|Warning)\b\S{0,3}:? \S|^\W*(?:fatal )?error\b\W+\w", re.I
)
"""A line that says which error occurred, not only that one did."""

_SAYS_NOTHING = re.compile(
    r"^(?:[\[(]?(?:no output|(?:command |process )?exit(?:ed with)? (?:code|status) \d+)[\])]?"
    r"|</?\w+>(?:-?\d+</\w+>)?|[=_~^!-]{3,}.*[=_~^!-]{3,}|[\W_]+)$",
    re.IGNORECASE,
)
"""Endings, tags around an output, rules and headings."""

_TELLING_LINES = 3
_LONGEST_ERROR_LINE = 400
"""Longer lines are generated or minified text that happens to contain the word."""

_TEST_COMMAND = re.compile(
    r"\b(?:pytest|jest|vitest|mocha|ava|tox|nox|rspec|phpunit|ctest|unittest|nosetests|playwright"
    r"|(?:go|cargo|mix|swift|deno|bun|dotnet|zig|flutter|dart|sbt|mvnw?|gradlew?|make|rake|bazel)"
    r"(?:\s+\S+)*?\s+(?:test|check|verify)\b|(?:npm|pnpm|yarn)\s+(?:run\s+)?t(?:est)?\b)"
)
_TEST_RESULT = re.compile(
    r"\b\d+ (?:\w+ ){0,2}(?:passed|failed|failures?|errors?|skipped|tests?|examples?|ok|passing"
    r"|failing)\b"
    r"|^(?:OK|FAILED|PASS|FAIL|ok|FAIL:)\b|test result:|\bBUILD (?:SUCCESS|FAILURE)",
    re.IGNORECASE,
)


def looks_like_error(text: str) -> bool:
    """Whether a line of `text` mentions an error."""
    return bool(_ERROR_LINE.search(text))


def is_test(command: str) -> bool:
    """Whether `command` runs tests, judging by the names of test runners."""
    return bool(_TEST_COMMAND.search(command))


def counted_tests(text: str) -> str:
    """The last line of a test run's output that counts tests; empty if there is none."""
    lines = (line.strip() for line in reversed(text.split("\n")))
    return next((line.strip("= ") for line in lines if _TEST_RESULT.search(line)), "")


def last_line(output: str) -> str:
    """The last line of `output` that says something."""
    lines = (line.strip() for line in reversed(output.split("\n")))
    return next((line for line in lines if line and not _SAYS_NOTHING.match(line)), "")


def error_text(output: str) -> str:
    """The lines that say what went wrong: the last ones that mention an error, or the end."""
    lines = [line.strip() for line in output[-20_000:].split("\n")]
    lines = [line for line in lines if line and not _SAYS_NOTHING.match(line)]
    if not lines or _NO_ERROR.match(lines[0]) or _NO_ERROR.match(lines[-1]):
        return ""
    short = [line for line in lines if len(line) <= _LONGEST_ERROR_LINE] or lines
    telling = list(dict.fromkeys(line for line in short if _ERROR_LINE.search(line)))
    naming = [line for line in telling if _NAMES_ERROR.search(line)][-_TELLING_LINES:]
    others = [line for line in telling if line not in naming]
    chosen = {*naming, *others[max(len(others) - _TELLING_LINES + len(naming), 0) :]}
    return one_line(" | ".join([x for x in telling if x in chosen] or short[-1:]), 300)
