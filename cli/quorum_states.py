"""Whether the nodes of a quorum have made the same state of its log, as the leader tells."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from wire.wording import counted

SHORT = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaState:
    """The newest state that a replica has told of: the hash of its metadata at its last offset. `agreed_offset` is
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
    from metadata.state_hash.comparison import reports_in
    from metadata.state_hash.image_hash import state_hash_text
    from raft.voters import ZERO_DIRECTORY
    from wire.uuids import uuid_to_text

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
    told = "; ".join(
        f"node {node_id} has {state.hash_there} at offset {state.differs_at}, "
        f"where the leader has {state.leader_hash_there}"
        for node_id, state in differing
    )
    others = sum(1 for node_id, state in states if state and node_id != leader_id)
    if len(differing) * 2 > others > 1:
        told += f". {len(differing)} of {counted(others, 'node')} differ from leader {leader_id}, "
        told += "so it may be the wrong one"
    return (
        f"STATE DIFFERS: {told}. Compare their folders with `kquorum log verify` and `kquorum log state-hash`, then "
        "start the wrong one with an empty metadata log, keeping a copy of the old"
    )
