"""Which tests run when nothing is chosen."""

from collections.abc import Sequence

import pytest

from tests.support.real_model import real_model_data, real_model_file

__all__ = ["real_model_data", "real_model_file"]


def pytest_collection_modifyitems(config: pytest.Config, items: Sequence[pytest.Item]) -> None:
    """Leave the marked kinds out unless ``-m`` names them: they download, or take long."""
    chosen = config.option.markexpr
    for mark in ("real_model", "slow"):
        if mark in chosen:
            continue
        skipped = pytest.mark.skip(reason=f"choose it with -m {mark}")
        for item in items:
            if item.get_closest_marker(mark):
                item.add_marker(skipped)
