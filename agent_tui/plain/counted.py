"""Numbers with what they count."""


def counted(number: int, one: str, many: str = "") -> str:
    """``1 line``, ``2,000 lines``; `many` where that is not `one` and an s."""
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"
