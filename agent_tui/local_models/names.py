"""What models are called."""

import re
import unicodedata
from typing import Final

from agent_tui.errors import ModelFileError
from agent_tui.local_models.gguf import GgufInfo

_NAME: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,99}")
_PART: Final = re.compile(r"-\d{5}-of-\d{5}$")
_SAYS_NOTHING: Final = re.compile(r"(sha256[-:])?[0-9a-f]{32,}|model|ggml-model.*|download|resolve")


def is_name(name: str) -> bool:
    """Whether a model can be called `name`."""
    return _NAME.fullmatch(name) is not None


def check_name(name: str) -> None:
    """Refuse a name that no model can have.

    Raises:
        ModelFileError: It has other characters than those allowed, or too many.
    """
    if not is_name(name):
        raise ModelFileError(
            f"{name!r} cannot be the name of a model.",
            "Take small letters, digits, '.', '_' and '-', at most 100, a letter or digit first.",
        )


def suggested_name(stem: str, info: GgufInfo | None = None) -> str:
    """A name for a model from its file's, without suffix; from `info` if that tells nothing."""
    stem = _PART.sub("", _without_marks(stem.lower()))
    if _SAYS_NOTHING.fullmatch(stem) and info is not None and info.name:
        stem = f"{info.name} {info.quantisation}".lower()
    return re.sub(r"[^a-z0-9._]+", "-", stem).strip("-._")[:80] or "model"


def _without_marks(text: str) -> str:
    """`text` with the letters under their accents: ``modèle`` is ``modele``."""
    letters = unicodedata.normalize("NFKD", text)
    return "".join(letter for letter in letters if not unicodedata.combining(letter))
