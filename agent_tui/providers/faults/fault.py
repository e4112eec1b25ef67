"""A failed request as data: an exception and its causes."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeGuard

from agent_tui.providers.faults.reset_time import first_fields, telling_fields
from agent_tui.secret_text import mask_secrets

_MAX_TEXT_CHARS = 4_000


@dataclass(frozen=True, slots=True)
class Fault:
    """A failed request as data; `classify.provider_error` says what it means.

    `status` is litellm's (it invents 500 if there was no response); `codes` are the codes in the
    response's body, and `causes` the classes of the exceptions that led to the error. `headers` and
    `fields` are those of the response and of its body that say when to try again, by lower-case
    name.
    """

    name: str
    text: str
    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict[str, str])
    codes: list[str] = field(default_factory=list[str])
    causes: list[str] = field(default_factory=list[str])
    fields: dict[str, str] = field(default_factory=dict[str, str])


def fault_of(error: BaseException, secrets: Iterable[str]) -> Fault:
    """Convert `error` to a `Fault`, with `secrets` masked in its texts."""
    secrets = tuple(secrets)
    chain = list(_chain(error))
    codes = dict.fromkeys(code for e in chain for code in _codes(e))
    text = next((said for e in chain if (said := _message(_answer(e)))), str(error))
    return Fault(
        name=type(error).__name__,
        text=mask_secrets(text, secrets)[:_MAX_TEXT_CHARS],
        status=_status(chain),
        headers=_telling_headers(chain),
        codes=[mask_secrets(code, secrets)[:100] for code in codes],
        causes=[type(e).__name__ for e in chain[1:]],
        fields=first_fields(found for e in chain for found in telling_fields(_body(e))),
    )


def _chain(error: BaseException) -> Iterator[BaseException]:
    """`error` and every exception that caused it, each once, nearest first."""
    waiting: list[BaseException] = [error]
    seen: set[int] = set()
    while waiting:
        current = waiting.pop(0)
        if id(current) in seen:
            continue
        seen.add(id(current))
        yield current
        wrapped = getattr(current, "original_exception", None)
        behind = (wrapped, current.__cause__, current.__context__)
        waiting += [e for e in behind if isinstance(e, BaseException)]


def _status(chain: Iterable[BaseException]) -> int | None:
    """The innermost status: litellm turns a 529 from Anthropic into a 500."""
    found = [getattr(error, "status_code", None) for error in chain]
    return next((status for status in reversed(found) if isinstance(status, int)), None)


def _codes(error: BaseException) -> Iterator[str]:
    """The machine-readable codes and types in a response."""
    answer = _answer(error)
    for key in ("code", "type", "status"):
        if _is_mapping(answer):
            value = answer.get(key)
            if isinstance(value, str | int) and str(value):
                yield str(value)
        elif isinstance(value := getattr(error, key, None), str) and value:
            yield value  # numbers here are the HTTP library's own, not the server's


def _answer(error: BaseException) -> object:
    """The ``error`` in the server's JSON response, else None."""
    body = _body(error)
    return body.get("error", body) if _is_mapping(body) else None


def _body(error: BaseException) -> object:
    """The server's JSON response, else None."""
    body: object = getattr(error, "body", None)
    if _is_mapping(body):
        return body
    return _parse(_response_text(error)) or _parse(getattr(error, "message", None))


def _message(answer: object) -> str:
    """What the server says, and what its upstream says (OpenRouter adds it separately)."""
    if not _is_mapping(answer):
        return answer if isinstance(answer, str) else ""
    message = answer.get("message") or answer.get("detail")
    said = message if isinstance(message, str) else ""
    param = answer.get("param")  # OpenAI names the field beside its text
    if said and isinstance(param, str) and param and param not in said:
        said = f"{said} ({param})"
    metadata: object = answer.get("metadata")
    raw = metadata.get("raw") if _is_mapping(metadata) else None
    if not isinstance(raw, str) or not raw.strip():
        return said
    inner = _parse(raw)
    behind = _message(inner.get("error", inner)) if _is_mapping(inner) else ""
    return f"{said}: {behind or raw}" if said else behind or raw


def _response_text(error: BaseException) -> str:
    try:
        text: object = getattr(getattr(error, "response", None), "text", None)
    except RuntimeError:  # httpx: it was streamed and is gone
        return ""
    return text if isinstance(text, str) else ""


def _parse(text: object) -> object:
    if not isinstance(text, str | bytes) or text.lstrip()[:1] not in ("{", b"{"):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _telling_headers(chain: Iterable[BaseException]) -> dict[str, str]:
    for error in chain:
        for holder in (error, getattr(error, "response", None)):
            for attribute in ("litellm_response_headers", "headers"):
                if found := first_fields(telling_fields(getattr(holder, attribute, None))):
                    return found
    return {}


def _is_mapping(value: object) -> TypeGuard[Mapping[str, object]]:
    return isinstance(value, Mapping)
