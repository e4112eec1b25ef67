"""What a project's prompt file may send along: nothing of the person's that they did not name."""

from pathlib import Path

from agent_tui.agent.mentions import find_mentions
from agent_tui.tools.files.protected import is_secret_name


def unasked_mention(text: str, argument: str, cwd: Path, project: Path) -> Path | None:
    """The first file that `text` would attach though neither person nor project gives it.

    A prompt file of a project could mention keys (``@~/.ssh/id_rsa``), which would then be sent
    without a question.

    Args:
        text: What the prompt file made of `argument`.
        argument: What the person wrote; what it mentions is theirs to send.
        cwd: What paths are relative to.
        project: Files below it may go along, but for those whose names speak of keys.
    """
    by_person = {mention.path for mention in find_mentions(argument, cwd)}
    for mention in find_mentions(text, cwd):
        path = mention.path
        is_of_project = path.is_relative_to(project) and not is_secret_name(path.name)
        if path not in by_person and not is_of_project:
            return path
    return None
