"""The bar of the context map: cells shared out by what fills the window."""

from agent_tui.commands.context import Part, PartKind


def bar_cells(parts: tuple[Part, ...], width: int) -> list[tuple[PartKind, int]]:
    """`width` cells shared out by tokens; every part that is not empty gets one at least."""
    total = sum(part.tokens for part in parts)
    if total == 0 or width <= 0:
        return [("free", max(width, 0))]
    shares: list[tuple[PartKind, int]] = [
        (part.kind, max(round(part.tokens * width / total), 1)) for part in parts if part.tokens
    ]
    spare = width - sum(cells for _, cells in shares)
    while spare:
        widest = max(range(len(shares)), key=lambda i: shares[i][1])
        step = spare if spare > 0 else -1
        shares[widest] = (shares[widest][0], shares[widest][1] + step)
        spare -= step
    return shares
