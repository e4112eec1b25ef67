"""What a failed request means: its kind, what to tell the user, and what they can do.

Decided by status and content, never by litellm's class: 529 and 403 arrive as ``APIError``, 504 and
408 as ``Timeout``, and no response at all as a made-up 500.
"""

import re
from datetime import UTC, datetime

from agent_tui.config.model_addresses import display_address
from agent_tui.providers.accounts import Account, login_command, own_accounts
from agent_tui.providers.base import FaultKind, ModelRef, ProviderError
from agent_tui.providers.faults.fault import Fault
from agent_tui.providers.faults.overflow import is_context_overflow, window_in
from agent_tui.providers.faults.reset_time import seconds_to_reset
from agent_tui.providers.kept_keys import KEEPABLE
from agent_tui.providers.keys import key_variable
from agent_tui.providers.servers.words import (
    LOST,
    interruption_text,
    loading_delay_s,
    server_in_text,
    server_words,
)

# Not litellm's APIConnectionError, which also wraps its own bugs.
_NETWORK_CAUSES = frozenset(
    {
        "ClientConnectorCertificateError",
        "ClientConnectorDNSError",
        "ClientConnectorError",
        "ClientConnectorSSLError",
        "ClientOSError",
        "ClientPayloadError",
        "ConnectError",
        "ConnectTimeout",
        "ConnectionRefusedError",
        "ConnectionResetError",
        "ReadError",
        "RemoteProtocolError",
        "ServerDisconnectedError",
        "WriteError",
        "gaierror",
    }
)
_EMPTY_BALANCE = re.compile(
    r"insufficient[_ ](?:quota|balance|credits?|funds)|credit balance is too low|payment required"
    r"|out of credits|more credits|arrears",
    re.I,
)
_QUOTA = re.compile(
    r"exceeded your current quota|billing|quota[^.]{0,40}per ?day|spending limit"
    r"|usage[_ ]limit[_ ]reached",
    re.I,
)
"""Limits that may come back. Gemini names plan and billing even for a limit per minute."""
_RATE = re.compile(
    r"rate.?limit|too many requests|tokens?[ _]per[ _](?:min|hour|day)|requests? per (?:min|hour)"
    r"|resource_exhausted|throttl|please wait \w+ trying|max organization [tr]pm",
    re.I,
)
_REFUSED_CODE = re.compile(r"invalid_(?!request_error)\w+|image_\w+|unsupported_\w+", re.I)
"""Codes of mid-stream errors without a status: the Responses API detects them that late."""
_OVERLOADED = re.compile(r"overloaded|over capacity|at capacity|model is loading|busy", re.I)
_BAD_KEY = re.compile(
    r"api[_ ]?key[^.]{0,40}(?:invalid|not valid|missing|incorrect|expired|must be set)"
    r"|(?:invalid|incorrect|missing|no)[^.]{0,20}api[_ ]?key|authentication[_ ]?error"
    r"|unauthori[sz]ed|credentials",
    re.I,
)
_FILTERED = re.compile(
    r"content.?(?:filter|policy|management policy)|responsibleaipolicy|flagged|safety", re.I
)
_NO_MODEL = re.compile(
    r"model[^.]{0,80}(?:not found|does not exist|not exist|not supported|unknown)"
    r"|(?:no such|unknown|invalid) model|try pulling it|provider not provided"
    r"|no models? (?:is |are )?loaded|failed to load model",  # LM Studio
    re.I,
)
_PAGE = re.compile(r"<(?:!doctype|html|head|body)\b", re.I)
_NO_SUCH_PATH = re.compile(
    r"(?:404:? ?)?(?:page |path |url |route )?not found\.?|method not allowed\.?"
    r"|unexpected endpoint or method.*|",
    re.I | re.S,
)
"""What web servers and frameworks say about an address with nothing behind it."""
_UNTRUSTED = frozenset(
    {
        "ClientConnectorCertificateError",
        "ClientConnectorSSLError",
        "SSLCertVerificationError",
        "SSLError",
    }
)
_NO_MODEL_SERVER = frozenset({"BadAddressError", "NotHttpError", "PageError", "RedirectError"})
_RESETTING: tuple[FaultKind, ...] = ("rate_limit", "overloaded", "server")
"""Kinds for which a server may state when it takes requests again."""
_NO_REPLY = frozenset({"EmptyReply", "MalformedReplyError", "NoStreamError"})
"""Responses that claim success but hold no reply, or are unreadable."""
_UNREADABLE = frozenset({"Interrupted", "JSONDecodeError", "MalformedReplyError"})
"""Replies that break a rule of their protocol, though the connection held."""
_MAX_DETAIL_CHARS = 400
_NO_REASON = "no reason given."
_SWITCH = "Switch models with {model}"
_OR_SWITCH = "switch models with {model}"
_KEPT = "The partial reply is kept."

