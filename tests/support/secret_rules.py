"""Translates gitleaks' rules into ``agent_tui/secret_rules.json``, and its examples for tests.

python -m tests.support.secret_rules FOLDER    # a clone of github.com/gitleaks/gitleaks (MIT)

What changes on the way:

- RE2's syntax becomes that of `re`: flags within a pattern, ``\\z``, ``$``, ``[[:alnum:]]``. All
  patterns are compiled with `re.ASCII`, because RE2's classes hold ASCII alone.
- A pattern has groups only around the secret: the first that matched is masked, else the match.
- A match begins at one of the rule's ``marks``, or at most ``lead`` characters before. A free text
  in front of a service's name is left out: it is not masked, and it would be tried everywhere.
- A repetition without a limit gets one: a hostile text costs a bounded time for each mark.
- A token with a prefix may end before any character that cannot be a part of it, not only before a
  quote or a space: in ``(see TOKEN, please)`` it is one, too.
- A rule for one kind of file holds in every text, or is left out.
- `LEFT_OUT` and `BY_HAND` say what else differs, and why.

Gitleaks passes over public example keys (``AKIA...EXAMPLE``, Google's). They are masked here, as
that harms nobody. Its lists of allowed paths have no meaning for a text.
"""

import argparse
import importlib
import json
import re
import subprocess
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import agent_tui
from agent_tui.secret_text import LEAST_PART, OWN_RULES, RULES_FILE

EXAMPLES_FILE = Path(__file__).parents[1] / "secret_examples.json"
LICENCE_FILE = Path(agent_tui.__file__).with_name("secret_rules.LICENSE")

LEFT_OUT = {
    "generic-api-key": "any long word after key, token or secret: hashes and names are such words",
    "pkcs12-file": "the name of a file",
    "hashicorp-tf-password": "any short word after password, but in files of Terraform alone",
    "kubernetes-secret-yaml": "hides the first value of several, and takes long",
}
OURS = {"private-key", "slack-webhook-url", "microsoft-teams-webhook"}
"""Of these, `agent_tui.secret_text` has rules that also find what is cut, and keep the host."""

_WORDS = r"(?:\s++\S{1,500}+){0,60}?\s++"
BY_HAND: Mapping[str, Sequence[tuple[str, str]]] = {
    # Up to five lines of any text between the command and its option, tried in all ways.
    "curl-auth-header": [(r"(?:.*?|.*?(?:[\r\n]{1,2}.*?){1,5})[ \t\n\r]", _WORDS)],
    "curl-auth-user": [(r"(?:.*|.*(?:[\r\n]{1,2}.*){1,5})[ \t\n\r]", _WORDS)],
    # Escaped line ends, and with them the first word of the next line.
    "jwt": [(r"[a-zA-Z0-9\/\\_-]", r"[a-zA-Z0-9_-]")],
    # Line ends, and with them the words after them; and the character after the token.
    "jwt-base64": [(r"\\_+\-\r\n]", r"_+\-]")],
    "sentry-org-token": [(r"(?:[^a-zA-Z0-9+/]|\z)", "(?![a-zA-Z0-9+/])")],
    "nuget-config-password": [(".{8,}", r"[^\"\n]{8,}")],
    # Any commit's hash, in a text that has the name somewhere.
    "sourcegraph-access-token": [(r"|[a-fA-F0-9]{40})\b", r")\b")],
}
_ALLOWED_BY = {"curl-auth-user", "nuget-config-password", "vault-service-token"}
"""The rules whose own exceptions prevent false alarms."""

_FREE_START = r"[\w.-]{0,50}?"
_END = "(?:[\\x60'\"\\s;]|\\\\[nr]|$)"
_TOKEN_END = r"(?![\w(-]|\.\w)"
_MOST_REPEATED = 2_000
"""Longer than any token but JSON web tokens with pictures in them."""

_MOST_MARKS = 40
_MOST_LEAD = 40
_LEAST_MARK = 3
_LONG_MARK = 24

