"""What an approval shows: the exact command, or the change as a coloured diff."""

from textual.content import Content

from agent_tui.events import ApprovalRequest
from agent_tui.ui.sanitise import safe_text


def approval_body(request: ApprovalRequest) -> Content:
    """The body with everything in it visible, however it tries to hide."""
    match request.body_kind:
        case "diff":
            return _diff(request.body)
        case "command":
            lines = safe_text(request.body).split("\n")
            return Content("\n").join(
                Content.assemble(
                    ("$ " if number == 0 else "  ", "$foreground-muted"), (line, "bold")
                )
                for number, line in enumerate(lines)
            )
        case "text":
            return Content(safe_text(request.body))


def _diff(text: str) -> Content:
    return Content("\n").join(
        Content.assemble((safe_text(line), _diff_style(line)))
        for line in text.rstrip("\n").split("\n")
    )


def _diff_style(line: str) -> str:
    if line.startswith(("+++", "---")):
        return "$foreground-muted"
    if line.startswith("@@"):
        return "$text-accent"
    return {"+": "$text-success", "-": "$text-error"}.get(line[:1], "$foreground")
