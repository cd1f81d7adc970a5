"""What anybody may read off a core at any time: the reading half of raft.ports.RaftPort."""

from raft.adapters.driver_ports import ConsensusCore
from raft.ports import QuorumAt
from raft.voters import Endpoint, VoterSet


class CoreView:
    """Passes the core's own answers on; what each means stands with `raft.ports.RaftPort`."""

    def __init__(self, node: ConsensusCore) -> None:
        self._node = node

    @property
    def node_id(self) -> int:
        return self._node.node_id

    @property
    def leader_id(self) -> int:
        return self._node.leader_id

    @property
    def leader_epoch(self) -> int:
        return self._node.leader_epoch

    @property
    def log_end_offset(self) -> int:
        return self._node.log_end_offset

    @property
    def high_watermark(self) -> int:
        return self._node.high_watermark

    @property
    def voters(self) -> VoterSet:
        return self._node.voters

    @property
    def kraft_version(self) -> int:
        return self._node.kraft_version

    def quorum_at(self, end_offset: int) -> QuorumAt:
        return self._node.quorum_at(end_offset)

    def endpoint_of(self, node_id: int) -> Endpoint | None:
        return self._node.endpoint_of(node_id)