_parser: Any = importlib.import_module("re._parser")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("folder", type=Path)
    folder: Path = parser.parse_args().folder
    config = tomllib.loads((folder / "config/gitleaks.toml").read_text())
    commit, version = (
        subprocess.run(
            ["git", "-C", folder, *command], capture_output=True, text=True, check=True
        ).stdout.strip()
        for command in (("rev-parse", "HEAD"), ("describe", "--tags"))
    )
    rules = [rule for each in config["rules"] for rule in translate_rule(each)]
    data = {
        "source": f"https://github.com/gitleaks/gitleaks {version} ({commit}), MIT licence",
        "licence": LICENCE_FILE.name,
        "allowed": to_python("|".join(f"(?:{one})" for one in allowed_everywhere(config))),
        "part_starts": choose_starts(
            [
                *(m for rule in OWN_RULES for m in rule.marks),
                *(m for r in rules for m in r["marks"]),
            ]
        ),
        "rules": rules,
    }
    RULES_FILE.write_text(one_line_each(data))
    LICENCE_FILE.write_text((folder / "LICENSE").read_text())
    examples = dict(
        examples_of(folder / "cmd/generate/config/rules", {r["id"] for r in rules} | OURS)
    )
    EXAMPLES_FILE.write_text(json.dumps(examples, indent=0, ensure_ascii=True) + "\n")
    print(f"{len(rules)} patterns, {len(examples)} rules with examples")


def one_line_each(data: Mapping[str, Any]) -> str:
    """`data` as JSON with a line for each rule, so that a new version shows as a readable diff."""
    head = [f"{json.dumps(k)}: {json.dumps(v)}," for k, v in data.items() if k != "rules"]
    rules = ",\n".join(json.dumps(rule) for rule in data["rules"])
    return "\n".join(["{", *head, '"rules": [', rules, "]", "}", ""])


def allowed_everywhere(config: Mapping[str, Any]) -> list[str]:
    """Patterns of what is never a secret: placeholders, and paths."""
    words = [f"(?i:{re.escape(word)})" for word in config["allowlist"]["stopwords"]]
    return [*config["allowlist"]["regexes"], *words]


