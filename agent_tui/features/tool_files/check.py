"""What ``agent-tui doctor`` says about the files; it runs none of them."""

from collections.abc import Iterator

from agent_tui import paths
from agent_tui.commands.core.checks import Check, CheckContext
from agent_tui.features.tool_files.folder import UnusableFile, find_files, own_approvals
from agent_tui.features.tool_files.loading import describe_error
from agent_tui.features.tool_files.part import FOLDER

_FIX = "Fix it, then run agent-tui doctor again."


def check_tool_files(context: CheckContext) -> Iterator[Check]:
    """Check the files of the tools folder: which are approved, declined or unusable."""
    approvals = own_approvals()
    here = () if context.cwd is None else (context.cwd,)
    for file in find_files(paths.user_config_dir() / FOLDER, here):
        if isinstance(file, UnusableFile):
            yield Check(file.path.name, "warning", f"{file.path} {file.why}.", _FIX)
            continue
        name = file.path.name
        try:
            compile(file.text, str(file.path), "exec", dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            yield Check(name, "warning", f"{file.path}: {describe_error(error, file.path)}", _FIX)
            continue
        match approvals.is_allowed(file):
            case True:
                yield Check(name, "ok", "approved")
            case False:
                yield Check(name, "info", "declined, not loaded; /reload ask asks again")
            case None:
                yield Check(name, "info", "not approved yet, not loaded; /reload asks")
