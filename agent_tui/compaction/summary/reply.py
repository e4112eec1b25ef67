"""What a model wrote, as the bodies of a template's sections: Markdown or a JSON object."""

import json
import re
from collections.abc import Mapping

from pydantic import JsonValue, TypeAdapter, ValidationError

from agent_tui.compaction.summary.templates import Template

_WRAPPINGS = (
    re.compile(r"<(think|thinking|reasoning)>.*?(</\1>|\Z)", re.IGNORECASE | re.DOTALL),
    re.compile(r"</?summary>", re.IGNORECASE),
)
_JSON_FENCE = re.compile(r"^[^{]{0,400}?```\w*\s*(?=\{)")
_DECODER = json.JSONDecoder(strict=False)
_JSON = TypeAdapter[JsonValue](JsonValue)
_VALUE_END = re.compile(r"\s*(?:[,}]|\Z)")
_HALF_ESCAPE = re.compile(r"((?:\A|[^\\])(?:\\\\)*)\\(?:u[0-9a-fA-F]{0,3})?\Z")
_LIST_MARK = re.compile(r"\s*(?:[-*+•]|\d+[.)])\s")


def section_bodies(text: str, template: Template) -> dict[str, str]:
    """Bodies by exact heading in the order they were written, empty ones too.

    Reasoning, ``<summary>`` tags, a code fence around the whole and remarks before the first
    section are left out. A JSON object whose keys are the headings' titles is as good as
    Markdown, also when it was cut off, its strings hold raw line breaks, or a value is a list.
    """
    text = _unwrap(text)
    start = _JSON_FENCE.sub("", text)
    if start.startswith("{"):
        return _json_bodies(start, template)
    return {heading: body for heading, body in template.parse(text).items() if heading}


def plain_text(text: str) -> str:
    """`text` without reasoning and tags: what can be read as a refusal or as nothing."""
    return _unwrap(text)


def _unwrap(text: str) -> str:
    for wrapping in _WRAPPINGS:
        text = wrapping.sub("", text)
    text = text.strip()
    if text.startswith("```") and text.endswith("```") and text.count("```") == 2:
        text = text.partition("\n")[2].removesuffix("```").strip()
    return text


def _json_bodies(text: str, template: Template) -> dict[str, str]:
    """Each value behind a known key; a broken one reaches to the next key or the end."""
    headings = {section.title.casefold(): section.heading for section in template.writable}
    titles = "|".join(re.escape(section.title) for section in template.writable)
    keys = list(re.finditer(rf'"[#\s]*({titles})\s*"\s*:\s*', text, re.IGNORECASE))
    bodies: dict[str, str] = {}
    read_to = 0
    for number, key in enumerate(keys):
        heading = headings[key[1].casefold()]
        if key.start() < read_to or heading in bodies:
            continue
        whole = _whole_value(text, key.end())
        if whole is not None:
            bodies[heading], read_to = whole
        else:
            end = keys[number + 1].start() if number + 1 < len(keys) else len(text)
            bodies[heading] = _mended(text[key.end() : end])
    return bodies


def _whole_value(text: str, start: int) -> tuple[str, int] | None:
    """The value at `start` as text and where it ends; None if it is broken."""
    try:
        value, end = _DECODER.raw_decode(text, start)
        if not _VALUE_END.match(text, end):
            return None
        return _value_text(_JSON.validate_python(value)).strip(), end
    except (ValueError, ValidationError, RecursionError):
        return None


def _mended(raw: str) -> str:
    """The text of a value that is no JSON: its closing quote is missing, or a quote inside."""
    raw = raw.strip().rstrip("},\n\t ").removeprefix('"').removesuffix('"')
    raw = _HALF_ESCAPE.sub(r"\1", raw)
    quoted = re.sub(r'(?<!\\)"', r"\\" + '"', raw)
    try:
        value: object = _DECODER.decode(f'"{quoted}"')
    except ValueError:
        return raw.replace("\\n", "\n").replace('\\"', '"').strip()
    return str(value).strip()


def _value_text(value: JsonValue) -> str:
    match value:
        case None:
            return ""
        case str():
            return value
        case list():
            return "\n".join(_item(_value_text(item)) for item in value)
        case Mapping():
            return "\n".join(f"- {key}: {_value_text(item)}" for key, item in value.items())
        case _:
            return json.dumps(value)


def _item(text: str) -> str:
    return text if not text or _LIST_MARK.match(text) else f"- {text}"
