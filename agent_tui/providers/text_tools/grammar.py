"""A grammar that holds a model to a valid call once it begins one."""

import json
import re
from collections.abc import Sequence

from pydantic import JsonValue

from agent_tui.messages import JsonObject, ToolSpec
from agent_tui.providers.base import TriggeredGrammar
from agent_tui.providers.text_tools.prompt import CALL_BEGIN, CALL_END

_SHARED_RULES = r"""
ws ::= [ \t\n]{0,20}
string ::= "\"" ( [^"\\\x00-\x1f] | "\\" ( ["\\/bfnrt] | "u" [0-9a-fA-F]{4} ) )* "\""
integer ::= "-"? ( "0" | [1-9] [0-9]{0,17} )
number ::= integer ( "." [0-9]{1,22} )? ( [eE] [-+]? [0-9]{1,3} )?
boolean ::= "true" | "false"
null ::= "null"
value ::= object | array | string | number | boolean | null
object ::= "{" ws ( string ws ":" ws value ws ( "," ws string ws ":" ws value ws )* )? "}"
array ::= "[" ws ( value ws ( "," ws value ws )* )? "]"
"""
"""JSON (RFC 8259), with limits on white space and digits, where weak models get stuck."""

_SIMPLE_TYPES = frozenset({"string", "integer", "number", "boolean", "null"})


def call_grammar(tools: Sequence[ToolSpec]) -> TriggeredGrammar:
    """The grammar of one call of one of `tools`, from ``<tool_call>`` on.

    Properties come in the order of the schema, optional ones may be left out; an unknown kind of
    schema accepts any JSON value. After the call the reply must end.
    """
    rules = _Rules()
    calls = [
        f'"{{" ws {_literal("name")} ws ":" ws {_literal(tool.name)} ws "," ws '
        f'{_literal("arguments")} ws ":" ws {rules.rule_for(tool.parameters, tool.name)} ws "}}"'
        for tool in tools
    ]
    root = f"root ::= {_quoted(CALL_BEGIN)} ws ( {' | '.join(calls)} ) ws {_quoted(CALL_END)}"
    return TriggeredGrammar("\n".join([root, *rules.lines]) + _SHARED_RULES, CALL_BEGIN)


class _Rules:
    """Collects the rules of schemas, each under a unique name."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._names: set[str] = set()

    def rule_for(self, schema: JsonValue, hint: str) -> str:
        """The name of the rule for `schema`, derived from `hint` if a new one is needed."""
        if not isinstance(schema, dict):
            return "value"
        choices, kind = schema.get("enum"), schema.get("type")
        if isinstance(choices, list) and choices:
            return self._add(hint, " | ".join(_literal(choice) for choice in choices))
        if isinstance(kind, str) and kind in _SIMPLE_TYPES:
            return kind
        if kind == "array":
            item = self.rule_for(schema.get("items"), f"{hint}-item")
            return self._add(hint, f'"[" ws ( {item} ws ( "," ws {item} ws )* )? "]"')
        if kind == "object" and isinstance(schema.get("properties"), dict):
            return self._object(schema, hint)
        return "object" if kind == "object" else "value"

    def _object(self, schema: JsonObject, hint: str) -> str:
        """An object: for each property, a rule for it and all after it, with or without comma."""
        properties, required = schema.get("properties"), schema.get("required")
        members = list(properties.items()) if isinstance(properties, dict) else []
        needed = required if isinstance(required, list) else []
        first = following = '""'
        for name, value in reversed(members):
            rule = self.rule_for(value, f"{hint}-{name}")
            member = f'{_literal(name)} ws ":" ws {rule} ws {following}'
            is_optional = name not in needed
            first_choices = [member, first] if is_optional else [member]
            next_choices = [f'"," ws {member}', *([following] if is_optional else [])]
            first = self._add(f"{hint}-{name}-first", " | ".join(first_choices))
            following = self._add(f"{hint}-{name}-next", " | ".join(next_choices))
        return self._add(hint, f'"{{" ws {first} "}}"')

    def _add(self, hint: str, body: str) -> str:
        base = "t-" + re.sub(r"[^a-zA-Z0-9]+", "-", hint).strip("-")
        name, count = base, 1
        while name in self._names:
            count += 1
            name = f"{base}-{count}"
        self._names.add(name)
        self.lines.append(f"{name} ::= {body}")
        return name


def _literal(value: JsonValue) -> str:
    """`value` as JSON, as a literal of the grammar."""
    return _quoted(json.dumps(value))


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
