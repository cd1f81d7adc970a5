"""What must hold in every scenario, whatever its recorded output says."""

from collections.abc import Iterable

from kquorum.raft.ready import RoleChanged
from kquorum.wire.log_batch import LogBatch
from tests.scenarios.errors import ScenarioError


class Checks:
    """At most one leader in an epoch, ever; what was committed at an offset is the same everywhere, for ever."""

    def __init__(self) -> None:
        self.leaders: dict[int, set[int]] = {}
        self.committed_at: dict[int, tuple[int, bytes | None]] = {}

    def role_changed(self, node_id: int, change: RoleChanged) -> None:
        if change.role != "leader":
            return
        leaders = self.leaders.setdefault(change.epoch, set())
        leaders.add(node_id)
        if len(leaders) > 1:
            raise ScenarioError(f"unsafe: nodes {sorted(leaders)} led epoch {change.epoch}")

    def committed(self, node_id: int, batches: Iterable[LogBatch]) -> None:
        for batch in batches:
            for record in batch.records:
                found = (batch.leader_epoch, record.value)
                known = self.committed_at.setdefault(record.offset, found)
                if known != found:
                    raise ScenarioError(
                        f"unsafe: node {node_id} has {found} committed at {record.offset}, another has {known}"
                    )
