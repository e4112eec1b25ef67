"""What the person is told when a local model cannot be used, and what they can do."""

from pathlib import Path

from agent_tui.local_models.model import LocalModel
from agent_tui.local_models.runtime import install_command
from agent_tui.providers.base import ProviderError
from agent_tui.providers.local.process import LoadFailure

_MEMORY_WORDS = ("insufficient memory", "failed to allocate", "failed to create context")


def no_such_model(name: str, model: LocalModel | None) -> ProviderError:
    """The error for a model that is not in the library, or whose file (`model`) is gone."""
    if model is None:
        message = f"No local model is called {name}."
        hint = "See which there are with agent-tui models list, or get one with models pull."
    else:
        message = f"The file of local/{name} is gone: {model.path}."
        hint = model.recovery_hint
    return ProviderError("not_found", message, hint)


def load_error(model: LocalModel, failure: LoadFailure, log_path: Path) -> ProviderError:
    """The error for a model whose server did not come up; trying again is left to the person."""
    name, detail = f"local/{model.name}", failure.detail
    match failure.reason:
        case "missing":
            message = f"{name} needs xllamacpp, which cannot be imported: {detail}."
            return ProviderError("not_found", message, f"Install it: {install_command()}")
        case "killed":
            message = f"The server of {name} was ended while it loaded ({detail}), twice."
            hint = f"Too little memory? {_smaller()} See {log_path}."
        case "refused" | "broke" if any(word in detail for word in _MEMORY_WORDS):
            message = f"There is too little memory for {name}: {detail}."
            hint = _smaller()
        case _:
            message = f"llama.cpp cannot load {name} from {model.path}: {detail}."
            hint = "The file may be damaged or of a newer kind: pull or add it again, or choose "
            hint += f"another with /model. See {log_path}."
    return ProviderError("bad_request", message, hint)


def ended_while_answering() -> ProviderError:
    """The error for a server that died over a request."""
    return ProviderError(
        "crashed",
        "The local model's server ended while answering; it is started again with the next "
        "request.",
    )


def _smaller() -> str:
    return "Set a smaller context under [local] in the settings, or choose a smaller model."