def translate_rule(rule: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """`rule` as one or several rules of ours; none if it is in `LEFT_OUT` or `OURS`."""
    if rule["id"] in {*LEFT_OUT, *OURS}:
        return
    pattern = rule["regex"]
    for old, new in BY_HAND.get(rule["id"], ()):
        assert old in pattern, rule["id"]
        pattern = pattern.replace(old, new)
    pattern = pattern.replace(_FREE_START, "")
    flags = "(?i)" if pattern.startswith("(?i)") else ""
    for part in split_alternatives(pattern.removeprefix(flags)):
        if part.startswith(r"\b(") and part.endswith(_END):
            part = part.removesuffix(_END) + _TOKEN_END
        part = to_python(flags + bounded(only_secret_groups(part, rule.get("secretGroup", 0))))
        lead, marks = find_marks(part)
        made: dict[str, Any] = {"id": rule["id"], "pattern": part, "marks": marks}
        if lead:
            made["lead"] = lead
        keywords = [word.lower() for word in rule["keywords"]]
        if not marks or not all(any(word in mark for word in keywords) for mark in marks):
            made["keywords"] = keywords
        if "entropy" in rule:
            made["entropy"] = rule["entropy"]
        if rule["id"] in _ALLOWED_BY:
            allowed = [one for each in rule["allowlists"] for one in each["regexes"]]
            made["allowed"] = to_python("|".join(f"(?:{one})" for one in allowed))
        yield made


def tokens_of(pattern: str) -> Iterator[str]:
    """`pattern` in pieces: an escape, a class, a repetition, the start of a group, a character."""
    piece = re.compile(
        r"\\.[0-9a-f]{0,2}(?<=\\x..)|\\.|\[\^?\]?(?:\[:\w+:\]|\\.|[^\]\\])*\]"
        r"|\{\d+(?:,\d*)?\}|\(\?(?:P<\w+>|<?[=!]|>|[a-z-]*:|[a-z-]+\))|.",
        re.DOTALL,
    )
    yield from piece.findall(pattern)


def split_alternatives(pattern: str) -> list[str]:
    """The alternatives of `pattern` that are in no group."""
    parts, depth = [""], 0
    for token in tokens_of(pattern):
        depth += opens_group(token) - (token == ")")
        if token == "|" and depth == 0:
            parts.append("")
        else:
            parts[-1] += token
    return parts


def opens_group(token: str) -> bool:
    return token[0] == "(" and not (token.startswith("(?") and token.endswith(")"))


def only_secret_groups(pattern: str, secret_group: int) -> str:
    """`pattern` with the groups alone that can be the secret; what has a name is a part of one."""
    made, number = "", 0
    for token in tokens_of(pattern):
        number += token == "("
        is_other = token == "(" and secret_group not in (0, number)
        made += "(?:" if is_other or token.startswith("(?P<") else token
    return made


def bounded(pattern: str) -> str:
    """`pattern` with a limit for each repetition."""
    made, before = "", ""
    for token in tokens_of(pattern):
        is_possessive = token == "+" and (before in ("*", "+", "?") or before[:1] == "{")
        if token in ("*", "+") and not is_possessive:
            made += f"{{{'01'[token == '+']},{_MOST_REPEATED}}}"
        elif token[0] == "{" and token.endswith(",}"):
            made += f"{token[:-1]}{_MOST_REPEATED}}}"
        else:
            made += token
        before = token
    return made


def to_python(pattern: str) -> str:
    """`pattern`, written for RE2, for `re`: the same matches with `re.ASCII`."""
    made = ""
    flags = [""]  # of each group that is open: the groups for flags in it
    for place, token in enumerate(tokens_of(pattern)):
        if place and (found := re.fullmatch(r"\(\?([a-z-]+)\)", token)):
            flags[-1] += f"(?{found[1]}:"
            made += f"(?{found[1]}:"
        elif opens_group(token):
            flags.append("")
            made += token
        elif token == ")":
            made += ")" * flags.pop().count("(") + token
        elif token == "|":  # a flag holds in the alternatives that follow, too
            made += ")" * flags[-1].count("(") + token + flags[-1]
        else:
            made += {"$": r"\Z", r"\z": r"\Z", "^": r"\A"}.get(token, token).replace(
                "[:alnum:]", "0-9A-Za-z"
            )
    return made + ")" * flags[0].count("(")


_BY_FREQUENCY = " etraisonl_cdmupf,.'\"hygb=/-w:v0k1x2jq3<z456789~"
"""The characters of a program's source that can begin a mark, the most frequent first."""


def choose_starts(marks: Sequence[str]) -> str:
    """Rare characters: each of `marks` has one that leaves `LEAST_PART` characters of it."""
    starts = {char for mark in marks for char in mark}
    for frequent in _BY_FREQUENCY:
        rest = starts - {frequent}
        if all(rest & set(mark[: len(mark) - LEAST_PART + 1]) for mark in marks):
            starts = rest
    return "".join(sorted(starts))


def find_marks(pattern: str) -> tuple[int, list[str]]:
    """Texts in lower case of which each match has one, and how far before it a match may begin.

    Without such texts: 0 and none.
    """
    nodes, before = list(flattened(_parser.parse(pattern, re.ASCII))), 0
    for place, node in enumerate(nodes):
        marks = beginnings(nodes[place:])
        if min(map(len, marks)) >= _LEAST_MARK:
            return before, sorted(marks)
        before += widest(node)
        if before > _MOST_LEAD:
            break
    return 0, []


def flattened(nodes: Any) -> Iterator[Any]:
    for kind, value in nodes:
        if str(kind) == "SUBPATTERN":
            yield from flattened(value[3])
        else:
            yield kind, value


def widest(node: Any) -> int:
    holder = _parser.parse("")
    holder.append(node)
    return holder.getwidth()[1]


def beginnings(nodes: Sequence[Any]) -> set[str]:
    """How a text that matches `nodes` can begin, in lower case: as far as these are few."""
    return {text for text, _ in _beginnings(nodes)}


def _beginnings(nodes: Sequence[Any]) -> set[tuple[str, bool]]:
    """As `beginnings`, each with whether what follows `nodes` can follow it."""
    found = {("", True)}
    for node in nodes:
        if all(not is_open or len(text) >= _LONG_MARK for text, is_open in found):
            break
        parts = _parts(node)
        longer = {
            (text + part, is_open)
            for text, was_open in found
            if was_open
            for part, is_open in parts
        } | {each for each in found if not each[1]}
        is_enough = min(len(text) for text, _ in found) >= _LEAST_MARK
        if not parts or len(parts) > (3 if is_enough else _MOST_MARKS) or len(longer) > _MOST_MARKS:
            return {(text, False) for text, _ in found}
        found = longer
    return found


def _parts(node: Any) -> set[tuple[str, bool]]:
    """What `node` matches; empty if that is too much."""
    kind, value = str(node[0]), node[1]
    match kind:
        case "LITERAL":
            return {(chr(value).lower(), True)}
        case "AT" | "ASSERT" | "ASSERT_NOT":
            return {("", True)}
        case "IN":
            return {(char, True) for char in _characters(value)}
        case "SUBPATTERN":
            return _beginnings(list(value[3]))
        case "BRANCH":
            return set().union(*(_beginnings(list(part)) for part in value[1]))
        case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
            least, most, part = value
            if least == 0:
                once = _beginnings(list(part)) if most == 1 else set()
                return once and {("", True), *once}
            repeated = _beginnings(list(part) * min(least, _LEAST_MARK))
            whole = least == most and least <= _LEAST_MARK
            return {(text, is_open and whole) for text, is_open in repeated}
        case _:
            return set()


def _characters(members: Sequence[Any]) -> set[str]:
    chars: set[str] = set()
    for kind, value in members:
        match str(kind), value:
            case "LITERAL", _:
                chars.add(chr(value).lower())
            case "RANGE", (first, last):
                chars |= {chr(code).lower() for code in range(first, last + 1)}
            case "CATEGORY", category if str(category) == "CATEGORY_DIGIT":
                chars |= set("0123456789")
            case _:
                return set()
    return chars


def examples_of(folder: Path, known: set[str]) -> Iterator[tuple[str, dict[str, list[str]]]]:
    """For each rule the fixed examples of gitleaks' own tests: what it finds, and what not.

    Written backwards, so that nothing that looks for keys takes them for one. Those that gitleaks
    draws at random are not among them.
    """
    for path in sorted(folder.glob("*.go")):
        for function in re.split(r"^func ", path.read_text(), flags=re.MULTILINE)[1:]:
            if (named := re.search(r'RuleID:\s+"([^"]+)"', function)) and named[1] in known:
                kinds = {"found": "tps", "not_found": "fps"}
                lists = {kind: list(fixed_texts(function, name)) for kind, name in kinds.items()}
                backwards = {kind: [text[::-1] for text in lists[kind]] for kind in lists}
                if any(backwards.values()):
                    yield named[1], backwards


_GO_TEXT = re.compile(r"`[^`]*`|\"(?:\\.|[^\"\\\n])*\"")


def fixed_texts(function: str, name: str) -> Iterator[str]:
    """The elements of the list `name` in the Go code `function` that are nothing but a text."""
    starts = re.finditer(rf"\b{name}\s*:?=\s*(?:\[\]string\{{|append\(\s*{name},)", function)
    for start in starts:
        rest = re.sub(r"`[^`]*`|\"(?:\\.|[^\"\\\n])*\"|//[^\n]*", _blank_comment, function)
        place, depth, element = start.end(), 0, start.end()
        while depth >= 0 and place < len(rest):
            if text := _GO_TEXT.match(rest, place):
                place = text.end()
                continue
            char = rest[place]
            depth += (char in "{([") - (char in "})]")
            if (char == "," and depth == 0) or depth < 0:
                whole = rest[element:place].strip()
                if _GO_TEXT.fullmatch(whole):
                    yield whole[1:-1] if whole[0] == "`" else json.loads(whole)
                element = place + 1
            place += 1


def _blank_comment(found: re.Match[str]) -> str:
    return " " * len(found[0]) if found[0].startswith("//") else found[0]


if __name__ == "__main__":
    main()
