"""The `bash` tool: one shell command in the workspace."""

import hashlib
import os
from dataclasses import dataclass, field

from pydantic import Field

from agent_tui.messages import ToolDetails
from agent_tui.tools.base import Intent, ToolArguments, ToolContext, ToolError, ToolOutput
from agent_tui.tools.git_changes import GitChanges
from agent_tui.tools.shell import MAX_KEPT_BYTES, ShellResult, run_shell

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

    The files a command changed are found by `changes`, however the command ended.
    """

    name: str = "bash"
    arguments_type: type[BashArguments] = BashArguments
    changes: GitChanges = field(default_factory=GitChanges)

    def intent(self, arguments: BashArguments, context: ToolContext) -> Intent:
        """The exact command; what it may touch is for the approvals to find out."""
        command = arguments.command
        if "\0" in command:
            raise ToolError("command holds a NUL character, which no command can.")
        bound = "\0".join((command, str(context.cwd.resolve())))
        return Intent(
            title=" ".join(command.split()),
            access="execute",
            command=command,
            body=command,
            body_kind="command",
            fingerprint=hashlib.sha256(bound.encode("utf-8", "surrogatepass")).hexdigest(),
        )

    async def run(self, arguments: BashArguments, context: ToolContext) -> ToolOutput:
        """Output, shortened if long, and how it ended."""
        before = await self.changes.look(context.cwd, context.environ)
        result = await run_shell(
            arguments.command,
            cwd=context.cwd,
            environ=context.environ,
            timeout_s=arguments.timeout or context.default_timeout_s,
            output_dir=context.output_dir,
            emit=context.emit,
            limits=context.limits,
        )
        path = result.full_output_path
        details = ToolDetails(
            summary=result.ending,
            exit_code=result.exit_code,
            truncated=result.is_cut,
            full_output_path=None if path is None else os.fspath(path),
            files=await self.changes.since(before),
        )
        return ToolOutput(_for_model(result), details, is_error=result.exit_code != 0)


def _for_model(result: ShellResult) -> str:
    lines = [result.text or "(no output)"]
    if path := result.full_output_path:
        at_most = f", at most {MAX_KEPT_BYTES // 1_000_000} MB" if result.is_cut else ""
        lines.append(f"[whole output{at_most}: {path}]")
    return "\n".join([*lines, f"[{result.ending}]"])
