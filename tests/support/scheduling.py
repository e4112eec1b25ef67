"""Which worker gets which tests."""

from xdist.scheduler import LoadGroupScheduling

_MANY_TESTS = 2_000


class FileScheduling(LoadGroupScheduling):
    """Many tests go to the workers file by file, few go one by one; groups stay together.

    Each scheduled unit costs time for every other: 14,000 of them take a tenth of the whole run.
    A file's fixtures are then also made only once.
    """

    _is_by_file = False

    def schedule(self) -> None:
        """See `LoadScopeScheduling.schedule`."""
        collected = next(iter(self.registered_collections.values()))
        self._is_by_file = len(collected) > _MANY_TESTS
        super().schedule()

    def _split_scope(self, nodeid: str) -> str:
        scope = super()._split_scope(nodeid)
        return scope.partition("::")[0] if self._is_by_file else scope
