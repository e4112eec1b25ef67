"""The models known on this machine: one small JSON file each, beside the downloaded models."""

import contextlib
import dataclasses
import json
import re
import unicodedata
from collections.abc import Generator
from pathlib import Path
from typing import Final

from pydantic import JsonValue, TypeAdapter, ValidationError

from agent_tui.atomic_files import replace_private_file
from agent_tui.errors import ModelFileError
from agent_tui.features.local.gguf import GgufInfo, part_paths, read_gguf, refuse_unusable
from agent_tui.features.local.model import LocalModel
from agent_tui.file_locks import LockHeldError, hold_lock
from agent_tui.paths import make_private_dir
from agent_tui.regular_files import open_regular_file
from agent_tui.safe_paths import real_path

_LOCK_PATIENCE_S: Final = 10.0
_FORMAT: Final = 1
_MAX_RECORD_BYTES: Final = 256 * 1024
_RECORD: Final = TypeAdapter(dict[str, object])
_MODEL: Final = TypeAdapter(LocalModel)
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,99}")
_PART: Final = re.compile(r"-\d{5}-of-\d{5}$")
_SAYS_NOTHING: Final = re.compile(r"(sha256[-:])?[0-9a-f]{32,}|model|ggml-model.*|download|resolve")


@dataclasses.dataclass(frozen=True, slots=True)
class LibraryListing:
    """What a library holds: its models by name, and the problems with files it cannot read."""

    models: tuple[LocalModel, ...]
    problems: tuple[str, ...]


