"""What an approval shows: the exact command, or the change as a coloured diff."""

from rich.segment import Segment
from rich.style import Style

from agent_tui.events import ApprovalRequest
from agent_tui.safe_text import safe_text
from agent_tui.ui.diff.view import diff_lines, parse_diff
from agent_tui.ui.styled_lines import Line, prefixed, wrap
from agent_tui.ui.theme.palette import Palette
from agent_tui.ui.transcript.blocks import AssistantBlock
from agent_tui.ui.transcript.code import CodePainter
from agent_tui.ui.transcript.markdown import markdown_parser
from agent_tui.ui.transcript.painter import BlockPainter


def approval_lines(request: ApprovalRequest, width: int, palette: Palette) -> list[Line]:
    """Rows of `width` cells with every byte of the body visible, however it tries to hide."""
    match request.body_kind:
        case "diff":
            rows = parse_diff(request.body, is_whole=True)
            heads = [row for row in rows if row.kind == "file"]
            if len(heads) == 1 and heads[0].text in request.title:  # it would only repeat the name
                rows = rows[1:]
            return diff_lines(rows, width, palette, CodePainter(palette).inks)
        case "command":
            prompt, indent = Segment("$ ", palette.muted), Segment("  ")
            rows = _wrapped(request.body, palette.strong, width - 2)
            return prefixed(rows, [prompt], [indent])
        case "text":
            return _wrapped(request.body, palette.text, width)
        case "plan":
            painter = BlockPainter(palette, markdown_parser(), width, show_thinking=False)
            return painter.paint(AssistantBlock(request.body), is_expanded=True)


def _wrapped(text: str, style: Style, width: int) -> list[Line]:
    return [
        row
        for line in safe_text(text).split("\n")
        for row in wrap([Segment(line, style)], width, words=False)
    ]
