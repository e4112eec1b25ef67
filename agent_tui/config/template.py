"""The text of a new ``config.toml``: every setting with its description, commented out."""

import textwrap
from itertools import groupby

from pydantic import JsonValue

from agent_tui.config.json_schema import SCHEMA_URL
from agent_tui.config.keys import dotted
from agent_tui.config.schema import Settings
from agent_tui.config.specs import section_description, setting_specs

_HEAD = f"""\
#:schema {SCHEMA_URL}
# Settings of agent-tui, each with its default. To change one, remove its # and edit the value.
# "agent-tui config show" shows the values in use and where each comes from.
"""
_MODELS = """\
#[models."openai/qwen3"]
#window = 32768
"""
_HOOKS = """\
#[[hooks.PostToolUse]]
#matcher = "Edit|Write"
#command = "ruff check --quiet >&2 || exit 2"
"""
_COLUMNS = 96


def commented_settings() -> str:
    """A file that changes nothing and lists all settings."""
    pieces = [_HEAD]
    for section, specs in groupby(setting_specs(Settings()), key=lambda spec: spec.section):
        if section:
            about = section_description(section)
            pieces.append(f"{_comment(about)}[{dotted(section)}]\n")
        for spec in specs:
            shown = toml_text(spec.default)
            about = _comment(spec.description)
            choices = _comment(f"One of: {spec.allowed}") if spec.kind == "choice" else ""
            pieces.append(f"{about}{choices}#{spec.key[-1]} = {shown}\n")
    for name, example in (("models", _MODELS), ("hooks", _HOOKS)):
        pieces.append(_comment(section_description((name,))) + example)
    return "\n".join(pieces)


def toml_text(value: JsonValue) -> str:
    """A value in TOML syntax; empty for None."""
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case list():
            return f"[{', '.join(map(toml_text, value))}]"
        case dict():
            inner = ", ".join(f"{dotted((key,))} = {toml_text(one)}" for key, one in value.items())
            return f"{{ {inner} }}" if inner else "{}"
        case str():
            return _basic_string(value)
        case _:
            return str(value)


def _basic_string(text: str) -> str:
    """A TOML string on one line; control characters are escaped."""
    escapes = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}
    letters = (
        escapes.get(letter) or (letter if letter.isprintable() else f"\\U{ord(letter):08X}")
        for letter in text
    )
    return f'"{"".join(letters)}"'


def _comment(text: str) -> str:
    lines = textwrap.wrap(text, _COLUMNS - 2, break_long_words=False)
    return "".join(f"# {line}\n" for line in lines)