_PREFIXES = re.compile(
    r"^(?:litellm\.)?(?:[A-Za-z_]*(?:Error|Exception|Timeout)(?: Timeout)?(?:: | - |:$)"
    r"|Timeout Error: )+"
)
_ADVICE = re.compile(r"\s*Handle with `litellm\.\w+`\.?")
_ENDPOINT = re.compile(r"/(?:chat/completions|messages|responses)/?$")
_AS_BYTES = re.compile(r"b(['\"])(.*)\1\.?", re.S)
_NOTHING = re.compile(r"(?:Error code: \d+|null|None|\{\})?\.?")

_CAUSES = (
    (("ClientConnectorDNSError", "gaierror"), "host name not found."),
    (
        ("ClientConnectorCertificateError", "SSLCertVerificationError"),
        "its certificate is not trusted.",
    ),
    (("ClientConnectorSSLError", "SSLError"), "TLS handshake failed."),
    (("ConnectionRefusedError",), "connection refused."),
    (("ConnectTimeout", "ConnectionTimeoutError"), "connection timed out."),
    (
        (
            "BrokenPipeError",
            "ClientOSError",
            "ClientPayloadError",
            "ConnectionResetError",
            "ReadError",
            "RemoteProtocolError",
            "ServerDisconnectedError",
            "TransferEncodingError",
            "WriteError",
        ),
        LOST,
    ),
    (("JSONDecodeError",), "its reply is not valid JSON."),
)
"""Exception classes and what they mean; the first match counts."""


def provider_error(fault: Fault, model: ModelRef, *, is_mid_stream: bool = False) -> ProviderError:
    """The error to raise for `fault`.

    Args:
        fault: What happened.
        model: The model that was called; the message names its address and key variable.
        is_mid_stream: Whether part of the reply had arrived, so it was interrupted.
    """
    kind = classify(fault, is_mid_stream=is_mid_stream)
    detail = _address_detail(fault) if kind == "address" else ""
    if not detail and not _was_answered(fault):
        detail = connection_detail(fault)
    detail = detail or plain_detail(fault.text)
    of_server = server_words(kind, model, detail) if model.base_url else None
    message, hint = of_server or _words(kind, model, detail, fault)
    status = fault.status if _was_answered(fault) else None
    delay_s = _reset_s(fault) if kind in _RESETTING else None
    if delay_s is None:
        delay_s = loading_delay_s(kind, detail)
    error = ProviderError(
        kind,
        message,
        hint,
        status=status,
        retry_after_s=delay_s,
        detail=detail,
        is_no_stream=fault.name in ("NoStreamError", "PageError"),
        is_unproven=kind == "network" or (kind == "server" and fault.name in _NO_REPLY),
    )
    error.is_unreadable = not _UNREADABLE.isdisjoint((fault.name, *fault.causes))
    if kind == "context_overflow":
        error.stated_window = window_in(detail)
    return error


def classify(fault: Fault, *, is_mid_stream: bool = False) -> FaultKind:
    """The kind of `fault`."""
    kind = _kind_of_answer(fault)
    if is_mid_stream and kind in ("address", "network", "server"):
        return "interrupted"
    return kind


def _reset_s(fault: Fault) -> float | None:
    """Seconds until the server takes requests again, as it states; None if it does not."""
    return seconds_to_reset(fault.headers, fault.fields, fault.text, datetime.now(UTC))


def _quota_kind(fault: Fault, text: str) -> FaultKind | None:
    """The kind of a spent quota; one that comes back at a stated time is a limit to wait for."""
    if _EMPTY_BALANCE.search(text):
        return "quota"
    if not _QUOTA.search(text):
        return None
    return "quota" if _reset_s(fault) is None else "rate_limit"


