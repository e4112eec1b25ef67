"""The file that describes a model of the library: JSON, written by us, read with suspicion."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from agent_tui.errors import ModelFileError
from agent_tui.local_models.model import LocalModel
from agent_tui.regular_files import open_regular_file

_FORMAT: Final = 1
_MAX_BYTES: Final = 256 * 1024


class _Record(BaseModel):
    """The keys of the file. `path` of a pulled model is a name in the library's ``files/``."""

    model_config = ConfigDict(frozen=True)

    format: int = Field(ge=1)
    path: object  # pydantic takes no text with the lone surrogates that a path may have
    is_ours: bool = False
    size_bytes: int = Field(ge=0)
    title: str = ""
    licence: str = ""
    source: str = ""
    architecture: str = ""
    trained_window: int | None = Field(default=None, gt=0)
    has_chat_template: bool = False
    knows_tools: bool = False
    sha256: str = ""


def encode_model(model: LocalModel, files_dir: Path) -> dict[str, JsonValue]:
    """`model` as the JSON of its file; `files_dir` is the library's own folder of files."""
    is_inside = model.is_ours and model.path.parent == files_dir
    record: dict[str, JsonValue] = {
        **asdict(model),
        "format": _FORMAT,
        "path": model.path.name if is_inside else str(model.path),
        "is_ours": is_inside,
    }
    del record["name"]  # the file's own name says it
    return record


def decode_model(path: Path, files_dir: Path) -> LocalModel:
    """The model described at `path`.

    Raises:
        ModelFileError: It cannot be read, or is not such a file.
    """
    try:
        with open_regular_file(path) as file:
            content = file.read(_MAX_BYTES + 1)
        if len(content) > _MAX_BYTES:
            raise _damaged(path, f"it is larger than {_MAX_BYTES:,} bytes")
        record = _Record.model_validate(json.loads(content))
    except OSError as error:
        raise _damaged(path, error.strerror or type(error).__name__) from error
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        raise _damaged(path, f"{key}: {first['msg']}" if key else first["msg"]) from error
    except (ValueError, RecursionError) as error:
        raise _damaged(path, "not JSON") from error
    if record.format > _FORMAT:
        raise ModelFileError(f"{path} was written by a newer agent-tui.", "Update agent-tui.")
    return _model(record, path, files_dir)


def _model(record: _Record, path: Path, files_dir: Path) -> LocalModel:
    if not isinstance(record.path, str) or not record.path:
        raise _damaged(path, "path is not a string")
    file_name = Path(record.path)
    if record.is_ours and file_name.name != record.path:
        raise _damaged(path, "path is not in the library's own folder")
    if not record.is_ours and not file_name.is_absolute():
        raise _damaged(path, "path is not absolute")
    return LocalModel(
        name=path.stem,
        path=files_dir / file_name if record.is_ours else file_name,
        **record.model_dump(exclude={"format", "path"}),
    )


def _damaged(path: Path, what: str) -> ModelFileError:
    return ModelFileError(
        f"Cannot read {path}: {what}.", f"To remove it: agent-tui models remove {path.stem}"
    )
