"""An exception of litellm's, and everything behind it, as data that can cross the pipe."""

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeGuard

from agent_tui.providers.keys import redact
from agent_tui.providers.protocol import Fault

_MAX_TEXT_CHARS = 4_000
_RETRY_HEADERS = ("retry-after", "retry-after-ms")


def fault_of(error: BaseException, secrets: Iterable[str]) -> Fault:
    """`error` as a `Fault`; `secrets` are taken out of its texts."""
    secrets = tuple(secrets)
    chain = list(_chain(error))
    codes = dict.fromkeys(code for e in chain for code in _codes(e))
    return Fault(
        name=type(error).__name__,
        text=redact(str(error), secrets)[:_MAX_TEXT_CHARS],
        status=_status(chain),
        headers=_retry_headers(chain),
        codes=[redact(code, secrets)[:100] for code in codes],
        causes=[type(e).__name__ for e in chain[1:]],
    )


def _chain(error: BaseException) -> Iterator[BaseException]:
    """`error` and every exception behind it, each once, nearest first."""
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
    for error in chain:
        status = getattr(error, "status_code", None)
        if isinstance(status, int):
            return status
    return None


def _codes(error: BaseException) -> Iterator[str]:
    """The machine-readable codes and types that an answer's body names."""
    body: object = getattr(error, "body", None)
    inner: object = body.get("error", body) if _is_mapping(body) else None
    for key in ("code", "type", "status"):
        if _is_mapping(inner):
            value = inner.get(key)
            if isinstance(value, str | int) and str(value):
                yield str(value)
        elif isinstance(value := getattr(error, key, None), str) and value:
            yield value  # numbers there are the HTTP library's own, not the server's


def _retry_headers(chain: Iterable[BaseException]) -> dict[str, str]:
    for error in chain:
        for holder in (error, getattr(error, "response", None)):
            for attribute in ("litellm_response_headers", "headers"):
                headers: object = getattr(holder, attribute, None)
                if not _is_mapping(headers):
                    continue
                found = {name: str(headers[name]) for name in _RETRY_HEADERS if name in headers}
                if found:
                    return found
    return {}


def _is_mapping(value: object) -> TypeGuard[Mapping[str, object]]:
    return isinstance(value, Mapping)
