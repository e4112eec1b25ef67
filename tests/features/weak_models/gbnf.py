"""Just enough of llama.cpp's grammar notation to say whether a text fits a grammar."""

import re

_TOKEN = re.compile(
    r"""\s*(?:(?P<literal>"(?:[^"\\]|\\.)*")|(?P<set>\[(?:[^\]\\]|\\.)*\])|(?P<name>[\w-]+)"""
    r"""|(?P<mark>[()|*?+])|(?P<repeat>\{\d+(?:,\d*)?\}))"""
)


def pattern_of(grammar: str, depth: int = 4) -> re.Pattern[str]:
    """A pattern for the texts of `grammar`, rules inside themselves up to `depth` times."""
    rules = dict(re.split(r"\s*::=\s*", line, maxsplit=1) for line in grammar.splitlines() if line)
    expanded: dict[tuple[str, int], str] = {}

    def rule(name: str, above: tuple[str, ...]) -> str:
        again = above.count(name)
        if again >= depth:
            return "(?!)"
        key = (name, max((above.count(other) for other in set(above)), default=0))
        if key not in expanded:
            expanded[key] = body(rules[name], (*above, name))
        return expanded[key]

    def body(text: str, above: tuple[str, ...]) -> str:
        pieces: list[str] = []
        at = 0
        text = text.strip()
        while at < len(text):
            match = _TOKEN.match(text, at)
            assert match is not None, text[at:]
            at = match.end()
            if match["literal"]:
                literal = re.sub(r"\\(.)", r"\1", match["literal"][1:-1])
                pieces.append(f"(?:{re.escape(literal)})")
            elif match["name"]:
                pieces.append(f"(?:{rule(match['name'], above)})")
            elif match["mark"] == "(":
                pieces.append("(?:")
            else:
                pieces.append(match["set"] or match["mark"] or match["repeat"])
        return "".join(pieces)

    return re.compile(rule("root", ()))
