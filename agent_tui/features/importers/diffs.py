"""Unified diffs from what other agents write down about a change of one file."""


def creation(path: str, content: str) -> str:
    """The diff from no file to one with `content`; empty without content."""
    return _whole(path, content, "+", "-0,0 +1,{}")


def deletion(path: str, content: str) -> str:
    """The diff from a file with `content` to none; empty without content."""
    return _whole(path, content, "-", "-1,{} +0,0")


def replacement(path: str, before: str, after: str, start: int = 1) -> str:
    """The diff from one text to another, as one hunk; empty if they are the same.

    Args:
        path: The file.
        before: The text, or a part of the file.
        after: What is there instead.
        start: The number of the first line of `before`.
    """
    old, new = _lines(before), _lines(after)
    most = min(len(old), len(new))
    above = next((n for n in range(most) if old[n] != new[n]), most)
    most -= above
    below = next((n for n in range(most) if old[-1 - n] != new[-1 - n]), most)
    gone, come = old[above : len(old) - below], new[above : len(new) - below]
    if not gone and not come:
        return ""
    first = start + above
    places = [f"{first if lines else first - 1},{len(lines)}" for lines in (gone, come)]
    head = f"--- {path}\n+++ {path}\n@@ -{places[0]} +{places[1]} @@\n"
    return head + _signed(gone, "-") + _signed(come, "+")


def _lines(text: str) -> list[str]:
    r"""The lines with their ends; only ``\n`` ends one."""
    lines = [f"{line}\n" for line in text.split("\n")]
    last = lines.pop().removesuffix("\n")
    return [*lines, last] if last else lines


def _signed(lines: list[str], sign: str) -> str:
    unended = "\n\\ No newline at end of file\n"
    return "".join(f"{sign}{line}{'' if line.endswith(chr(10)) else unended}" for line in lines)


def with_header(path: str, hunks: str) -> str:
    """The diff that consists of `hunks`; empty without any that says where it belongs."""
    body = hunks[hunks.find("@@ -") :] if "@@ -" in hunks else ""
    return f"--- {path}\n+++ {path}\n{body.rstrip(chr(10))}\n" if body else ""


def _whole(path: str, content: str, sign: str, place: str) -> str:
    if not content:
        return ""
    lines = content.removesuffix("\n").split("\n")
    head = [f"--- {path}", f"+++ {path}", f"@@ {place.format(len(lines))} @@"]
    unended = [] if content.endswith("\n") else ["\\ No newline at end of file"]
    return "\n".join([*head, *(f"{sign}{line}" for line in lines), *unended, ""])