class ModelLibrary:
    """Models by name. Nothing is read or created until it is needed.

    Args:
        root: Folder of the library; ``<name>.json`` describes a model, ``files/`` holds downloaded
            models, ``downloads/`` unfinished ones.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.files_dir = root / "files"
        self.downloads_dir = root / "downloads"

    def models(self) -> tuple[LocalModel, ...]:
        """All models by name, including those whose file is missing."""
        return self.listing().models

    def listing(self) -> LibraryListing:
        """All models by name, and the problems with descriptions that cannot be read.

        Raises:
            ModelFileError: The folder cannot be read.
        """
        models: list[LocalModel] = []
        problems: list[str] = []
        try:
            paths = sorted(self.root.glob("*.json"), key=lambda path: path.stem)
        except OSError as error:
            raise _failure(self.root, "read", error) from error
        for path in paths:
            if not _is_name(path.stem):
                continue
            try:
                models.append(_read_record(path, self.files_dir))
            except ModelFileError as error:
                problems.append(str(error))
        return LibraryListing(tuple(models), tuple(problems))

    def find(self, name: str) -> LocalModel | None:
        """The model called `name`, or None.

        Raises:
            ModelFileError: Its description cannot be read.
        """
        if not _is_name(name):
            return None
        path = self._record(name)
        return _read_record(path, self.files_dir) if path.exists() else None

    def time_added(self, name: str) -> float:
        """When model `name` was last pulled or added, in seconds since the epoch; 0 if unknown."""
        try:
            return self._record(name).stat().st_mtime
        except OSError:
            return 0.0

    def add(self, path: Path, name: str = "") -> LocalModel:
        """Register a GGUF file in place; adding the same file again returns the same model.

        Args:
            path: The file; of a split model, its first part.
            name: The model's name; if empty, one is made from the file's.

        Raises:
            ModelFileError: It is not a usable GGUF file, or the name is taken or invalid.
        """
        try:
            path = real_path(path.expanduser())
        except (OSError, RuntimeError, ValueError) as error:
            raise ModelFileError(f"{str(path)!r} is not a path.", "Name a .gguf file.") from error
        info = read_gguf(path)
        refuse_unusable(path, info)
        found = _describe(path, info)
        if len(parts := part_paths(path, info)) > 1:
            found = dataclasses.replace(
                found, size_bytes=sum(part.stat().st_size for part in parts)
            )
        with self._lock():
            known = next((model for model in self.models() if model.path == path), None)
            if known is not None and name in ("", known.name):
                found = dataclasses.replace(
                    found,
                    **{"name": known.name, "is_ours": known.is_ours},
                    **{"source": known.source, "sha256": known.sha256},
                )
            else:
                found = dataclasses.replace(found, name=self._new_name(path, info, name))
            self._write(found)
        return found

    def adopt(self, model: LocalModel, info: GgufInfo, *, is_name_fixed: bool) -> LocalModel:
        """Take a pulled file into the library: move it into place, then describe it.

        Args:
            model: `path` is the complete, checked file, on the library's own disk; `name`,
                `source`, `sha256`, and `title` and `licence` unless empty, are kept.
            info: What the file says about itself.
            is_name_fixed: Refuse a name that is taken; otherwise number it.

        Raises:
            ModelFileError: The name is taken, or writing failed; the file then stays where it was.
        """
        with self._lock():
            name = model.name if is_name_fixed else self._free_name(model.name)
            place = self.file_of(name)
            self.refuse_taken(name, model.source)
            found = _describe(place, info)
            found = dataclasses.replace(
                found,
                name=name,
                title=model.title or found.title,
                licence=model.licence or found.licence,
                source=model.source,
                sha256=model.sha256,
                is_ours=True,
            )
            try:
                make_private_dir(self.files_dir)
                model.path.replace(place)
            except OSError as error:
                raise _failure(place, "write to", error) from error
            try:
                self._write(found)
            except BaseException:
                # Without its description it is not a model; the next pull resumes here.
                with contextlib.suppress(OSError):
                    place.replace(model.path)
                raise
        return found

    def refuse_taken(self, name: str, source: str) -> None:
        """Refuse `name` for a pull from `source` if another model has it.

        Raises:
            ModelFileError: Another model has that name.
        """
        other = self._find_damaged(name)
        if other is None:
            return
        if other.path != self.file_of(name) or (other.is_there and other.source != source):
            raise _name_taken(name, other)

    def remove(self, name: str) -> LocalModel:
        """Forget a model and return it; its file is deleted only if it was pulled.

        Raises:
            ModelFileError: There is no such model, or it cannot be deleted.
        """
        with self._lock():
            model = self._find_damaged(name)
            if model is None:
                names = ", ".join(model.name for model in self.models())
                hint = (
                    f"Local models: {names}."
                    if names
                    else "To download one: agent-tui models pull NAME"
                )
                raise ModelFileError(f"No local model {name!r}.", hint)
            try:
                if model.is_ours:
                    model.path.unlink(missing_ok=True)
                self._record(name).unlink(missing_ok=True)
            except OSError as error:
                raise _failure(model.path, "delete", error) from error
        return model

    def file_of(self, name: str) -> Path:
        """The path of the file of a pulled model called `name`."""
        return self.files_dir / f"{name}.gguf"

    def _find_damaged(self, name: str) -> LocalModel | None:
        """As `find`, but returns a model for the pulled file if its description is damaged."""
        try:
            return self.find(name)
        except ModelFileError:
            place = self.file_of(name)
            return LocalModel(name, place, size_bytes=0, is_ours=True)

    def _record(self, name: str) -> Path:
        return self.root / f"{name}.json"

    def _new_name(self, path: Path, info: GgufInfo, name: str) -> str:
        if not name:
            return self._free_name(suggest_name(path.stem, info))
        check_name(name)
        if (other := self.find(name)) is not None and other.path != path:
            raise _name_taken(name, other)
        return name

    def _free_name(self, name: str) -> str:
        number, free = 1, name
        while self._record(free).exists():
            number += 1
            free = f"{name}-{number}"
        return free

    @contextlib.contextmanager
    def _lock(self) -> Generator[None]:
        """Lock the library so that no other program chooses names at the same time."""
        try:
            make_private_dir(self.root)
            with hold_lock(self.root / ".lock", within_s=_LOCK_PATIENCE_S):
                yield
        except LockHeldError as error:
            how = error.owner.how_to_go_on or "Try again in a moment."
            raise ModelFileError(f"{self.root} is in use by {error.owner}.", how) from error
        except OSError as error:
            raise _failure(self.root, "write to", error) from error

    def _write(self, model: LocalModel) -> None:
        record = self._record(model.name)
        is_inside = model.is_ours and model.path.parent == self.files_dir
        content: dict[str, JsonValue] = {
            **dataclasses.asdict(model),
            "format": _FORMAT,
            "path": model.path.name if is_inside else str(model.path),
            "is_ours": is_inside,
        }
        del content["name"]  # the file name holds it
        try:
            replace_private_file(record, json.dumps(content, indent=2) + "\n")
        except OSError as error:
            raise _failure(record, "write to", error) from error


def _read_record(path: Path, files_dir: Path) -> LocalModel:
    """The model that the file at `path` describes; a pulled model's file is in `files_dir`.

    Raises:
        ModelFileError: It cannot be read, or is not a description.
    """
    try:
        with open_regular_file(path) as file:
            content = file.read(_MAX_RECORD_BYTES + 1)
        if len(content) > _MAX_RECORD_BYTES:
            raise _damage_error(path, f"it is larger than {_MAX_RECORD_BYTES:,} bytes")
        record = _RECORD.validate_python(json.loads(content))
        if record.get("format") != _FORMAT:
            raise ModelFileError(f"{path} has an unknown format.", "Update agent-tui.")
        place = _place(path, record, files_dir)
        return _MODEL.validate_python({**record, "name": path.stem, "path": place})
    except OSError as error:
        raise _damage_error(path, error.strerror or type(error).__name__) from error
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        raise _damage_error(path, f"{key}: {first['msg']}" if key else first["msg"]) from error
    except (ValueError, RecursionError) as error:
        raise _damage_error(path, "not JSON") from error


def _place(path: Path, record: dict[str, object], files_dir: Path) -> Path:
    """The path of the model's file, from `record`, the content of `path`."""
    written = record.get("path")
    if not isinstance(written, str) or not written:
        raise _damage_error(path, "path is not a string")
    place = Path(written)
    if record.get("is_ours") is not True:
        if not place.is_absolute():
            raise _damage_error(path, "path is not absolute")
        return place
    if place.name != written:
        raise _damage_error(path, "path is not in the library's own folder")
    return files_dir / place


