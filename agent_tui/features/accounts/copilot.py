"""GitHub Copilot: a token of the user's GitHub account, which litellm sends to Copilot."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agent_tui.atomic_files import replace_private_file
from agent_tui.features.accounts.device import Pending, read_answer, sign_in
from agent_tui.messages import JsonObject
from agent_tui.providers.accounts import Account, DeviceCode, SignInError
from agent_tui.providers.wires.parts import count_at, text_at
from agent_tui.regular_files import read_regular_file

if TYPE_CHECKING:
    import httpx

_CLIENT_ID: Final = "Iv1.b507a08c87ecfe98"
"""The OAuth client that litellm uses; the token must be used with the same client."""
_GRANT: Final = "urn:ietf:params:oauth:grant-type:device_code"
_HEADERS: Final = {
    "accept": "application/json",
    "editor-version": "vscode/1.85.1",
    "editor-plugin-version": "copilot/1.155.0",
    "user-agent": "GithubCopilot/1.155.0",
}
"""Headers of an editor: GitHub issues Copilot tokens only to editors it knows."""
_USUAL_INTERVAL_S = 5
_USUAL_LIFE_S = 900
_FOLDER: Final = "GITHUB_COPILOT_TOKEN_DIR"


class CopilotService:
    """GitHub, or the GitHub server that litellm's variables name."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        prefix = "GITHUB_COPILOT"
        self._client_id = environ.get(f"{prefix}_CLIENT_ID", _CLIENT_ID)
        self._code_url = environ.get(
            f"{prefix}_DEVICE_CODE_URL", "https://github.com/login/device/code"
        )
        self._token_url = environ.get(
            f"{prefix}_ACCESS_TOKEN_URL", "https://github.com/login/oauth/access_token"
        )
        self._copilot_url = environ.get(
            f"{prefix}_API_KEY_URL", "https://api.github.com/copilot_internal/v2/token"
        )
        self._files = _files(environ)

    async def new_code(self, http: "httpx.AsyncClient") -> DeviceCode:
        """See `DeviceService.new_code`."""
        asked = {"client_id": self._client_id, "scope": "read:user"}
        response = await http.post(self._code_url, headers=_HEADERS, json=asked)
        given = read_answer(response)
        code = DeviceCode(
            text_at(given, "user_code"),
            text_at(given, "verification_uri"),
            text_at(given, "device_code"),
            count_at(given, "interval") if "interval" in given else _USUAL_INTERVAL_S,
            count_at(given, "expires_in") if "expires_in" in given else _USUAL_LIFE_S,
        )
        if not (code.user_code and code.page and code.device_id):
            raise SignInError(f"GitHub returned no code (status {response.status_code}).")
        return code

    async def tokens(self, http: "httpx.AsyncClient", code: DeviceCode) -> JsonObject | Pending:
        """See `DeviceService.tokens`."""
        asked = {
            "client_id": self._client_id,
            "device_code": code.device_id,
            "grant_type": _GRANT,
        }
        response = await http.post(self._token_url, headers=_HEADERS, json=asked)
        given = read_answer(response)
        if token := text_at(given, "access_token"):
            await self._check_plan(http, token)
            return given
        match text_at(given, "error"):
            case "authorization_pending":
                return Pending()
            case "slow_down":
                return Pending(wants_slower=True)
            case "expired_token":
                raise SignInError("The code expired before it was entered.", "Try again.")
            case "access_denied":
                raise SignInError("You refused access on GitHub's page.")
            case why:
                why = text_at(given, "error_description") or why
                raise SignInError(
                    f"GitHub returned no token: {why or f'status {response.status_code}'}."
                )

    def keep(self, tokens: JsonObject) -> None:
        """See `DeviceService.keep`."""
        long_lived, *short_lived = self._files
        for file in short_lived:  # belong to the previous sign-in
            file.unlink(missing_ok=True)
        replace_private_file(long_lived, text_at(tokens, "access_token"))

    async def _check_plan(self, http: "httpx.AsyncClient", token: str) -> None:
        response = await http.get(
            self._copilot_url, headers={**_HEADERS, "authorization": f"token {token}"}
        )
        if response.status_code in (401, 403, 404):
            raise SignInError(
                "This GitHub account cannot use Copilot.",
                "Check its plan at https://github.com/settings/copilot.",
            )


def _files(environ: Mapping[str, str]) -> tuple[Path, ...]:
    """The files of the account's token and of the short-lived one that litellm once kept."""
    folder = Path(environ.get(_FOLDER, "~/.config/litellm/github_copilot")).expanduser()
    return (
        folder / environ.get("GITHUB_COPILOT_ACCESS_TOKEN_FILE", "access-token"),
        folder / environ.get("GITHUB_COPILOT_API_KEY_FILE", "api-key.json"),
    )


def _has_token(file: Path) -> bool:
    try:
        return bool(read_regular_file(file).decode("utf-8").strip())
    except (OSError, ValueError):
        return False


async def _sign_in(environ: Mapping[str, str], show: Callable[[DeviceCode], object]) -> None:
    await sign_in(CopilotService(environ), show)


COPILOT: Final = Account(
    "copilot", "github_copilot", "GitHub Copilot", _files, _has_token, _sign_in, _FOLDER
)
