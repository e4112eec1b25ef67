"""Values of settings without the secrets that may stand in them."""

from collections.abc import Iterable

from pydantic import JsonValue

from agent_tui.secret_text import REMOVED, is_secret_name, mask_secrets


def masked(value: JsonValue, known: Iterable[str] = ()) -> JsonValue:
    """`value` without `known` secrets, what looks like one, and what is named like one."""
    secrets = tuple(known)
    match value:
        case str():
            return mask_secrets(value, secrets)
        case list():
            return [masked(one, secrets) for one in value]
        case dict():
            return {
                name: REMOVED if one and is_secret_name(name) else masked(one, secrets)
                for name, one in value.items()
            }
        case _:
            return value
