import sys

import pytest

from agent_tui.local_models.runtime import can_run_models


@pytest.mark.parametrize("is_there", [True, False])
def test_models_run_where_the_package_is_there(
    is_there: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = type(sys)("xllamacpp")
    module.__spec__ = sys.__spec__
    monkeypatch.setitem(sys.modules, "xllamacpp", module if is_there else None)
    assert can_run_models() == is_there