def _damage_error(path: Path, what: str) -> ModelFileError:
    return ModelFileError(
        f"Cannot read {path}: {what}.", f"To remove it: agent-tui models remove {path.stem}"
    )


def _describe(path: Path, info: GgufInfo) -> LocalModel:
    """A model with what its file says about itself; the name is still to be set."""
    return LocalModel(
        name="",
        path=path,
        size_bytes=info.size_bytes,
        title=" ".join(filter(None, (info.name, info.quantisation))),
        licence=info.licence,
        architecture=info.architecture,
        trained_window=info.window,
        has_chat_template=info.has_chat_template,
        knows_tools=info.knows_tools,
    )


def _name_taken(name: str, other: LocalModel) -> ModelFileError:
    return ModelFileError(
        f"The name {name} is taken by {other.path}.",
        f"Choose another with --name, or remove that model: agent-tui models remove {name}",
    )


def _failure(path: Path, verb: str, error: OSError) -> ModelFileError:
    reason = error.strerror or type(error).__name__
    return ModelFileError(
        f"Cannot {verb} {path}: {reason}.", "Check the folder's permissions and free space."
    )


def _is_name(name: str) -> bool:
    """Whether `name` is a valid model name."""
    return _NAME.fullmatch(name) is not None


def check_name(name: str) -> None:
    """Refuse an invalid model name.

    Raises:
        ModelFileError: It has characters that are not allowed, or too many.
    """
    if not _is_name(name):
        raise ModelFileError(
            f"{name!r} cannot be the name of a model.",
            "Use up to 100 lowercase letters, digits, '.', '_' and '-', a letter or digit first.",
        )


def suggest_name(stem: str, info: GgufInfo | None = None) -> str:
    """A model name from its file's, without suffix; from `info` if the file name says nothing."""
    stem = _PART.sub("", _without_marks(stem.lower()))
    if _SAYS_NOTHING.fullmatch(stem) and info is not None and info.name:
        stem = f"{info.name} {info.quantisation}".lower()
    return re.sub(r"[^a-z0-9._]+", "-", stem).strip("-._")[:80] or "model"


def _without_marks(text: str) -> str:
    """`text` without accents: ``modèle`` becomes ``modele``."""
    letters = unicodedata.normalize("NFKD", text)
    return "".join(letter for letter in letters if not unicodedata.combining(letter))
