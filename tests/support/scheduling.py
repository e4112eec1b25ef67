"""Which worker gets which tests."""

from xdist.scheduler import LoadGroupScheduling
from xdist.workermanage import WorkerController

from tests.support.left_out import MANY_TESTS


class FileScheduling(LoadGroupScheduling):
    """Many tests go to the workers file by file, few go one by one; groups stay together.

    Each scheduled unit costs time for every other: 14,000 of them take a tenth of the whole run.
    A file's fixtures are then also made only once.

    A worker that crashes fails the one test that it ran. xdist would give that test to the next
    worker, and all work to one that has not collected yet: an internal error without the test's
    name, or a run that never ends.
    """

    _is_by_file = False

    def schedule(self) -> None:
        """See `LoadScopeScheduling.schedule`."""
        collected = next(iter(self.registered_collections.values()))
        self._is_by_file = len(collected) > MANY_TESTS
        super().schedule()

    def _split_scope(self, nodeid: str) -> str:
        scope = super()._split_scope(nodeid)
        return scope.partition("::")[0] if self._is_by_file else scope

    def remove_node(self, node: WorkerController) -> str | None:
        """See `LoadScopeScheduling.remove_node`."""
        work = self.assigned_work.pop(node)
        pending = [
            (unit, test) for unit in work.values() for test, is_done in unit.items() if not is_done
        ]
        if not pending:
            return None
        unit, running = pending[0]
        unit[running] = True
        self.workqueue.update(
            {scope: unit for scope, unit in work.items() if not all(unit.values())}
        )
        for other in self.nodes:
            self._reschedule(other)
        return running

    def _reschedule(self, node: WorkerController) -> None:
        if node in self.registered_collections:
            super()._reschedule(node)
