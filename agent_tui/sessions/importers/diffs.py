"""Unified diffs from what other agents write down about a change of one file."""


def creation(path: str, content: str) -> str:
    """The diff from no file to one with `content`; empty without content."""
    return _whole(path, content, "+", "-0,0 +1,{}")


def deletion(path: str, content: str) -> str:
    """The diff from a file with `content` to none; empty without content."""
    return _whole(path, content, "-", "-1,{} +0,0")


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
