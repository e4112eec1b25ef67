"""A ChatGPT subscription: its tokens, which litellm renews."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agent_tui.atomic_files import replace_private_file
from agent_tui.features.accounts.device import Pending, read_answer, sign_in
from agent_tui.messages import JsonObject
from agent_tui.providers.accounts import Account, DeviceCode, SignInError
from agent_tui.providers.wires.parts import as_object, count_at, text_at
from agent_tui.regular_files import read_regular_file

if TYPE_CHECKING:
    import httpx

_CLIENT_ID: Final = "app_EMoamEEZ73f0CkXaXp7hrann"
"""The OAuth client with which litellm renews the tokens."""
_HOME: Final = "https://auth.openai.com"
_LIFE_S = 900
_FOLDER: Final = "CHATGPT_TOKEN_DIR"
_USUAL_INTERVAL_S = 5
_TOKENS: Final = ("access_token", "refresh_token", "id_token")
_NOT_YET: Final = (403, 404)


class ChatGptService:
    """OpenAI's account service.

    Args:
        environ: Says where the tokens are stored.
        home: The address of the service.
    """

    def __init__(self, environ: Mapping[str, str], home: str = _HOME) -> None:
        self._home = home
        (self._file,) = _files(environ)

    async def new_code(self, http: "httpx.AsyncClient") -> DeviceCode:
        """See `DeviceService.new_code`."""
        url = f"{self._home}/api/accounts/deviceauth/usercode"
        response = await http.post(url, json={"client_id": _CLIENT_ID})
        given = read_answer(response)
        code = DeviceCode(
            text_at(given, "user_code") or text_at(given, "usercode"),
            f"{self._home}/codex/device",
            text_at(given, "device_auth_id"),
            count_at(given, "interval") if "interval" in given else _USUAL_INTERVAL_S,
            _LIFE_S,
        )
        if not (code.user_code and code.device_id):
            raise SignInError(
                f"ChatGPT returned no code (status {response.status_code}).",
                "You may have to allow device code sign-in in its security settings.",
            )
        return code

    async def tokens(self, http: "httpx.AsyncClient", code: DeviceCode) -> JsonObject | Pending:
        """See `DeviceService.tokens`."""
        url = f"{self._home}/api/accounts/deviceauth/token"
        asked = {"device_auth_id": code.device_id, "user_code": code.user_code}
        response = await http.post(url, json=asked)
        if response.status_code in _NOT_YET:
            return Pending()
        granted = read_answer(response)
        exchanged = await http.post(
            f"{self._home}/oauth/token",
            data={
                "grant_type": "authorization_code",
                "code": text_at(granted, "authorization_code"),
                "redirect_uri": f"{self._home}/deviceauth/callback",
                "client_id": _CLIENT_ID,
                "code_verifier": text_at(granted, "code_verifier"),
            },
        )
        given = read_answer(exchanged)
        if not all(text_at(given, name) for name in _TOKENS):
            raise SignInError(f"ChatGPT returned no token (status {exchanged.status_code}).")
        return given

    def keep(self, tokens: JsonObject) -> None:
        """See `DeviceService.keep`."""
        kept = {name: tokens[name] for name in _TOKENS}
        replace_private_file(self._file, json.dumps(kept))


def _files(environ: Mapping[str, str]) -> tuple[Path, ...]:
    """The files where litellm expects the tokens."""
    folder = Path(environ.get(_FOLDER, "~/.config/litellm/chatgpt")).expanduser()
    return (folder / environ.get("CHATGPT_AUTH_FILE", "auth.json"),)


def _has_token(file: Path) -> bool:
    try:
        kept = as_object(json.loads(read_regular_file(file)))
    except (OSError, ValueError):
        return False
    return bool(text_at(kept, "access_token") or text_at(kept, "refresh_token"))


async def _sign_in(environ: Mapping[str, str], show: Callable[[DeviceCode], object]) -> None:
    await sign_in(ChatGptService(environ), show)


CHATGPT: Final = Account("chatgpt", "chatgpt", "ChatGPT", _files, _has_token, _sign_in, _FOLDER)
