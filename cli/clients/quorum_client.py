"""The state of the quorum as its leader describes it (KIP-595, DescribeQuorum), and the states of the metadata that the
replicas reported to the leader.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass

from kquorum.cli.clients.addresses import KnownControllers
from kquorum.cli.clients.cluster_client import ClusterClient, PendingRequest, check_error
from kquorum.node.config.addresses import HostPort
from kquorum.wire.message_schema import Response
from kquorum.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    Node,
    RequestPartitionData,
    RequestTopicData,
    ResponsePartitionData,
)
from kquorum.wire.messages.describe_quorum import ReplicaState as DescribedReplica
from kquorum.wire.uuids import ZERO_UUID, uuid_to_text
from kquorum.wire.wording import counted

SHORT = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaState:
    """The newest state that a replica has reported: the hash of its metadata at its last offset. `agreed_offset` is
    where it was last compared and equal; `differs_at` where it was found to be another, with both hashes there."""

    offset: int
    hash: str
    agreed_offset: int | None = None
    differs_at: int | None = None
    hash_there: str | None = None
    leader_hash_there: str | None = None

    @property
    def short(self) -> str:
        return "DIFFERS" if self.differs_at is not None else f"{self.hash[:SHORT]} at {self.offset}"


States = Mapping[tuple[int, str | None], ReplicaState]


def states_in(annotation: bytes, leader: tuple[int, str | None]) -> States:
    """By (id, directory id), from what the leader added to DescribeQuorum's answer: nothing if it is none of ours."""
    if not annotation:
        return {}
    # Protobuf is imported here because Kafka's controllers tell nothing of states.
    from kquorum.metadata.state_hash.comparison import reports_in
    from kquorum.metadata.state_hash.image_hash import state_hash_text
    from kquorum.raft.voters import ZERO_DIRECTORY
    from kquorum.wire.uuids import uuid_to_text

    own, reports = reports_in(annotation)
    states: dict[tuple[int, str | None], ReplicaState] = {}
    if own is not None:
        text = state_hash_text(own.state_hash)
        states[leader] = ReplicaState(offset=own.offset, hash=text, agreed_offset=own.offset)
    for report in reports:
        directory_id = report.replica.directory_id
        found = report.mismatch
        states[report.replica.id, None if directory_id == ZERO_DIRECTORY else uuid_to_text(directory_id)] = (
            ReplicaState(
                offset=report.newest.offset,
                hash=state_hash_text(report.newest.state_hash),
                agreed_offset=report.agreed_offset,
                differs_at=None if found is None else found.offset,
                hash_there=None if found is None else state_hash_text(found.state_hash),
                leader_hash_there=None if found is None else state_hash_text(found.own_hash),
            )
        )
    return states


def state_of(states: States, node_id: int, directory_id: str | None) -> ReplicaState | None:
    """A static voter is described by its id alone, though it fetches with its directory's id."""
    if directory_id is not None or (node_id, None) in states:
        return states.get((node_id, directory_id))
    found = [state for (known_id, _), state in states.items() if known_id == node_id]
    return max(found, key=lambda state: state.offset, default=None)


def differing_states(leader_id: int, states: Sequence[tuple[int, ReplicaState | None]]) -> str | None:
    """A line that names the nodes whose state is another than the leader's; None if none is."""
    differing = [(node_id, state) for node_id, state in states if state and state.differs_at is not None]
    if not differing:
        return None
    listed = "; ".join(
        f"node {node_id} has {state.hash_there} at offset {state.differs_at}, "
        f"where the leader has {state.leader_hash_there}"
        for node_id, state in differing
    )
    others = sum(1 for node_id, state in states if state and node_id != leader_id)
    if len(differing) * 2 > others > 1:
        listed += f". {len(differing)} of {counted(others, 'node')} differ from leader {leader_id}, "
        listed += "so it may be the wrong one"
    return (
        f"STATE DIFFERS: {listed}. Compare their folders with `kquorum log verify` and `kquorum log state-hash`, then "
        "start the wrong one with an empty metadata log, keeping a copy of the old"
    )


TOPIC = "__cluster_metadata"
NOT_THE_LEADER = frozenset({6, 41})  # NOT_LEADER_OR_FOLLOWER, NOT_CONTROLLER
_LEADER_UNKNOWN = frozenset({5})  # LEADER_NOT_AVAILABLE
# A node that is alive answers at once; one that hangs must not cost the time of those that do.
PATIENCE_MS = 1_000
# A replica fetches at least twice a second; one whose last fetch is older than this is called silent.
SILENT_AFTER_MS = 3_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaLag:
    """One replica; `lag` is in records behind the leader's log end, None (as the others) while unknown. `alive` says
    whether it fetched lately, by the leader's clock; None if the leader reports no times. `state` is None if it
    reported none, as with Kafka's nodes."""

    replica_id: int
    directory_id: str | None
    log_end_offset: int | None
    lag: int | None
    last_fetch_timestamp_ms: int | None
    last_caught_up_timestamp_ms: int | None
    alive: bool | None = None
    state: ReplicaState | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class VoterPlace:
    """Where a voter's controller listener is."""

    node_id: int
    host: str
    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumStatus:
    """What `quorum status` shows; -1 is Kafka's "unknown". Before version 2 of the API `nodes` is empty."""

    leader_id: int
    leader_epoch: int
    high_watermark: int
    voters: tuple[ReplicaLag, ...]
    observers: tuple[ReplicaLag, ...]
    nodes: tuple[VoterPlace, ...] = ()

    def voter(self, node_id: int) -> ReplicaLag | None:
        return next((voter for voter in self.voters if voter.replica_id == node_id), None)

    def place_of(self, node_id: int) -> HostPort | None:
        return next((HostPort(node.host, node.port) for node in self.nodes if node.node_id == node_id), None)

    @property
    def states(self) -> list[tuple[int, ReplicaState | None]]:
        return [(each.replica_id, each.state) for each in (*self.voters, *self.observers)]

    def as_json(self) -> dict[str, object]:
        return asdict(self)


