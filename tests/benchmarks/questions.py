"""How often a person is asked about the commands of real sessions, with a sandbox and without.

    python -m tests.benchmarks.questions [FOLDER] [--list] [--json FILE]

The bash commands of the recorded sessions in FOLDER, ``AGENT_TUI_TRAJECTORIES`` or
``../shared/trajectories`` are judged in their order, in each mode; none is run. What counts:

- A command that asks is one question, however many reasons it has. The answer is yes, once.
- *session row*: the first question of a session that offers to let commands write is answered
  with that; *always* answers every question with the widest rule that it offers.
- Without a sandbox the decision on the text is all. With one, a command is judged inside; if it
  then also needs what the sandbox keeps from it, the model has to come to the gate, and that
  is a question, too: a package registry once a session, another host once a session, everything
  else (git with a remote, files elsewhere in the home folder, services) each time.
- What a command needs is told by patterns in this file, which the program does not know. They
  look at the beginnings of commands and at paths, and err on the side of a question.
- *refused* is what a mode denies without a question; its commands count as often as they come.
"""

import argparse
import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal, get_args

from agent_tui.config import PermissionMode, PermissionSettings
from agent_tui.messages import AssistantMessage, ToolCall
from agent_tui.permissions.engine import PermissionEngine
from agent_tui.permissions.verdict import Verdict
from agent_tui.tools.base import CommandPlace, Intent
from tests.support.importers.formats import read_recorded

_SUFFIXES = (".jsonl", ".json", ".traj")
_TOOLS = frozenset({"bash", "Bash", "run"})
_BEGIN = r"(?:^|[;&|(\n]|\bdo|\bthen|\btime|\bsudo)\s*(?:\w+=\S*\s+)*"
_REGISTRY = re.compile(
    _BEGIN + r"(?:(?:python3?\s+-m\s+)?pip3?\s+(?:install|download)|uv\s+(?:add|sync|pip|lock)"
    r"|(?:npm|pnpm|yarn|bun)\s+(?:i|install|ci|add|update|outdated|view)\b|npx\b|mix\s+deps"
    r"|cargo\s+(?:add|fetch|install|update)|go\s+(?:get|mod)|apt(?:-get)?\s|brew\s|gem\s+install)"
)
_HOST = re.compile(_BEGIN + r"(?:curl|wget)\b[^\n;|&]*?https?://([\w.-]+)")
_LOOPBACK = re.compile(r"localhost|127\.|0\.0\.0\.0")
_GATE = re.compile(
    _BEGIN + r"(?:git\s+(?:-\S+\s+\S+\s+)?(?:push|pull|fetch|clone|ls-remote|config|remote\s+\w)"
    r"|gh\s|ssh\b|scp\b|rsync\b|docker\b|podman\b|kubectl\b|systemctl\b|launchctl\b|open\s|sudo\b"
    r"|(?:npm|pnpm|yarn)\s+(?:publish|login|link|version)|bd\s+(?:sync|daemon)|tmux\b|pkill\b)"
)
_PATH = re.compile(
    r"(?:(?<=[\s\"'=:(>@])|^)((?:~|\$HOME|/(?:Users|home|root))(?:/[^\s\"';|&)>]*)?)"
)

Answers = Literal["once", "session row", "always"]


@dataclass(frozen=True)
class Session:
    """One recorded session: where it worked, and the commands it ran."""

    name: str
    cwd: Path
    commands: tuple[str, ...]

    @property
    def home(self) -> Path:
        """The home folder of its person, as far as the path tells."""
        is_of_person = self.cwd.parts[1:2] in (("Users",), ("home",)) and len(self.cwd.parts) > 3
        return Path(*self.cwd.parts[:3]) if is_of_person else Path("/home/somebody")


@dataclass(frozen=True)
class Figure:
    """How often was asked in one mode, and what was refused."""

    mode: str
    has_sandbox: bool
    answers: str
    commands: int
    questions: int
    refused: int


def recorded_sessions(folder: Path) -> Iterator[Session]:
    """The sessions in `folder` that ran commands."""
    for path in sorted(file for file in folder.glob("*/*") if file.suffix in _SUFFIXES):
        recorded = read_recorded(path)
        messages = (getattr(entry, "message", None) for entry in recorded.entries)
        calls = (
            part
            for message in messages
            if isinstance(message, AssistantMessage)
            for part in message.content
            if isinstance(part, ToolCall) and part.name in _TOOLS
        )
        commands = tuple(str(c) for call in calls if (c := call.arguments.get("command")))
        if commands:
            cwd = Path(recorded.header.cwd or "/testbed")
            yield Session(f"{path.parent.name}/{path.name}", cwd, commands)


def needs(command: str, session: Session) -> tuple[str, ...]:
    """What the sandbox keeps from a command: keys of what is asked once, ``gate`` for each time."""
    found = ["registry"] if _REGISTRY.search(command) else []
    found += [f"host {host}" for host in _HOST.findall(command) if not _LOOPBACK.match(host)]
    is_elsewhere = any(_is_elsewhere(path, session) for path in _PATH.findall(command))
    return (*found, "gate") if is_elsewhere or _GATE.search(command) else tuple(found)