def _kind_of_answer(fault: Fault) -> FaultKind:
    if fault.name == "IdleTimeout":
        return "timeout"
    if fault.name == "MalformedReplyError":
        return "server"
    if fault.name == "EndlessReplyError":
        return "endless"
    if _is_no_server(fault):
        return "address"
    text = f"{fault.text} {' '.join(fault.codes)}"
    status = _real_status(fault)
    if status is None and _has_network_cause(fault):
        return "network"
    if status in (429, 402) or _RATE.search(text):
        return "quota" if status == 402 else _quota_kind(fault, text) or "rate_limit"
    if is_context_overflow(text, status):
        return "context_overflow"
    if status in (503, 529) or (status is None and _OVERLOADED.search(text)):
        return "overloaded"
    if status == 401 or (status in (None, 400, 403, 500) and _BAD_KEY.search(text)):
        return "auth"
    if status in (400, 403, 422, None) and _FILTERED.search(text):
        return "content_filter"
    if status == 403:
        return _quota_kind(fault, text) or "auth"
    if status == 404 or (status in (400, None) and _NO_MODEL.search(text)):
        return "not_found"
    if status is None:
        return _kind_of_error_in_stream(fault, text)
    if status in (408, 409, 425) or (status >= 500 and status != 501):
        return "server"
    return _quota_kind(fault, text) or "bad_request"


def _is_no_server(fault: Fault) -> bool:
    """Whether the address cannot be a model server, or not one for this protocol."""
    if fault.name in _NO_MODEL_SERVER:
        return True
    if fault.status in (404, 405, 501) or fault.name == "NoStreamError":
        is_page = _PAGE.search(fault.text) or _NO_SUCH_PATH.fullmatch(fault.text.strip())
        return is_page is not None
    return not _was_answered(fault) and not _UNTRUSTED.isdisjoint(fault.causes)


def _kind_of_error_in_stream(fault: Fault, text: str) -> FaultKind:
    if (kind := _quota_kind(fault, text)) is not None:
        return kind
    return "bad_request" if any(map(_REFUSED_CODE.fullmatch, fault.codes)) else "server"


def _real_status(fault: Fault) -> int | None:
    """The status of the response, or one named in an error event; None without a response."""
    for code in fault.codes:
        if re.fullmatch(r"[45]\d\d", code):
            return int(code)
    return fault.status if _was_answered(fault) else None


def _was_answered(fault: Fault) -> bool:
    """Whether `status` came from the server and was not invented by litellm."""
    if fault.status is None:
        return False
    return fault.status != 500 or not (
        _has_network_cause(fault) or fault.name in ("MidStreamFallbackError", "APIConnectionError")
    )


def _has_network_cause(fault: Fault) -> bool:
    return fault.name in _NETWORK_CAUSES or not _NETWORK_CAUSES.isdisjoint(fault.causes)


def _words(kind: FaultKind, model: ModelRef, detail: str, fault: Fault) -> tuple[str, str]:
    """The message and the hint for the user."""
    name = model.name
    match kind:
        case "auth":
            if fault.name in ("MissingKeyError", "NotSignedInError"):
                return _with(f"Cannot use {name}", detail), _key_hint(model)
            if (account := _account(model)) is not None:
                ended = f"The {account.title} sign-in has expired or does not cover {name}"
                return _with(ended, detail), _key_hint(model)
            return _with(f"API key rejected for {name}", detail), _key_hint(model)
        case "not_found":
            return _with(f"Model {name} not found", detail), f"{_SWITCH}."
        case "rate_limit":
            return _with(f"Rate limit reached for {name}", detail), "Try again later."
        case "quota":
            hint = f"Check your plan and billing, or {_OR_SWITCH}."
            return _with(f"No quota left for {name}", detail), hint
        case "overloaded":
            return _with(f"{name} is overloaded", detail), f"Try again later, or {_OR_SWITCH}."
        case "server":
            failed = f"returned {fault.status}" if _was_answered(fault) else "failed"
            return _with(f"{name} {failed}", detail), "Try again later."
        case "network":
            return _with(f"Cannot reach {name}", detail), "Check your network connection."
        case "address":
            return _with(f"Cannot use {_where(model)}", detail), _address_hint(model, fault)
        case "timeout":
            hint = "Try again{or_setting:raise request_idle_timeout_s}."
            return _with(f"{name} stopped responding", detail), hint
        case "interrupted":
            return interruption_text(name, detail), "Try again."
        case "context_overflow":
            hint = "Shorten it with {compact}, or switch to a model with a larger context window."
            return _with(f"The conversation is too long for {name}", detail), hint
        case "content_filter":
            return _with(f"{name} refused the content", detail), f"Rephrase it, or {_OR_SWITCH}."
        case "bad_request":
            return _with(f"{name} rejected the request", detail), f"{_SWITCH}."
        case "endless":
            return _with(f"{name} sent an endless reply", detail), f"{_KEPT} {_SWITCH}."
        case "crashed":
            return _with(f"{name}: litellm's process ended", detail), "Try again."


