"""Which GGUF files can be talked to, and what to do with the others."""

import re
from pathlib import Path

from agent_tui.errors import ModelFileError
from agent_tui.local_models.gguf import GgufInfo


def refuse_unusable(path: Path, info: GgufInfo) -> None:
    """Do nothing for a whole model that can be talked to.

    Raises:
        ModelFileError: It is of another kind, cut, or not the first of several files.
    """
    match info.use:
        case "chat":
            pass
        case "embedding":
            raise ModelFileError(
                f"{path} makes embeddings and cannot be talked to.", "Choose a chat model."
            )
        case "projector":
            raise ModelFileError(
                f"{path} is the image part of a model.", "Name the model's own .gguf file."
            )
        case "adapter":
            raise ModelFileError(
                f"{path} is an adapter (LoRA), no model.", "Merge it into its model first."
            )
        case "vocabulary":
            raise ModelFileError(f"{path} holds a vocabulary only.", "Choose the whole model.")
    if info.part_number > 0 or _number_in_name(path) > 1:
        first = _part(path, 1)
        raise ModelFileError(
            f"{path} is part {max(info.part_number + 1, _number_in_name(path))} of a model.",
            f"Name the first part: {first.name}",
        )
    if not info.is_complete:
        raise ModelFileError(
            f"{path} is cut: {info.size_bytes:,} of at least {info.expected_bytes:,} bytes.",
            "Download or copy it again.",
        )
    for part in part_paths(path, info):
        if not part.is_file():
            raise ModelFileError(
                f"{path} is the first of {info.part_count} parts, and {part.name} is missing.",
                "Put all parts into one folder.",
            )


def part_paths(path: Path, info: GgufInfo) -> tuple[Path, ...]:
    """The files of the model whose first one is `path`."""
    if info.part_count == 1 or not _number_in_name(path):
        return (path,)
    return tuple(_part(path, number) for number in range(1, min(info.part_count, 999) + 1))


def _number_in_name(path: Path) -> int:
    """The 1 of ``name-00001-of-00003.gguf``; 0 for any other name."""
    found = re.search(r"-(\d{5})-of-\d{5}\.gguf$", path.name)
    return int(found[1]) if found else 0


def _part(path: Path, number: int) -> Path:
    name = re.sub(r"-\d{5}-of-(\d{5})\.gguf$", rf"-{number:05}-of-\1.gguf", path.name)
    return path.with_name(name)
