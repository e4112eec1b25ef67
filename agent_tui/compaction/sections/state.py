"""The state of the work as far as the log shows it: plan, tracker, commit, tests."""

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from pydantic import JsonValue

from agent_tui.compaction.ledger.files import normalise_path
from agent_tui.compaction.sections.commands import (
    PassedRuns,
    Runs,
    is_check,
    runs_of,
    without_folder,
)
from agent_tui.compaction.sections.failures import has_failed
from agent_tui.compaction.sections.file_states import COMMIT_LINE
from agent_tui.compaction.sections.file_views import folder_of
from agent_tui.compaction.sections.history import Done, HistoryEvent
from agent_tui.compaction.sections.task import state_named, tracker_orders
from agent_tui.messages import Job, JsonObject
from agent_tui.omissions import one_line
from agent_tui.sessions.actions import Action, Output
from agent_tui.sessions.entries import RepositoryState, WorkState
from agent_tui.sessions.outputs import last_line, results_of_tests
from agent_tui.sessions.shell_files import programs_run

_ON_BRANCH = re.compile(r"^On branch (\S+)$|^Switched to (?:a new )?branch '([^']+)'", re.MULTILINE)
_TITLE_MARKS = re.compile(r"^(?:\[[ x~]\]|[^\w\[]|_)*")
_STATUS = re.compile(r"\s+\[[^\[\]]*\]\s*$")
"""The status of an item in a list, after its title: ``[P1 · OPEN]``. It may be outdated."""
_CREATED = re.compile(r"#(\d{1,6}) created\b")
_MOST_ITEMS = 60
_MOST_COMMITS = 5
_MOST_SHOWN_COMMITS = 10
_MOST_UNCOMMITTED = 12
_AS_LOGGED = ", as of the log"
_REBASED = " (before a later rebase)"
"""Git moved its branch since, and has not named it by this hash again."""

_MOVED = re.compile(r"\bupdated refs/heads/(\S+?)\.?$", re.MULTILINE)
"""What git prints of the branch that it rebased."""

_HASH = re.compile(r"^[*|/\\ ]*(?:commit )?([0-9a-f]{7,40})\b(?! HEAD@)", re.MULTILINE)
"""A commit that git lists, but for the record of what was where (``git reflog``)."""

_BACK = re.compile(r"HEAD(?:~(?P<count>\d*)|(?P<parents>\^+))")
"""Ancestors of HEAD, as ``git rev-parse`` names them: ``HEAD~2``, ``HEAD^``."""

_LOGGED = re.compile(
    r"^[*|/\\ ]*(?:commit )?(?P<hash>[0-9a-f]{7,40})(?: \([^()\n]*\))?"
    r"(?:\n(?:[*|/\\ ]*\w+: .*\n)+[*|/\\ ]*\n {4}| )(?P<subject>\S.*)$",
    re.MULTILINE,
)
"""A commit as ``git log`` shows it, in one line and in several."""

_LISTED = re.compile(r"^\W*([\w.-]+) \[([\w -]+)\] ", re.MULTILINE)
"""An item in a tracker's list: ``#3 [completed] Grind the corn``."""

STEP_NAMES = ("text", "content", "step")
"""Names that a step of a plan has for its text, by program."""

_PASSED = "passed without a message"
_MOST_TESTS = 3
_TITLE_CHARS = 120
_RESULT_CHARS = 160
_LOOKED_AT_CHARS = 20_000