async def describe_quorum(client: ClusterClient) -> QuorumStatus:
    """Ask until the leader itself answers, following the hints of the others."""

    def is_from_leader(response: DescribeQuorumResponse) -> bool:
        return not {int(response.error_code), _partition_error(response)} & (NOT_THE_LEADER | _LEADER_UNKNOWN)

    partition_asked = RequestTopicData(topic_name=TOPIC, partitions=(RequestPartitionData(),))
    response = await client.ask(
        PendingRequest(
            request=DescribeQuorumRequest(topics=(partition_asked,)),
            accept=is_from_leader,
            hint=_leader_address,
            refusal=why_no_leader,
            is_hopeless=lambda pending: _lacks_a_majority(pending, client.known),
            patience_ms=PATIENCE_MS,
            wanted="a leader",
        )
    )
    check_error(int(response.error_code), response.error_message, "the quorum cannot be described")
    partition = response.topics[0].partitions[0]
    check_error(int(partition.error_code), partition.error_message, "the quorum cannot be described")
    return _status_of(partition, response.nodes, response.annotation)


def leader_known_to(response: Response) -> tuple[int, int]:
    """(leader, epoch) as a node that does not lead knows them; -1 for what it does not know, or its answer to another
    request does not say."""
    if not isinstance(response, DescribeQuorumResponse):
        return -1, -1
    partitions = [partition for topic in response.topics for partition in topic.partitions]
    return (partitions[0].leader_id, partitions[0].leader_epoch) if partitions else (-1, -1)


def why_no_leader(response: DescribeQuorumResponse) -> str:
    leader_id, epoch = leader_known_to(response)
    if epoch < 0:
        return "answers, but knows neither leader nor epoch"
    if leader_id < 0:
        return f"answers, but follows no leader (epoch {epoch})"
    return f"answers, and follows node {leader_id} in epoch {epoch}"


def _lacks_a_majority(pending: PendingRequest[DescribeQuorumResponse], known: KnownControllers) -> bool:
    """Whether no leader can be elected, however long it takes: too few voters answer, and none of them has a leader."""
    leaders = [leader_known_to(response)[0] for response in pending.refused.values()]
    is_lost = known.lack_a_majority(answering=pending.refused, silent=pending.silent)
    return is_lost and max(leaders, default=-1) < 0


def _partition_error(response: DescribeQuorumResponse) -> int:
    partitions = [partition for topic in response.topics for partition in topic.partitions]
    return int(partitions[0].error_code) if partitions else 0


def _leader_address(response: DescribeQuorumResponse) -> HostPort | None:
    partitions = [partition for topic in response.topics for partition in topic.partitions]
    for node in response.nodes:
        if partitions and node.node_id == partitions[0].leader_id and node.listeners:
            return HostPort(node.listeners[0].host, node.listeners[0].port)
    return None


def _status_of(partition: ResponsePartitionData, nodes: Iterable[Node], annotation: bytes) -> QuorumStatus:
    leader = next((each for each in partition.current_voters if each.replica_id == partition.leader_id), None)
    leader_end = partition.high_watermark if leader is None else leader.log_end_offset
    # The leader gives the present time for itself.
    time_ms = -1 if leader is None else leader.last_fetch_timestamp
    now_ms = time_ms if time_ms > 0 else None
    states = states_in(annotation, (partition.leader_id, None if leader is None else _directory_of(leader)))
    return QuorumStatus(
        leader_id=partition.leader_id,
        leader_epoch=partition.leader_epoch,
        high_watermark=partition.high_watermark,
        voters=tuple(_replica(state, leader_end, now_ms, states) for state in partition.current_voters),
        observers=tuple(_replica(state, leader_end, now_ms, states) for state in partition.observers),
        nodes=tuple(
            VoterPlace(node_id=node.node_id, host=node.listeners[0].host, port=node.listeners[0].port)
            for node in nodes
            if node.listeners
        ),
    )


def _replica(state: DescribedReplica, leader_end: int, now_ms: int | None, states: States) -> ReplicaLag:
    end = _known(state.log_end_offset)
    fetched_ms = _known(state.last_fetch_timestamp)
    directory_id = _directory_of(state)
    return ReplicaLag(
        replica_id=state.replica_id,
        directory_id=directory_id,
        log_end_offset=end,
        lag=None if end is None else max(leader_end - end, 0),
        last_fetch_timestamp_ms=fetched_ms,
        last_caught_up_timestamp_ms=_known(state.last_caught_up_timestamp),
        alive=None if now_ms is None else fetched_ms is not None and now_ms - fetched_ms < SILENT_AFTER_MS,
        state=state_of(states, state.replica_id, directory_id),
    )


def _directory_of(state: DescribedReplica) -> str | None:
    directory_id = state.replica_directory_id
    return None if directory_id == ZERO_UUID else uuid_to_text(directory_id)


def _known(number: int) -> int | None:
    return number if number >= 0 else None
