"""The messages between the program and a local model's server: one JSON line each way."""

from dataclasses import dataclass
from typing import Literal, TypeAlias, TypedDict


class LoadOrder(TypedDict):
    """The line to the process. `context` in tokens; 0 leaves a number to llama.cpp.

    `gpu_layers` -1: as many as fit. `parent_pid` is the process it belongs to.
    """

    path: str
    alias: str
    key: str
    context: int
    threads: int
    gpu_layers: int
    parent_pid: int


@dataclass(frozen=True, slots=True)
class ServedLocal:
    """What a ready server reports; `url` is the base of its OpenAI-like API.

    Windows in tokens: the conversation's, and the one the model was trained for (0: unknown).
    `knows_tools`: its chat template supports tools; otherwise they are silently left out.
    """

    url: str
    window: int
    trained_window: int
    knows_tools: bool
    has_template: bool


@dataclass(frozen=True, slots=True)
class NotServed:
    """Why there is no server: ``missing`` is xllamacpp itself, ``refused`` the model."""

    reason: Literal["missing", "refused"]
    detail: str


LoadAnswer: TypeAlias = ServedLocal | NotServed