class StateReader:
    """Reads a conversation in order.

    Args:
        earlier: The state that a parent session passed on.
        folders: Paths of the working folder.
    """

    def __init__(self, earlier: WorkState | None = None, folders: Sequence[str] = ("/",)) -> None:
        self._state = (earlier or WorkState()).model_copy(update={"jobs": {}}, deep=True)
        self._is_before_commit = self._state.is_before_commit
        self._tests = [(run, result, False) for run, result in self._state.tests.items()]
        self._folders = folders
        self._made_on = dict[str, str]()

    def read(self, events: Iterable[HistoryEvent]) -> WorkState:
        """The state after `events`, without background commands."""
        for event in events:
            if isinstance(event, Done):
                self._read(event.output)
        state = self._state
        newest = {"items": _MOST_ITEMS, "commits": _MOST_COMMITS}
        kept = {name: dict(list(getattr(state, name).items())[-n:]) for name, n in newest.items()}
        titles = {item: state.titles[item] for item in state.items if item in state.titles}
        kept["tests"] = self._newest_tests()
        age = {"is_before_commit": self._is_before_commit}
        return state.model_copy(update={**kept, "titles": titles, **age})

    def _read(self, output: Output) -> None:
        action, text = output.action, output.text[-_LOOKED_AT_CHARS:]
        if (todos := steps_in_plan(action.arguments)) and not output.has_failed:
            plan = dict(step for todo in todos if (step := _step(todo)))
            self._state = self._state.model_copy(update={"plan": plan})
            self._is_before_commit = False
        folder = normalise_path(folder_of(action.command), self._folders)
        folder = folder if folder.startswith("/") else ""
        if not output.has_failed:
            self._follow_tracker(action, output.text)
            self._follow_history(action.command, text, self._state.branches.get(folder, ""))
            self._follow_log(text, action.command)
        if not action.command:
            return
        for branch, commit, message in COMMIT_LINE.findall(text):
            if branch != "detached HEAD":
                self._state.branches[folder] = branch
            self._state.commits[commit] = one_line(message, _TITLE_CHARS)
            self._made_on[commit] = branch
            self._is_before_commit = True
        if found := list(_ON_BRANCH.finditer(text)):
            self._state.branches[folder] = found[-1][1] or found[-1][2]
        if is_check(action.command):
            self._note_test(output, text)

    def _follow_history(self, command: str, text: str, branch: str) -> None:
        """Remove the commits that `command` replaced or undid; mark those of a `branch` it moved.

        `text` is what it printed.
        """
        commits = self._state.commits
        for program, arguments in programs_run(command):
            if program != "git":
                continue
            rebases = "rebase" in arguments or {"pull", "--rebase"} <= set(arguments)
            moved = (_MOVED.findall(text) or [branch])[-1]
            for commit, subject in commits.items() if rebases and "up to date" not in text else ():
                if self._made_on.get(commit, moved) == moved:
                    commits[commit] = f"{subject.removesuffix(_REBASED)}{_REBASED}"
            amends = "commit" in arguments and "--amend" in arguments
            steps = _steps_back(arguments) if "reset" in arguments else int(amends)
            for commit in list(commits)[-steps:] if steps else ():
                del commits[commit]

    def _follow_log(self, text: str, command: str) -> None:
        """Replace the hashes of commits whose subjects `text` shows under new hashes.

        One that `command` lists without being asked, or that a branch contains, was not moved.
        """
        commits = self._state.commits
        contains = bool(text.strip()) and "--contains" in command
        listed = {hash[:7] for hash in _HASH.findall(text)}
        for commit, subject in commits.items():
            if contains if commit[:7] in command else commit[:7] in listed:
                commits[commit] = subject.removesuffix(_REBASED)
        shown = {hash: one_line(s, _TITLE_CHARS) for hash, s in _LOGGED.findall(text)}
        known = {new: old for new in shown for old in commits if new[:7] == old[:7]}
        fresh = {new: subject for new, subject in shown.items() if new not in known}
        moved: dict[str, str] = {}
        for commit, subject in reversed(commits.items()):  # a log, too, begins with the newest
            same = (n for n in fresh if fresh[n] == subject.removesuffix(_REBASED))
            if commit not in known.values() and (new := next(same, "")):
                moved[commit] = new
                del fresh[new]
        now = {
            moved.get(commit, commit): shown.get(moved.get(commit, ""), text)
            for commit, text in commits.items()
        }
        commits.clear()
        commits.update(now)

    def _follow_tracker(self, action: Action, text: str) -> None:
        subject, made = action.arguments.get("subject"), _CREATED.search(text)
        if isinstance(subject, str) and made is not None:
            self._state.items[made[1]] = "open"
            self._state.titles[made[1]] = one_line(subject, _TITLE_CHARS)
        if action.kind == "other" and not action.command:
            for item, word in _LISTED.findall(text):
                if item in self._state.items and (state := state_named(word)):
                    self._state.items[item] = state
        for order in tracker_orders(action):
            self._is_before_commit &= order.state != "in progress"
            for item in order.items:
                if order.state:
                    self._state.items.pop(item, None)
                    self._state.items[item] = order.state
                if item not in self._state.titles and (title := _title(item, text)):
                    self._state.titles[item] = title

    def _note_test(self, output: Output, text: str) -> None:
        if output.ending == "cancelled" or output.job == "running":
            return
        result, has_passed = (
            results_of_tests(output.action.command, text),
            not (output.job or has_failed(output)),
        )
        if output.job:
            result = f"{output.summary}; {result or last_line(text)}".removesuffix("; ")
        elif output.exit_code is not None and not (has_passed and result):
            result = f"exit {output.exit_code} {result}".strip()
        elif output.has_failed:
            result = f"failed {result}".strip()
        result = result or last_line(text) or (_PASSED if has_passed else "")
        command = without_folder(output.action.command)
        self._tests.append((command, one_line(result, _RESULT_CHARS), has_passed))

    def _newest_tests(self) -> dict[str, str]:
        """The newest results by command, without those that a later run of the same renews."""
        seen, passed, found = set[Runs](), PassedRuns(), list[tuple[str, str]]()
        for command, result, has_passed in reversed(self._tests):
            runs = runs_of(command)
            if result and runs not in seen and not passed.cover(runs):
                found.append((command, result))
            if len(found) == _MOST_TESTS:
                break
            seen.add(runs)
            passed.add(runs if has_passed else ())
        return dict(reversed(found))


def steps_in_plan(arguments: JsonObject) -> Sequence[JsonValue]:
    """The steps of the whole plan that a call with `arguments` writes; empty if it writes none."""
    found = arguments.get("todos") or arguments.get("plan")
    return found if isinstance(found, list) else ()


