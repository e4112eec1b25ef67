"""A grammar that waits: any text, then from a trigger on what the grammar describes."""

import re

from agent_tui.providers.base import TriggeredGrammar

_ROOT = re.compile(r"^root(?=\s*::=)", re.M)


def waiting_grammar(grammar: TriggeredGrammar) -> str:
    """A grammar that allows any text, and what `grammar` describes from its trigger on.

    The root of `grammar` begins with the trigger. llama.cpp can wait for a trigger itself, but
    drops ``grammar_lazy`` from chat requests, so every reply would be held to the grammar from its
    first word. Here the automaton that searches for the trigger (Knuth, Morris and Pratt) reads the
    free text, one rule per state, without the step that completes it.
    """
    trigger = grammar.trigger
    letters = sorted(set(trigger))
    others = f"[^{''.join(map(_escaped, letters))}]"
    rules = ["root ::= free-0"]
    for matched in range(len(trigger)):
        choices = ['""', f"{others} free-0"]
        for letter in letters:
            following = _matched_after(trigger, trigger[:matched] + letter)
            if following < len(trigger):
                choices.append(f"[{_escaped(letter)}] free-{following}")
        if not matched:
            choices.append("triggered")
        rules.append(f"free-{matched} ::= {' | '.join(choices)}")
    return "\n".join((*rules, _ROOT.sub("triggered", grammar.text)))


def _matched_after(trigger: str, text: str) -> int:
    """How many characters of `trigger` the end of `text` may begin."""
    return next(n for n in range(len(text), -1, -1) if text.endswith(trigger[:n]))


def _escaped(letter: str) -> str:
    """`letter`, escaped for a character class."""
    return letter if letter.isalnum() else f"\\U{ord(letter):08X}"
