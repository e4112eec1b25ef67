"""What comes of files that a command made and programs outside would obey: the person decides."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from agent_tui.agent.activity import Emit
from agent_tui.agent.turn.pending_approvals import ApprovalAnswer
from agent_tui.errors import ToolError
from agent_tui.events import Notice
from agent_tui.messages import ToolCall
from agent_tui.permissions.engine import PermissionEngine, Verdict
from agent_tui.tools.base import Intent, ToolOutput
from agent_tui.tools.sandbox.held import HeldFile

_WRITE = "write"

Ask: TypeAlias = Callable[[ToolCall, Intent, Verdict], Awaitable[ApprovalAnswer]]
Remember: TypeAlias = Callable[[ApprovalAnswer, str], None]


@dataclass(frozen=True, slots=True)
class HeldDecision:
    """Has the person decide on the files that a result tells of as held back.

    A rule that allows writing one puts it in place. In mode full, and where nobody can be asked,
    the others stay aside. `ask` shows them and waits; `remember` keeps a rule.
    """

    permissions: PermissionEngine
    ask: Ask
    remember: Remember
    emit: Emit

    async def decide(self, call: ToolCall, output: ToolOutput, cwd: Path) -> ToolOutput:
        """`output` with what came of its held files."""
        if output.put_in_place is None or not output.held:
            return output
        root = await asyncio.to_thread(cwd.resolve)
        judged = [
            (held, self.permissions.judge(_WRITE, _intent((held,), root))) for held in output.held
        ]
        placed = [held for held, v in judged if v.decision == "allow" and v.by == "rule"]
        asked = [held for held, v in judged if v.decision == "ask"]
        said: list[str] = []
        if asked and self.permissions.mode != "full":
            intent = _intent(asked, root)
            verdict = self.permissions.judge(_WRITE, intent)
            why = "; ".join(dict.fromkeys(held.who for held in asked))
            answer = await self.ask(call, intent, replace(verdict, why=f"held back: {why}"))
            if answer.choice == "no":
                said += [f"They say: {answer.words}"] if answer.words else []
            else:
                self.remember(answer, verdict.session_rule)
                placed += asked
        for held in output.held:
            said.append(await self._settle(held, output, is_placed=held in placed, root=root))
        return replace(output, for_model="\n".join((output.for_model, *said)), held=())

    async def _settle(
        self, held: HeldFile, output: ToolOutput, *, is_placed: bool, root: Path
    ) -> str:
        shown = _shown(held, root)
        if not is_placed:
            self.emit(Notice("warning", f"{shown} was held back ({held.who}): {held.aside}"))
            return f"[{shown} was not put in place. Do not try another way.]"
        assert output.put_in_place is not None
        try:
            await output.put_in_place(held)
        except ToolError as error:
            self.emit(Notice("warning", f"{error} ({held.aside})"))
            return f"[{error}]"
        return f"[{shown} was put in place, as the user allowed it]"


def _intent(held: Sequence[HeldFile], root: Path) -> Intent:
    return Intent(
        title=", ".join(_shown(file, root) for file in held),
        access="write",
        paths=tuple(path for file in held for path in file.files or (file.path,)),
        body="".join(file.diff for file in held),
        body_kind="diff",
        fingerprint="".join(file.digest for file in held),
    )


def _shown(held: HeldFile, root: Path) -> str:
    path = held.path
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)
