"""Work that the app does beside the screen, as the program ends."""

import gc
import warnings
from pathlib import Path

from tests.ui.app_support import running_app


async def test_work_that_the_end_of_the_program_keeps_from_starting_leaves_no_warning(
    tmp_path: Path,
):
    done: list[str] = []

    async def work() -> None:
        done.append("work")

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        async with running_app(tmp_path) as ui:
            ui.app.run_worker(work()).cancel()
            ui.app.exit()
        del ui
        gc.collect()
    assert done == []
    assert [str(warning.message) for warning in told] == []
