"""What tests of strategies have in common with those of compaction."""

from tests.compaction.conftest import counter

__all__ = ["counter"]