def lines_of_done(state: WorkState) -> list[str]:
    """What is finished, one line each."""
    lines = [f"- [x] {step}" for step, status in state.plan.items() if status == "completed"]
    done = (item for item, status in state.items.items() if status == "done")
    return lines + [f"- [x] {_item(item, state)}" for item in done]


def items_begun(state: WorkState | None) -> list[str]:
    """Tracker items that are in progress."""
    items = state.items.items() if state is not None else ()
    return [item for item, status in items if status == "in progress"]


def in_progress_lines(state: WorkState) -> list[str]:
    """What is in progress, one line each; a commit that came later may have finished it."""
    steps = [step for step, status in state.plan.items() if status == "in_progress"]
    begun = [_item(item, state) for item in items_begun(state)]
    when = " before the last commit" if state.is_before_commit else ""
    return [f"- [ ] {step} (in progress{when})" for step in (*steps, *begun)]


def _steps_back(arguments: Sequence[str]) -> int:
    """How many commits before HEAD the first of `arguments` that names one is; 0 if none does."""
    found = next(filter(None, map(_BACK.fullmatch, arguments)), None)
    if found is None:
        return 0
    return len(found["parents"]) if found["parents"] else int(found["count"] or 1)


def pending_lines(state: WorkState) -> list[str]:
    """What has not been started, without marks."""
    lines = [step for step, status in state.plan.items() if status == "pending"]
    return lines + [_item(i, state) for i, status in state.items.items() if status == "open"]


def check_lines(state: WorkState) -> list[str]:
    """Newest test results, the newest first, and running background commands, one line each."""
    lines = [f"- `{command}` -> {result}" for command, result in reversed(state.tests.items())]
    return lines + [_running(job) for job in state.jobs.values()]


def commit_lines(state: WorkState, repositories: Sequence[RepositoryState]) -> list[str]:
    """The session's commits, one line each: those git names, else those of the log."""
    if not repositories:
        return [f"- [x] commit {id}{_AS_LOGGED}: {text}" for id, text in state.commits.items()]
    newest = (list(one.commits.items())[-_MOST_SHOWN_COMMITS:] for one in repositories)
    return [f"- [x] commit {id}: {subject}" for commits in newest for id, subject in commits]


def repository_lines(
    state: WorkState, repositories: Sequence[RepositoryState], folders: Sequence[str]
) -> list[str]:
    """Branch, HEAD and uncommitted files of each repository; without git's word, the branches."""
    if repositories:
        return [line for one in repositories for line in _as_git_says(one, folders)]
    return [
        f"- branch{f' in {folder}' if folder else ''}{_AS_LOGGED}: {branch}"
        for folder, branch in state.branches.items()
    ]


def _as_git_says(repository: RepositoryState, folders: Sequence[str]) -> tuple[str, str]:
    name = normalise_path(repository.root, folders)
    parts = [
        f"branch {repository.branch}" if repository.branch else "no branch",
        f"HEAD {repository.head}" if repository.head else "no commit yet",
    ]
    if repository.upstream:
        ahead, behind = repository.ahead, repository.behind
        apart = f"{ahead} ahead and {behind} behind" if ahead or behind else "level with"
        parts.append(f"{apart} {repository.upstream} as last fetched")
    more = repository.changed - _MOST_UNCOMMITTED
    listed = ", ".join(repository.uncommitted[:_MOST_UNCOMMITTED])
    listed += f" and {more} more" if more > 0 else ""
    return (
        f"- git{f' in {name}' if name else ''}: {', '.join(parts)}",
        f"- uncommitted: {listed or 'nothing'}",
    )


def _running(job: Job) -> str:
    since = datetime.fromtimestamp(job.since / 1_000, UTC)
    return f"- background job {job.id} running since {since:%Y-%m-%d %H:%M} UTC: `{job.shown}`"


def _item(item: str, state: WorkState) -> str:
    title = state.titles.get(item, "")
    return f"{item}: {title}" if title else item


def _step(todo: JsonValue) -> tuple[str, str] | None:
    if not isinstance(todo, dict):
        return None
    text = next((todo[name] for name in STEP_NAMES if todo.get(name)), None)
    status = todo.get("status")
    if not isinstance(text, str):
        return None
    known = {"completed": "completed", "done": "completed", "in_progress": "in_progress"}
    return one_line(text, 2 * _TITLE_CHARS), known.get(str(status), "pending")


def _title(item: str, text: str) -> str:
    """The rest of the first line of `text` that names `item`, as its title."""
    pattern = re.compile(rf"(?<![\w.-]){re.escape(item)}(?![\w-]|\.\d)")
    for line in text[:_LOOKED_AT_CHARS].split("\n"):
        if found := pattern.search(line):
            rest = _STATUS.sub("", _TITLE_MARKS.sub("", line[found.end() :])).strip()
            if len(rest.split()) > 1:
                return one_line(rest, _TITLE_CHARS)
    return ""
