"""What a model wrote, as the bodies of a template's sections."""

import re

from agent_tui.compaction.summary.templates import Template

_WRAPPINGS = (
    re.compile(r"<(think|thinking|reasoning)>.*?(</\1>|\Z)", re.IGNORECASE | re.DOTALL),
    re.compile(r"</?summary>", re.IGNORECASE),
)


def section_bodies(text: str, template: Template) -> dict[str, str]:
    """Bodies by exact heading in the order they were written, empty ones too.

    Reasoning, ``<summary>`` tags, a code fence around the whole and remarks before the first
    section are left out.
    """
    return {heading: body for heading, body in template.parse(plain_text(text)).items() if heading}


def plain_text(text: str) -> str:
    """`text` without reasoning, tags and a code fence around it."""
    for wrapping in _WRAPPINGS:
        text = wrapping.sub("", text)
    text = text.strip()
    if text.startswith("```") and text.endswith("```") and text.count("```") == 2:
        text = text.partition("\n")[2].removesuffix("```").strip()
    return text