def _is_elsewhere(written: str, session: Session) -> bool:
    path = re.sub(r"\A(?:~|\$HOME)", str(session.home), written)
    return not Path(os.path.normpath(path)).is_relative_to(session.cwd)


class Replay:
    """Judges the commands of one session in one mode."""

    def __init__(self, session: Session, mode: PermissionMode, answers: Answers) -> None:
        self._session = session
        self._answers: Answers = answers
        self._known: set[str] = set()
        self._engine = PermissionEngine(
            mode=mode,
            rules=PermissionSettings(),
            workspace=session.cwd,
            project_rules_file=Path(tempfile.gettempdir()) / "nowhere" / "permissions.toml",
            git_risk=lambda _folder: "",
        )

    def open(self, command: str) -> Verdict:
        """The decision on a machine without a sandbox."""
        return self._judged(command, "open")

    def walled(self, command: str) -> Verdict:
        """The decision inside, or at the gate where the command has to go there."""
        inside = self._judged(command, "inside")
        wanted = needs(command, self._session)
        fresh = [each for each in wanted if each != "gate" and each not in self._known]
        self._known |= set(fresh)
        if inside.decision != "allow" or not wanted:
            return inside
        outside = self._judged(command, "outside") if "gate" in wanted else inside
        if fresh and outside.decision == "allow":  # the proxy asks about the name
            is_asked = self._engine.mode in ("ask", "accept-edits")
            return Verdict("ask" if is_asked else "deny", f"network: {fresh[0]}")
        return outside

    def _judged(self, command: str, place: CommandPlace) -> Verdict:
        intent = Intent(command, "execute", command=command, place=place, purpose="as recorded")
        verdict = self._engine.judge("bash", intent)
        if verdict.decision == "ask":
            offered = verdict.part_rules or (verdict.session_rule,)
            is_row = verdict.session_rule == "bash(inside)"
            if self._answers == "always" or (self._answers == "session row" and is_row):
                for rule in offered:
                    self._engine.book.add_session_rule(rule)
        return verdict


def replayed(
    sessions: Sequence[Session], mode: PermissionMode, answers: Answers, *, has_sandbox: bool
) -> Iterator[tuple[str, Verdict]]:
    """Each command with what was decided about it."""
    for session in sessions:
        os.environ["HOME"] = str(session.home)
        replay = Replay(session, mode, answers)
        judge = replay.walled if has_sandbox else replay.open
        for command in session.commands:
            yield command, judge(command)


def measured(sessions: Sequence[Session]) -> Iterator[Figure]:
    """The figures of each mode, without a sandbox and with one."""
    for has_sandbox in (False, True):
        for mode in get_args(PermissionMode):
            for answers in get_args(Answers):
                if answers == "session row" and not (has_sandbox and mode == "ask"):
                    continue
                figure = Figure(mode, has_sandbox, answers, 0, 0, 0)
                for _, verdict in replayed(sessions, mode, answers, has_sandbox=has_sandbox):
                    figure = replace(
                        figure,
                        commands=figure.commands + 1,
                        questions=figure.questions + (verdict.decision == "ask"),
                        refused=figure.refused + (verdict.decision == "deny"),
                    )
                yield figure


def table(figures: Sequence[Figure]) -> Iterator[str]:
    """The lines of a Markdown table."""
    yield "| sandbox | mode | answers | questions per 100 | refused per 100 |"
    yield "|---|---|---|---:|---:|"
    for each in figures:
        shares = (100 * count / each.commands for count in (each.questions, each.refused))
        cells = " | ".join(f"{share:.1f}" for share in shares)
        yield f"| {'yes' if each.has_sandbox else 'no'} | {each.mode} | {each.answers} | {cells} |"


def main(argv: list[str] | None = None) -> int:
    """Measure and print; 1 where there are no sessions."""
    parser = argparse.ArgumentParser(description="Questions per 100 commands of real sessions.")
    default = Path(__file__).parents[2].parent / "shared" / "trajectories"
    default = Path(os.environ.get("AGENT_TUI_TRAJECTORIES") or default)
    parser.add_argument("folder", type=Path, nargs="?", default=default)
    parser.add_argument("--list", action="store_true", help="print each question in the sandbox")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures")
    options = parser.parse_args(argv)
    sessions = list(recorded_sessions(options.folder))
    if not sessions:
        print(f"{options.folder} has no recorded sessions.", file=sys.stderr)
        return 1
    if options.list:
        for command, verdict in replayed(sessions, "ask", "session row", has_sandbox=True):
            if verdict.decision != "allow":
                print(f"{verdict.decision}: {verdict.why[:120]}\n    {command[:160]!r}")
        return 0
    count = sum(len(session.commands) for session in sessions)
    print(f"{count} commands of {len(sessions)} sessions\n")
    figures = list(measured(sessions))
    print("\n".join(table(figures)))
    if options.json is not None:
        options.json.write_text(json.dumps([asdict(each) for each in figures], indent=1), "utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
