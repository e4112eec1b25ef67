"""The summary the scripted tour gives when it is compacted: taken from the request's text."""

import re

_NONE = "(none)"
_MAX_QUOTE_CHARS = 160
_MAX_ITEMS = 8


def demo_summary(prompt: str) -> str:
    """A summary in the form that `prompt` asks for, of the conversation it quotes."""
    conversation = _tagged(prompt, "conversation")
    if "sentences alone" in prompt.rpartition("</conversation>")[2]:
        return _sentences(conversation)
    before = _tagged(prompt, "previous-summary")
    focus = _tagged(prompt, "focus")
    asked = _asked(conversation)
    goal = _section(before, "## Goal") or (asked[0] if asked else "See the scripted tour.")
    done = _unique([*_items(before), *_finished(conversation)])
    facts = ["- This was a scripted tour: no model wrote this summary."]
    facts += [f"- Asked for: {text}" for text in asked[1:_MAX_ITEMS]]
    facts += [f"- Focus: {focus}"] if focus else []
    if "## TASK STATE" in prompt:
        return _seven_sections(goal, done, facts)
    return "\n\n".join(
        (
            f"## Goal\n{goal}",
            f"## Constraints & Preferences\n{_NONE}",
            "## Progress",
            "### Done\n" + ("\n".join(f"- [x] {item}" for item in done) or _NONE),
            "### In Progress\n- [ ] Look at what the person types next",
            f"### Blocked\n{_NONE}",
            "## Key Decisions\n- **Scripted answers**: no model is chosen in the tour",
            "## Next Steps\n1. Answer the person, or let them choose a model with /model",
            "## Critical Context\n" + "\n".join(facts),
        )
    )


def _sentences(conversation: str) -> str:
    done = "; ".join(_finished(conversation)) or "Nothing was changed"
    return f"{done}. This was a scripted tour: no model wrote this summary."


def _seven_sections(goal: str, done: list[str], facts: list[str]) -> str:
    finished = "\n".join(f"- {item}" for item in done) or _NONE
    return "\n\n".join(
        (
            f"## TASK STATE\n{goal}\n{finished}",
            "## FILES\n- greet.py: the example of the tour",
            f"## TOOL HISTORY\n{_NONE}",
            f"## ERRORS\n{_NONE}",
            "## DECISIONS\n" + "\n".join(facts),
            f"## USER GUIDANCE\n{_NONE}",
            "## NEXT STEPS\n1. Answer the person, or let them choose a model with /model",
        )
    )


def _asked(conversation: str) -> list[str]:
    """First lines of what the person said."""
    said = re.findall(r"^\[?User\]?:?[ \n]+(\S.*)$", conversation, re.M)
    return _unique([_shortened(text) for text in said])


def _finished(conversation: str) -> list[str]:
    """What the conversation shows to be done, in words of ours."""
    shown = (
        ("FAIL: greet", "Ran the test of greet.py and saw it fail"),
        ("name or 'world'", "Changed greet.py so that an empty name greets the world"),
        ("OK: 2 greetings", "Ran the test again: it passes"),
    )
    return [words for mark, words in shown if mark in conversation]


def _items(summary: str) -> list[str]:
    return re.findall(r"^- \[x\] (.+)$", summary, re.M)


def _section(summary: str, heading: str) -> str:
    found = re.search(rf"^{re.escape(heading)}\n(.+?)(?=\n#|\Z)", summary, re.M | re.S)
    return found[1].strip() if found else ""


def _tagged(text: str, tag: str) -> str:
    found = re.search(rf"<{tag}>\n?(.*?)</{tag}>", text, re.S)
    return found[1].strip() if found else ""


def _shortened(text: str) -> str:
    line = text.strip()
    return line if len(line) <= _MAX_QUOTE_CHARS else line[: _MAX_QUOTE_CHARS - 1] + "…"


def _unique(items: list[str]) -> list[str]:
    return list(dict.fromkeys(items))[:_MAX_ITEMS]
