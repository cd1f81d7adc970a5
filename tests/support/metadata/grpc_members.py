"""A fake of the member changes that the gRPC service runs."""

from collections.abc import Sequence
from uuid import UUID

from kquorum.metadata.grpc.quorum.service import BrokerLife, FolderSpace, HostFacts, NodeStatus
from kquorum.metadata.grpc.source import NotTheLeader
from kquorum.metadata.image.cluster import BrokerRegistration, Endpoint
from kquorum.metadata.image.image import Provenance
from kquorum.metadata.members import BrokerProgress

STATUS = NodeStatus(
    node_id=7,
    cluster_id="abc",
    roles=("controller", "broker"),
    reason="",
    is_cut_off=False,
    ms_since_commit=120,
    provenance=Provenance(last_contained_offset=50, last_contained_epoch=3, timestamp_ms=9),
    leader_id=7,
    broker=BrokerLife(state="running", epoch=5, is_fenced=False),
)

HOST = HostFacts(
    now_ms=1_700_000_000_000,
    version="1.2.3 (0123456789ab)",
    open_files=40,
    max_open_files=1_024,
    folders=(FolderSpace(path="/data", total_bytes=100, usable_bytes=60, total_inodes=10, usable_inodes=9),),
)


def progress(broker_id: int, applied: int, *, fenced: bool = False) -> BrokerProgress:
    registration = BrokerRegistration(
        id=broker_id,
        epoch=broker_id * 2,
        incarnation_id=UUID(int=1),
        end_points=(Endpoint("PLAINTEXT", "host", 9000 + broker_id, 0),),
        rack="a",
        fenced=fenced,
        log_dirs=(UUID(int=broker_id << 64),),
    )
    return BrokerProgress(registration=registration, applied_offset=applied, lag=50 - applied, silent_ms=30)


class FakeMembers:
    """Broker 11 applies one more record each time its state is read."""

    def __init__(self, *, leads: bool = True, applied: int = 50) -> None:
        self.leads = leads
        self.applied = applied
        self.looks = 0

    def describe_node(self) -> NodeStatus:
        return STATUS

    async def host_facts(self) -> HostFacts:
        return HOST

    def leader_epoch(self) -> int:
        return 3

    def brokers(self) -> Sequence[BrokerProgress]:
        if not self.leads:
            raise NotTheLeader("node 8 leads")
        self.looks += 1
        return (progress(11, self.applied), progress(12, 40, fenced=True))

    def committed_offset(self) -> int:
        return 50

    async def last_committed_offset(self) -> int:
        if not self.leads:
            raise NotTheLeader("node 8 leads")
        return 50
