"""The `bash` tool: one shell command in the workspace."""

import asyncio
import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field

from agent_tui.messages import ToolDetails
from agent_tui.tools.base import Intent, ToolArguments, ToolContext, ToolError, ToolOutput
from agent_tui.tools.git.changes import GitChanges, Snapshot
from agent_tui.tools.processes.keeper import ProcessKeeper
from agent_tui.tools.processes.sandbox import NOTE, Sandbox, refusal_hint
from agent_tui.tools.processes.shell import MAX_KEPT_BYTES, ShellResult, run_shell

_LONGEST_TIMEOUT_S = 3_600


class BashArguments(ToolArguments):
    """Arguments of `bash`."""

    command: str = Field(min_length=1)
    timeout: float | None = Field(
        default=None, gt=0, le=_LONGEST_TIMEOUT_S, description="seconds, default 120"
    )


@dataclass(frozen=True, slots=True)
class BashTool:
    """Runs commands without a terminal; see `run_shell` for what bounds them.

    Those of the model run in `sandbox`, where there is one. The files a command changed are found
    by `changes`, however the command ended; one that only reads is not held up by that.
    """

    keeper: ProcessKeeper
    changes: GitChanges
    sandbox: Sandbox | None = None
    name: str = "bash"
    arguments_type: type[BashArguments] = BashArguments

    def intent(self, arguments: BashArguments, context: ToolContext) -> Intent:
        """The exact command; what it may touch is for the approvals to find out."""
        command = arguments.command
        if "\0" in command:
            raise ToolError("command holds a NUL character, which no command can.")
        sandbox = None if context.is_persons else self.sandbox
        if sandbox is not None and (refusal := sandbox.refusal(context.cwd)):
            raise ToolError(f"{refusal}.")
        is_boxed = sandbox is not None and sandbox.state(context.cwd).is_on
        bound = "\0".join((command, str(context.cwd.resolve()), str(is_boxed)))
        return Intent(
            title=" ".join(command.split()),
            access="execute",
            command=command,
            body=command,
            body_kind="command",
            note=NOTE if is_boxed else "",
            fingerprint=hashlib.sha256(bound.encode("utf-8", "surrogatepass")).hexdigest(),
        )

    async def run(self, arguments: BashArguments, context: ToolContext) -> ToolOutput:
        """Output, shortened if long, and how it ended."""
        prefix: tuple[str, ...] = ()
        if self.sandbox is not None and not context.is_persons:
            prefix = await asyncio.to_thread(self.sandbox.prefix, context.cwd)
        files = context.files
        known: tuple[Path, ...] = ()
        before: Snapshot | None = None
        if not context.only_reads:
            if not context.is_persons:
                known = await asyncio.to_thread(files.known_as_they_are)
            before = await self.changes.snapshot(context.cwd, context.environ)
        result = await run_shell(
            self.keeper,
            arguments.command,
            prefix=prefix,
            cwd=context.cwd,
            environ=context.environ,
            timeout_s=arguments.timeout or context.default_timeout_s,
            output_dir=context.output_dir,
            emit=context.emit,
            limits=context.limits,
            secrets=context.secrets,
        )
        await asyncio.to_thread(
            files.note_command, known, arguments.command, result.text, context.cwd
        )
        path = result.full_output_path
        details = ToolDetails(
            summary=result.ending,
            exit_code=result.exit_code,
            truncated=result.is_cut,
            full_output_path=None if path is None else os.fspath(path),
            files=await self.changes.since(before),
        )
        is_error = result.exit_code != 0
        hint = refusal_hint(result.text) if prefix and is_error else ""
        return ToolOutput(_for_model(result, hint), details, is_error=is_error)


def _for_model(result: ShellResult, hint: str) -> str:
    lines = [result.text or "(no output)"]
    if path := result.full_output_path:
        at_most = f", at most {MAX_KEPT_BYTES // 1_000_000} MB" if result.is_cut else ""
        lines.append(f"[whole output{at_most}: {path}]")
    if hint:
        lines.append(f"[{hint}]")
    return "\n".join([*lines, f"[{result.ending}]"])
