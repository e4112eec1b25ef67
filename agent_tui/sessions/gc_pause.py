"""Pausing the garbage collector while very many values are made."""

import gc
from collections.abc import Generator
from contextlib import contextmanager

_MANY_OBJECTS = 50_000
"""Fewer new ones are looked through within a few milliseconds."""


@contextmanager
def garbage_collection_paused() -> Generator[None]:
    """No collection of cycles in the block, nor right after it because of what it made.

    Entries and messages hold no cycles, but each pass looks at all of them: 2/3 of the time it
    takes to read 100 MB. Freezing and unfreezing makes everything old at once, without a look.
    What was frozen before stays so.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            if gc.get_count()[0] > _MANY_OBJECTS:
                stays_frozen = gc.get_freeze_count() > 0
                gc.freeze()
                if not stays_frozen:
                    gc.unfreeze()
            gc.enable()