def _with(message: str, detail: str) -> str:
    """`message` followed by the server's own words, if there are any."""
    return f"{message}." if detail == _NO_REASON else f"{message}: {detail}"


def _where(model: ModelRef) -> str:
    """What is at the address of `model`, and which model was requested."""
    if not model.base_url:
        return model.name
    return f"{server_in_text(model)} ({model.name})"


def _address_detail(fault: Fault) -> str:
    """What was found instead of a model server; empty if the exceptions say it."""
    if fault.name == "RedirectError":
        return plain_detail(f"it redirects to {display_address(fault.text)}")
    if fault.status == 404:
        return "nothing found there (404)."
    if fault.status in (405, 501):
        return f"it does not accept requests there ({fault.status})."
    if fault.name == "NotHttpError":
        return plain_detail(fault.text)
    if fault.name != "PageError":
        return ""
    said = plain_detail(fault.text).removesuffix(".")
    what = "a web page" if _PAGE.search(fault.text) else "text that is not a reply"
    return f"it returned {what}: “{said}”."


def _address_hint(model: ModelRef, fault: Fault) -> str:
    """What to do if no model server is found."""
    causes = frozenset(fault.causes)
    if fault.name == "RedirectError":
        home = _ENDPOINT.sub("", display_address(fault.text))
        is_new = _ENDPOINT.search(display_address(fault.text)) and home != model.base_url
        return f"If that is your server, set base_url to {home}." if is_new else "Check base_url."
    if fault.name == "NotHttpError":
        return "Check the port in base_url, or use https:// there."
    if fault.name == "BadAddressError":
        where = "base_url" if model.base_url else "the base URL (such as OPENAI_BASE_URL)"
        return f"Set {where} to a URL that starts with http:// or https://."
    if causes & {"SSLCertVerificationError", "ClientConnectorCertificateError"}:
        return "If you trust it, set SSL_CERT_FILE to the file of its CA certificate."
    if causes & _UNTRUSTED:
        return "If the server does not use TLS, set base_url to http://."
    if model.base_url:
        return "Check base_url: most end in /v1."
    return "Check your network: it may require a login."


def _account(model: ModelRef) -> Account | None:
    """What the user signs in to for `model`; None if it takes a key."""
    return None if model.base_url else own_accounts().get(model.provider)


def _key_hint(model: ModelRef) -> str:
    if (account := _account(model)) is not None:
        return f"Sign in with {login_command(account)}, or {_OR_SWITCH}."
    variable = model.api_key_env or ("" if model.base_url else key_variable(model.provider))
    if variable and variable == KEEPABLE.get(model.provider):
        kept = f"{{or_keep_key:{model.provider}}}"
        return f"Set a valid key in {variable}{kept}, or {_OR_SWITCH}."
    if variable:
        return f"Set a valid key in {variable}, or {_OR_SWITCH}."
    if model.base_url:
        return "Name the variable that holds its key with {key_env}."
    return f"Set the provider's key in the environment, or {_OR_SWITCH}."


def plain_detail(text: str) -> str:
    """A server's text as one short sentence, without litellm's class names and HTML."""
    first = _ADVICE.sub("", text.split(" Original exception: ")[0])
    while (shorter := _PREFIXES.sub("", first, count=1)) != first:
        first = shorter
    if quoted := _AS_BYTES.fullmatch(first):
        first = quoted[2]
    if _PAGE.search(first):
        title = re.search(r"<title>(.*?)</title>", first, re.I | re.S)
        first = title[1] if title else "an HTML page instead of a reply"
    first = " ".join(first.split())
    if _NOTHING.fullmatch(first):
        return _NO_REASON
    if len(first) > _MAX_DETAIL_CHARS:
        return first[: _MAX_DETAIL_CHARS - 1] + "…"
    return first if first.endswith((".", "!", "?")) else first + "."


def connection_detail(fault: Fault) -> str:
    """What the exception classes of `fault` say about a connection, as a sentence; or nothing.

    Their texts are not for users: "Cannot connect to host … ssl:<ssl.SSLContext object …>".
    """
    found = frozenset((fault.name, *fault.causes))
    return next((words for names, words in _CAUSES if not found.isdisjoint(names)), "")
