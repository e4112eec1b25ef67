"""The used part of litellm's module, and patches for it. Only this file names litellm."""

import importlib
import logging
import os
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, Final, Never, Protocol, cast

from agent_tui.messages import JsonObject
from agent_tui.providers.accounts import Account
from agent_tui.providers.transport.serving import Listener
from agent_tui.providers.wires.base import NotSignedInError

_QUIET_LOGGERS = ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy", "httpx", "openai", "asyncio")

listening: Final[ContextVar[Listener | None]] = ContextVar("listening", default=None)
"""The listener of the request that the current task serves."""


class Choice(Protocol):
    """One choice of a stream part; there is never more than one."""

    delta: object
    finish_reason: str | None


class Part(Protocol):
    """One part of a stream; it may have a ``usage``."""

    choices: Sequence[Choice]


class ReplyStream(Protocol):
    """What litellm's ``acompletion(stream=True)`` returns.

    ``received_finish_reason`` and ``intermittent_finish_reason`` are what the provider sent; the
    `Part` that litellm adds at the end always says "stop". ``chunks`` are the parts as received,
    usage included.
    """

    received_finish_reason: str | None
    intermittent_finish_reason: str | None
    chunks: Sequence[object]

    def __aiter__(self) -> AsyncIterator[Part]:
        """The parts, as they arrive."""
        ...

    async def __anext__(self) -> Part:
        """The next part."""
        ...

    async def aclose(self) -> None:
        """Close the connection."""
        ...


class LiteLlm(Protocol):
    """The used part of the litellm module."""

    suppress_debug_info: bool
    disable_hf_tokenizer_download: bool
    disable_copilot_system_to_assistant: bool

    @property
    def provider_list(self) -> Sequence[str]:
        """The provider names that litellm accepts before the slash."""
        ...

    @property
    def model_cost(self) -> Mapping[str, JsonObject]:
        """What litellm's table says of each model."""
        ...

    async def acompletion(self, **arguments: object) -> ReplyStream:
        """Send a chat request, with ``stream`` among the arguments."""
        ...


def load_litellm() -> LiteLlm:
    """Import litellm without its network fetch, its ``.env`` file and its log output."""
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    # For names with llama-2, command-r and others it would download a tokenizer to count tokens.
    os.environ["HF_HUB_OFFLINE"] = os.environ["TRANSFORMERS_OFFLINE"] = "1"
    os.environ["LITELLM_MODE"] = "PRODUCTION"  # "DEV" reads a .env file in a folder above
    # A model that draws a table repeats itself; stopping it is up to the user.
    os.environ["REPEATED_STREAMING_CHUNK_LIMIT"] = str(10**9)
    import litellm

    module = cast(LiteLlm, litellm)
    module.suppress_debug_info = True
    module.disable_hf_tokenizer_download = True
    # Copilot accepts instructions now; otherwise they would appear as the model's own words.
    module.disable_copilot_system_to_assistant = True
    _forbid_hidden_retry()
    _forbid_templates_of_a_hub()
    _send_bodies_as_they_are()
    _hear_every_client()
    for name in _QUIET_LOGGERS:  # their messages may quote the conversation
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    return module


def _forbid_hidden_retry() -> None:
    """Make litellm's own HTTP client report a lost connection instead of retrying.

    The retried request is paid for and lost: its client is closed before the reply is read.
    """
    http: Any = importlib.import_module("litellm.llms.custom_httpx.http_handler")

    async def refuse(*_arguments: object, **_named: object) -> Never:
        error = sys.exception()
        assert error is not None  # only called to handle an error
        raise error

    http.AsyncHTTPHandler.single_connection_post_request = refuse


def _forbid_templates_of_a_hub() -> None:
    """Make litellm write prompts by its own templates; for some models it would query a hub."""
    hub: Any = importlib.import_module(
        "litellm.litellm_core_utils.prompt_templates.huggingface_template_handler"
    )

    def refuse(*_arguments: object, **_named: object) -> Never:
        raise LookupError("templates are not fetched")

    hub.get_httpx_client = hub.get_async_httpx_client = refuse


def _send_bodies_as_they_are() -> None:
    """Make OpenAI's client send a chat request's body without walking through it.

    It searches every message for values of its own types: 100 ms per request at 600 messages. Our
    bodies are already JSON; it only has to leave out arguments that were not given.
    """
    chat: Any = importlib.import_module("openai.resources.chat.completions.completions")

    async def without_omitted(body: Mapping[str, object], _type: object) -> Mapping[str, object]:
        omitted = (chat.NotGiven, chat.Omit)
        return {name: value for name, value in body.items() if not isinstance(value, omitted)}

    chat.async_maybe_transform = without_omitted


def _hear_every_client() -> None:
    """Make each HTTP client tell the current listener which URL it calls, and what arrives when.

    litellm's streams drop comments and empty deltas, so they are seen only here.
    """
    import httpx

    class HeardStream(httpx.AsyncByteStream):
        def __init__(self, stream: httpx.AsyncByteStream, listener: Listener) -> None:
            self._stream = stream
            self._listener = listener

        async def __aiter__(self) -> AsyncIterator[bytes]:
            async for piece in self._stream:
                self._listener.hear()
                yield piece

        async def aclose(self) -> None:
            await self._stream.aclose()

    clients: Any = httpx.AsyncClient
    send = clients.send

    async def send_with_notice(
        client: httpx.AsyncClient, request: httpx.Request, **options: bool
    ) -> httpx.Response:
        listener = listening.get()
        if listener is not None:
            listener.asking(str(request.url))
        response = await send(client, request, **options)
        if listener is not None and isinstance(response.stream, httpx.AsyncByteStream):
            listener.hear()
            listener.read_headers(response.headers)
            response.stream = HeardStream(response.stream, listener)
        return response

    clients.send = send_with_notice


def renew_token(account: Account) -> None:
    """Have litellm renew the token of `account` if it has expired; waits for servers.

    If litellm cannot, it would ask the user to sign in, in our log, and wait.

    Raises:
        NotSignedInError: The token cannot be renewed.
    """
    module: Any = importlib.import_module(f"litellm.llms.{account.provider}.authenticator")

    ended = NotSignedInError(
        f"the {account.title} sign-in has expired, or its server cannot be reached"
    )

    def refuse(*_arguments: object, **_named: object) -> Never:
        raise ended

    for sign_in in ("_login", "_login_device_code", "_wait_for_access_token"):
        setattr(module.Authenticator, sign_in, refuse)
    authenticator = module.Authenticator()
    try:
        getattr(authenticator, "get_api_key", authenticator.get_access_token)()
    except Exception as error:
        if getattr(error, "status_code", None) == 401:
            raise ended from error
        raise
