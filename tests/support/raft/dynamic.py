"""A replica under test in a quorum whose voters stand in the log (kraft.version 1), the rest played by the test."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from kquorum.raft.batches import leader_change_batch
from kquorum.raft.messages import (
    AddRaftVoterRequest,
    ApiVersionsRequest,
    ApiVersionsResponse,
    ChangeVotersResponse,
    FetchRequest,
    RemoveRaftVoterRequest,
    Request,
    UpdateRaftVoterRequest,
)
from kquorum.raft.ports import LogSummary
from kquorum.raft.ready import QuorumState
from kquorum.raft.voters import (
    Endpoint,
    KRaftVersionAt,
    QuorumRecord,
    ReplicaKey,
    VersionRange,
    Voter,
    VotersAt,
    VoterSet,
    quorum_records,
    voters_record,
)
from kquorum.wire.control_records import KRaftVersionRecord
from kquorum.wire.log_batch import LogBatch, OffsetAndEpoch
from tests.support.raft.context import CLUSTER_ID, LOCAL, RaftContext, key_of

LISTENER = "CONTROLLER"
BOTH = VersionRange(0, 1)


def endpoints_of(node_id: int, port: int = 9093) -> tuple[Endpoint, ...]:
    return (Endpoint(LISTENER, f"node{node_id}", port),)


def voter_of(node_id: int, directory: int | None = None) -> Voter:
    """The voter with this id; its directory is the id as a UUID, unless it is on another disk."""
    key = ReplicaKey(node_id, UUID(int=node_id if directory is None else directory))
    return Voter(key, endpoints_of(node_id), BOTH)


def bootstrap(voters: Iterable[int | Voter]) -> tuple[QuorumRecord, ...]:
    """What the bootstrap checkpoint of a dynamic quorum says."""
    members = (voter_of(voter) if isinstance(voter, int) else voter for voter in voters)
    return (KRaftVersionAt(-1, 1), VotersAt(-1, VoterSet.of(*members)))


def set_of(*node_ids: int) -> VoterSet:
    return VoterSet.of(*(voter_of(node_id) for node_id in node_ids))


def first_batch(epoch: int, voters: VoterSet, base_offset: int = 0) -> LogBatch:
    """What the first leader of a dynamic quorum writes: three records."""
    records = (KRaftVersionRecord(k_raft_version=1), voters_record(voters))
    return leader_change_batch(base_offset, epoch, 1, 2, voters.ids, [2, 3], records)


class DynamicContext(RaftContext):
    """`voters` stand in the bootstrap checkpoint (none: there is no checkpoint); the log's own records count as well.

    `static` are the voters of the configuration, which a quorum of this kind does not have.
    """

    def __init__(
        self,
        voters: Sequence[int | Voter] = (1, 2, 3),
        log: Sequence[LogBatch] = (),
        state: QuorumState | None = None,
        auto_flush: bool = True,
        snapshots: Sequence[OffsetAndEpoch] = (),
        log_start_offset: int = 0,
        static: Sequence[int] = (),
        **config: Any,
    ) -> None:
        self.checkpoint = bootstrap(voters) if voters else ()
        self.snapshots = tuple(snapshots)
        self.log_start_offset = log_start_offset
        identity = {"can_be_voter": True, "endpoints": endpoints_of(LOCAL)}
        super().__init__(static, log, state, auto_flush, **{**identity, **config})

    def _summary(self) -> LogSummary:
        records = tuple(record for batch in self.log for record in quorum_records(batch))
        return replace(
            super()._summary(),
            log_start_offset=self.log_start_offset,
            snapshots=self.snapshots,
            quorum_records=self.checkpoint + records,
        )

    @property
    def voter_ids(self) -> tuple[int, ...]:
        return self.node.voters.ids

    # Common courses

    def lead(self, *, committed: bool = True) -> int:
        """Win an election; answers the epoch. Committed: the followers have fetched what the new leader wrote."""
        if self.node.role != "leader":
            for outbound in self.become_candidate():
                if self.node.role == "candidate":
                    self.vote(outbound)
        assert self.node.role == "leader"
        if committed:
            self.commit()
        self.requests.clear()
        return self.node.leader_epoch

    def commit(self) -> None:
        """Every other voter fetches from the end of the log."""
        for voter in self.node.voters:
            if voter.key.id != LOCAL:
                self.catch_up(voter.key)

    def catch_up(self, replica: ReplicaKey | int, offset: int | None = None) -> int:
        """A replica fetches from the end of the log, or from `offset`; answers the id of the request."""
        key = key_of(replica) if isinstance(replica, int) else replica
        at = self.log_end_offset if offset is None else offset
        last_epoch = self.log[-1].leader_epoch if self.log else 0
        self.receive(replace(self.fetch(key.id, at, last_epoch, self.node.high_watermark), replica=key))
        return self.last_request_id

    # Changes of the voters

    def add(self, voter: Voter, /, **fields: Any) -> Any:
        """The answer, or None while it waits."""
        request = AddRaftVoterRequest(
            cluster_id=CLUSTER_ID, timeout_ms=1000, voter=voter.key, endpoints=voter.endpoints
        )
        return self.change(request, **fields)

    def remove(self, key: ReplicaKey, /, **fields: Any) -> Any:
        """The answer, or None while it waits."""
        return self.change(RemoveRaftVoterRequest(cluster_id=CLUSTER_ID, voter=key), **fields)

    def update(self, voter: Voter, /, **fields: Any) -> ChangeVotersResponse:
        request = UpdateRaftVoterRequest(
            cluster_id=CLUSTER_ID,
            current_leader_epoch=self.node.leader_epoch,
            voter=voter.key,
            endpoints=voter.endpoints,
            kraft_versions=voter.kraft_versions,
        )
        response = self.change(request, **fields)
        assert response is not None, "an update is answered at once"
        return response

    def change(self, request: Request, /, **fields: Any) -> ChangeVotersResponse | None:
        response = self.receive(replace(request, **fields))
        assert response is None or isinstance(response, ChangeVotersResponse)
        return response

    def read_answer(self, request_id: int) -> Any:
        """The answer, or None while it waits."""
        response = self.responses.get(request_id)
        assert response is None or isinstance(response, ChangeVotersResponse)
        return response

    def say_versions(self, versions: VersionRange | None = BOTH, **fields: Any) -> None:
        """The node that is to be added says what it supports."""
        (outbound,) = self.sent(ApiVersionsRequest)
        self.answer(outbound, ApiVersionsResponse(kraft_versions=versions, **fields))

    def begin_add(self, node_id: int, **fields: Any) -> int:
        """A caught-up observer is added, and its record appended; answers the id of the waiting request."""
        self.catch_up(node_id)
        assert self.add(voter_of(node_id), **fields) is None
        request_id = self.last_request_id
        self.say_versions()
        self.catch_up(node_id)
        return request_id

    # The following side

    def fetch_sent(self) -> FetchRequest:
        request = self.sent(FetchRequest)[-1].request
        assert isinstance(request, FetchRequest)
        return request
