from tests.compaction.conftest import counter

__all__ = ["counter"]
